"""PyArrow without pandas, where the program does not use it; everything else still finds it."""

import subprocess
import sys

import pytest

pytest.importorskip("pandas")
WITHOUT = "from parquetry.storage.without_pandas import use_without_pandas\nuse_without_pandas()\n"
CONVERSION = "import sys\nimport pyarrow as pa\ntable = pa.table({'number': [1, 2]})\n"


def _run(*parts):
    return subprocess.run([sys.executable, "-c", "".join(parts)], capture_output=True, text=True)


def test_a_conversion_imports_no_pandas():
    done = _run(WITHOUT, CONVERSION, "assert 'pandas' not in sys.modules")
    assert (done.returncode, done.stderr) == (0, "")


def test_what_asks_for_pandas_finds_it():
    done = _run(WITHOUT, CONVERSION, "import pandas\nassert isinstance(table.to_pandas(), pandas.DataFrame)")
    assert (done.returncode, done.stderr) == (0, "")


def test_pandas_that_is_imported_stays_in_use():
    done = _run("import pandas\n", WITHOUT, CONVERSION, "assert pa.array(pandas.Series([1.5, None])).null_count == 1")
    assert (done.returncode, done.stderr) == (0, "")
