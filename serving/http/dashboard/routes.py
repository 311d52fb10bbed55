"""All routes of the dashboard."""

from __future__ import annotations

from fastapi import FastAPI

from parquetry.serving.http.dashboard import (
    add_routes,
    admin_routes,
    ask_routes,
    asset_routes,
    compare_routes,
    document_routes,
    drawing_routes,
    entry_routes,
    history_routes,
    job_routes,
    map_routes,
    overview_routes,
    quality_routes,
    review_routes,
    run_routes,
    search_routes,
    selected_routes,
    session_routes,
    version_routes,
)


def add_dashboard(app: FastAPI) -> None:
    """Answer browsers at `/`."""
    for routes in (
        overview_routes,
        search_routes,
        ask_routes,
        document_routes,
        drawing_routes,
        history_routes,
        selected_routes,
        add_routes,
        # A review is not an entry of that name.
        review_routes,
        entry_routes,
        run_routes,
        job_routes,
        version_routes,
        map_routes,
        quality_routes,
        admin_routes,
        session_routes,
        asset_routes,
        compare_routes,
    ):
        app.include_router(routes.router)
