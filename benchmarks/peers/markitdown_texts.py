"""Texts of files by MarkItDown: `markitdown_texts.py FOLDER`; one line of JSON, name of the file -> text or null."""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path
from typing import Any


def main() -> None:
    from markitdown import MarkItDown

    reader = MarkItDown(enable_plugins=False)
    texts: dict[str, Any] = {}
    for file in sorted(Path(sys.argv[1]).iterdir()):
        try:
            texts[file.name] = reader.convert_local(str(file)).markdown
        except Exception as error:  # noqa: BLE001 (a file that it cannot read is one of its results)
            print(f"{file.name}: {type(error).__name__}", file=sys.stderr)
            texts[file.name] = None
    print(json.dumps({"version": metadata.version("markitdown"), "texts": texts}))


if __name__ == "__main__":
    main()
