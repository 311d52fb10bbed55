import pytest

from parquetry.sources.uploads.store import UploadStore
from tests.sources.uploads.kept_uploads import settings_of


@pytest.fixture
def store(tmp_path):
    return UploadStore(settings_of(tmp_path))
