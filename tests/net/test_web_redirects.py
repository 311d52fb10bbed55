"""A redirect carries no credentials along, and a redirect to a URL with credentials is not followed."""

import pytest

from parquetry.embed.openai import OpenAIEmbedder
from parquetry.errors import BrokenDocument
from parquetry.settings.embedding import EmbeddingSettings
from tests.net.test_web_client import read
from tests.servers.embedding_server import EmbeddingServer, Reply
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


def test_service_that_redirects_to_another_one_does_not_hand_it_the_key():
    with EmbeddingServer() as other:
        moved = Reply(307, {}, {"Location": f"{other.url}/embeddings"})
        with EmbeddingServer(lambda _: moved) as service:
            settings = EmbeddingSettings(base_url=service.url, api_key=SECRET, attempts=1, dimension=8)
            assert len(OpenAIEmbedder("m", settings).embed(["text"]).vectors) == 1
        assert service.requests[0].headers["authorization"] == f"Bearer {SECRET}"
        assert [request.headers.get("authorization") for request in other.requests] == [None] * len(other.requests)
