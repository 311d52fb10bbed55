"""`parquetry analyze` from the shell: what it prints, once and again."""

from tests.serving.cli.conftest import *  # noqa: F403
