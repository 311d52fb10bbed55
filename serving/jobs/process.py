"""The process that carries out jobs: `python -m parquetry.serving.jobs.process`, started by the service.

Imports nothing: every extraction process imports the main module of its parent again.
"""

from __future__ import annotations


def main() -> None:
    """Carry out jobs until told to stop."""
    from parquetry.serving.jobs.working import work

    work()


if __name__ == "__main__":
    main()
