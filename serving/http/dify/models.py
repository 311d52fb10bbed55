"""Requests and answers of Dify's external knowledge API; unknown fields are ignored, as Dify's own servers do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from parquetry.serving.http.gateway_models import LONGEST_QUERY, MOST_RESULTS

MOST_CONDITIONS, MOST_VALUES, LONGEST_VALUE = 100, 1000, 4096
Scalar = bool | str | int | float
Value = Scalar | list[Scalar]


class DifyModel(BaseModel):
    """Base of requests."""

    model_config = ConfigDict(extra="ignore")


class RetrievalSetting(DifyModel):
    """Number and relevance of the records."""

    top_k: int = Field(ge=1, le=MOST_RESULTS)
    score_threshold: float | None = Field(
        None, ge=0, le=1, description="Least relevance; 0 or null for none.", allow_inf_nan=False
    )


class MetadataCondition(DifyModel):
    """Condition on a value of the metadata."""

    name: str | list[str] = Field(
        description="Key of the metadata, or dotted path; a list for any of several.", examples=["category"]
    )
    comparison_operator: str = Field(max_length=40, examples=["contains"])
    value: Value | None = Field(None, description="May be left out for `empty` and `not empty`.", examples=["policy"])


class MetadataConditions(DifyModel):
    """Conditions that must all hold, or of which one must."""

    logical_operator: Literal["and", "or"] = "and"
    conditions: list[MetadataCondition] | None = Field(None, max_length=MOST_CONDITIONS)


class Retrieval(DifyModel):
    """Request for the records that answer a question."""

    knowledge_id: str = Field(max_length=255, description="Namespace.", examples=["default"])
    query: str = Field(min_length=1, max_length=LONGEST_QUERY)
    retrieval_setting: RetrievalSetting
    metadata_condition: MetadataConditions | None = None


class DifyRecord(BaseModel):
    """A chunk that answers the question."""

    content: str
    score: float = Field(description="Calibrated relevance, 0 to 1.")
    title: str
    metadata: dict[str, Any]


class DifyRecords(BaseModel):
    """Records, best first."""

    records: list[DifyRecord]


class DifyError(BaseModel):
    """An error."""

    error_code: int = Field(description="1001, 1002, 2001, or the HTTP status.")
    error_msg: str
