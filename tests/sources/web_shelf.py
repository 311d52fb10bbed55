"""A test web server as a source, and its listing."""

from parquetry.model import Access, Item, Unlisted
from parquetry.sources.base import Place
from parquetry.sources.providers import open_place
from tests.records import row

HTML = "<!doctype html><title>{0}</title><p>About {0}."


def web(server, path="/", include=(), exclude=(), **options):
    options = {"allow": [server.place], "requests_per_second": 1000, **options}
    return open_place(
        Place("site", server.url + path, Access(tags=("t",)), include=include, exclude=exclude, options=options)
    )


def scanned(source):
    found = list(source.scan(""))
    items = {each.path.partition("/")[2]: each for each in found if isinstance(each, Item)}
    return items, [each for each in found if isinstance(each, Unlisted)]


def rows_of(items):
    """Return the published rows after a refresh that took these items."""
    return {
        item.path: row(item.path, uri=item.uri, size=item.size, etag=item.etag, modified_at=item.modified_at)
        for item in items.values()
    }


def refreshed(source, server, items):
    """Return the same source, which now remembers the listed items."""
    source.remember(rows_of(items))
    server.asked.clear()
    return source


def sitemap(server, *entries):
    urls = "".join(
        f"<url><loc>{server.url}{path}</loc>{f'<lastmod>{modified}</lastmod>' if modified else ''}</url>"
        for path, modified in entries
    )
    return f'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>'
