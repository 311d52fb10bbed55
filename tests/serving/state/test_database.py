"""Files of the state folder that an older version made gain what they lack, and keep what they hold."""

import psutil
import pytest

from parquetry.errors import StorageError
from parquetry.serving.state.database import StateDatabase

SCHEMA = "CREATE TABLE IF NOT EXISTS stores (id TEXT PRIMARY KEY) STRICT"
ADDED = (("stores", "description TEXT NOT NULL DEFAULT ''"),)


def test_older_file_gains_a_column_once(tmp_path):
    old = StateDatabase(tmp_path, "stores.db", SCHEMA, "stores")
    old.write("INSERT INTO stores VALUES ('vs_1')")
    for _ in range(2):
        new = StateDatabase(tmp_path, "stores.db", SCHEMA, "stores", ADDED)
        assert new.rows("SELECT id, description FROM stores") == [("vs_1", "")]
        new.close()
    # A worker of the older version goes on.
    assert old.rows("SELECT id FROM stores") == [("vs_1",)]
    old.close()


def test_file_that_cannot_be_used_is_not_left_open(tmp_path):
    (tmp_path / "stores.db").write_bytes(b"This is no database." * 100)
    with pytest.raises(StorageError, match=r"stores in .* cannot be opened: file is not a database"):
        StateDatabase(tmp_path, "stores.db", SCHEMA, "stores")
    assert [file.path for file in psutil.Process().open_files() if file.path.startswith(str(tmp_path))] == []
