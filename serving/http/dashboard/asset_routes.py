"""Files that pages load. Their names change with their content, so that browsers keep them."""

from __future__ import annotations

from fastapi import APIRouter, Response

from parquetry.serving.web.assets import Asset, assets

router = APIRouter(include_in_schema=False)
_HEADERS = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}


def _add(asset: Asset) -> None:
    @router.get(asset.path)
    async def get_asset() -> Response:
        return Response(asset.content, media_type=asset.media_type, headers=_HEADERS)


for each in assets().values():
    _add(each)
