"""A redirect carries no credentials along, and a redirect to a URL with credentials is not followed."""

import pytest

from parquetry.errors import BrokenDocument
from tests.net.test_web_client import read
from tests.servers.web_server import Page, WebServer

SECRET = "Sw0rdfish"


@pytest.mark.parametrize(
    "target",
    [
        f"/page?sig={SECRET}",
        f"/page?X-Amz-Signature={SECRET}",
        f"/page?access_token={SECRET}",
        f"https://reader:{SECRET}@example.org/page",
    ],
)
def test_redirect_to_a_url_with_credentials_is_not_followed(target):
    pages = {"/": Page(status=302, headers={"Location": target}), target: Page("text")}
    with WebServer(pages) as server, pytest.raises(BrokenDocument) as refusal:
        read(server)
    assert refusal.value.reason == "bad-url"
    assert SECRET not in str(refusal.value)
    assert [asked.path for asked in server.asked] == ["/"]


def test_redirect_to_another_page_is_followed():
    with WebServer({"/": Page(status=302, headers={"Location": "/b?page=2"}), "/b?page=2": Page("text")}) as server:
        assert read(server) == b"text"
