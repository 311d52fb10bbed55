"""The map of a corpus: its page, the points that it draws, and one document of it."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from parquetry.serving.access.refusals import NotVisible
from parquetry.serving.access.visibility import filters_for
from parquetry.serving.http.callers import PublishedParts, ReadCaller
from parquetry.serving.http.dashboard.html import HEADERS, page
from parquetry.serving.http.dashboard.paths import MAP
from parquetry.serving.http.dashboard.quality_routes import analysis_state
from parquetry.serving.service import documents as shown
from parquetry.serving.service.version_cache import of_version
from parquetry.serving.web.documents import item_of
from parquetry.serving.web.map import MOST_LISTED, cluster_names, points_of
from parquetry.storage.analysis.folder import newest_analysis
from parquetry.storage.analysis.lists import in_cluster, names_of_clusters, placed, within
from parquetry.storage.search.filters import Filters

router = APIRouter(include_in_schema=False)
Area = Annotated[str, Query(max_length=100)]


@router.get(MAP)
def show_map(
    request: Request, caller: ReadCaller, parts: PublishedParts, area: Area = "", cluster: Area = ""
) -> Response:
    """Show the map, its clusters, and the documents of a chosen area or cluster."""
    chosen, number = _area(area), int(cluster) if cluster.isascii() and cluster.isdigit() else None
    listed: list[dict[str, Any]] = []
    clusters: list[tuple[int, int, str]] = []
    total = 0
    filters = filters_for(caller, None, Filters())
    with parts.follower.reader() as reader:
        file = newest_analysis(reader.snapshot.layout, parts.settings.search)
        version = reader.snapshot.version
        if file is not None:
            with closing(reader.index.session()) as session:
                clusters = of_version(
                    reader,
                    ("clusters", file.stamp, filters),
                    lambda: cluster_names(names_of_clusters(session, file, filters)),
                )
                if chosen is not None:
                    listed, total = within(session, file, filters, chosen, MOST_LISTED)
                elif number is not None:
                    listed, total = in_cluster(session, file, filters, number, MOST_LISTED)
    return page(
        request,
        "map.html",
        clusters=clusters,
        documents=[item_of(row) for row in listed],
        total=total,
        area=area if chosen else "",
        cluster=number if chosen is None else None,
        **analysis_state(parts, caller, file, version),
    )


def _area(text: str) -> tuple[float, float, float, float] | None:
    """Return left, top, right and bottom; None for a text that is no area."""
    try:
        left, top, right, bottom = (float(each) for each in text.split(","))
    except ValueError:
        return None
    return (left, top, right, bottom) if all(0 <= each <= 1 for each in (left, top, right, bottom)) else None


@router.get(f"{MAP}/points")
def get_points(caller: ReadCaller, parts: PublishedParts) -> Response:
    """Return the documents that the caller may see, as points."""
    with parts.follower.reader() as reader:
        file = newest_analysis(reader.snapshot.layout, parts.settings.search)
        if file is None:
            raise NotVisible("no-analysis", "this corpus was not analyzed yet")
        filters = filters_for(caller, None, Filters())
        with closing(reader.index.session()) as session:
            points = of_version(
                reader,
                ("points", file.stamp, filters),
                lambda: points_of(placed(session, file, filters), file.version),
                large=True,
            )
    return Response(points, media_type="application/octet-stream", headers=dict(HEADERS))


@router.get(f"{MAP}/documents/{{document_id}}")
def show_point(
    request: Request, document_id: Annotated[str, Path(max_length=255)], caller: ReadCaller, parts: PublishedParts
) -> Response:
    """Show the name of a document, where it comes from, and the way to it."""
    with parts.follower.reader() as reader:
        row = shown.document(reader, caller, document_id)
    return page(request, "map_point.html", document=item_of(row))
