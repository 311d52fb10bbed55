"""Paths of OpenAI's dialect that other parts of the service treat apart."""

from __future__ import annotations

FILES = "/v1/files"
UPLOADS = "/v1/uploads"
PARTS = "/parts"
"""end of the path of the parts of an upload"""
STORES = "/v1/vector_stores"
PART_BYTES = 64 * 1024 * 1024
"""maximum bytes of a part of an upload, as OpenAI states it"""
FORM_BYTES = 1 << 20
"""bytes of a form beside its file"""
