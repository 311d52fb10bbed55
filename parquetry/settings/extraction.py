"""Settings of extraction: processes that read documents import these, and no others."""

from __future__ import annotations

from pydantic import Field, SecretStr

from parquetry.settings.base import LONGEST_WAIT, MOST_BYTES, Section


class ExtractionSettings(Section):
    """Extraction of documents."""

    workers: int | None = Field(
        None, ge=1, le=256, examples=[4], description="Extraction processes; default: one per core."
    )
    timeout_seconds: float = Field(
        120,
        gt=0,
        le=LONGEST_WAIT,
        description="Per document; its process is killed after that, of small files without pictures far earlier.",
    )
    memory_mb: int = Field(4096, ge=512, le=1024 * 1024, description="Address space of one extraction process, in MiB.")
    max_bytes: int = Field(512 * 1024 * 1024, ge=1, le=MOST_BYTES, description="Larger documents are skipped.")
    max_unpacked_bytes: int = Field(
        512 * 1024 * 1024, ge=1, le=MOST_BYTES, description="Largest content of an office file or e-book once unpacked."
    )
    passwords: tuple[SecretStr, ...] = Field(
        (), examples=[["opens the payroll"]], description="Tried on encrypted documents, in this order."
    )
    ocr: bool = Field(True, description="Read images and pages without text, if the `ocr` extra is installed.")
    include_image_descriptions: bool = Field(False, description="Have the `[llm]` model describe images.")
    main_content_only: bool = Field(True, description="Drop navigation and other boilerplate of web pages.")
