"""Files under /v1, by OpenAI's client: kept as they are, listed in pages, gone when deleted."""

import httpx
import openai
import pytest

from tests.serving.stores.conftest import OAK, client_of


@pytest.fixture(scope="module")
def bea(app):
    with client_of(app, "bea") as client:
        yield client


def raw(app, client):
    return httpx.Client(base_url=app.url, headers={"Authorization": f"Bearer {client.api_key}"}, trust_env=False)


def test_file_is_kept_as_it_is(ada):
    content = bytes(range(256)) * 300
    file = ada.files.create(file=("../a\\b/c d.bin", content), purpose="user_data")
    assert (file.filename, file.bytes, file.purpose, file.status) == ("c d.bin", len(content), "user_data", "processed")
    assert file.expires_at is None
    assert ada.files.retrieve(file.id) == file
    answer = ada.files.with_raw_response.content(file.id)
    assert answer.content == content
    # A browser saves it, whatever it is.
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert ada.files.delete(file.id).deleted
    for call in (ada.files.retrieve, ada.files.content, ada.files.delete):
        with pytest.raises(openai.NotFoundError):
            call(file.id)


def test_empty_file_is_kept(ada):
    file = ada.files.create(file=("empty.txt", b""), purpose="user_data")
    assert file.bytes == 0
    assert ada.files.content(file.id).read() == b""


def test_files_are_listed_in_pages(bea):
    files = [bea.files.create(file=(f"{n}.md", OAK), purpose="batch" if n % 2 else "assistants").id for n in range(5)]
    assert [each.id for each in bea.files.list()] == files[::-1]
    assert [each.id for each in bea.files.list(order="asc", limit=2)] == files
    page = bea.files.list(limit=2)
    assert page.has_more
    assert [each.id for each in page.data] == files[:2:-1]
    assert [each.id for each in bea.files.list(purpose="batch")] == [files[3], files[1]]
    assert [each.id for each in bea.files.list(after=files[2])] == [files[1], files[0]]
    # Whoever deletes while reading pages misses none.
    for each in bea.files.list(limit=2):
        bea.files.delete(each.id)
    assert list(bea.files.list()) == []


def test_file_expires(app, ada):
    file = ada.files.create(
        file=("oak.md", OAK), purpose="assistants", expires_after={"anchor": "created_at", "seconds": 3600}
    )
    assert file.expires_at == file.created_at + 3600
    batch = ada.files.create(file=("oak.jsonl", OAK), purpose="batch")
    assert batch.expires_at == batch.created_at + 30 * 24 * 3600


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({}, "purpose"),
        ({"purpose": "other"}, "purpose"),
        ({"purpose": "batch", "more": "1"}, "more"),
        (
            {"purpose": "batch", "expires_after[anchor]": "now", "expires_after[seconds]": "3600"},
            "expires_after.anchor",
        ),
        (
            {"purpose": "batch", "expires_after[anchor]": "created_at", "expires_after[seconds]": "3599"},
            "expires_after.seconds",
        ),
        ({"purpose": "batch", "expires_after[anchor]": "created_at"}, "expires_after.seconds"),
    ],
)
def test_unusable_field_is_refused_by_name(app, ada, data, param):
    with raw(app, ada) as client:
        answer = client.post("/v1/files", data=data, files={"file": ("a.md", OAK)})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf',
            "multipart/form-data; boundary=x",
        ),
        (b"--y--\r\n", "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n--x--\r\n',
            "multipart/form-data; boundary=x",
        ),
        (b"{}", "application/json"),
        (b"{}", "multipart/form-data"),
    ],
    ids=["empty", "cut", "other-boundary", "no-file", "json", "no-boundary"],
)
def test_form_that_cannot_be_read_is_refused(app, ada, content, kind):
    kept = set(app.resources.content.path("").iterdir())
    with raw(app, ada) as client:
        answer = client.post("/v1/files", content=content, headers={"Content-Type": kind})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert set(app.resources.content.path("").iterdir()) == kept


def test_file_that_is_too_large_is_refused_and_leaves_nothing(app, ada):
    kept = set(app.resources.content.path("").iterdir())
    with pytest.raises(openai.APIStatusError) as refused:
        ada.files.create(file=("large.bin", b"x" * 200_001), purpose="user_data")
    assert refused.value.status_code == 413
    assert set(app.resources.content.path("").iterdir()) == kept


def test_unknown_cursor_is_refused(ada):
    for after in ("nonsense", "file-1", "vs_" + "0" * 29):
        with pytest.raises(openai.BadRequestError) as refused:
            ada.files.list(after=after)
        assert refused.value.param == "after"


def test_file_arrives_in_parts(app, ada):
    content = b"".join(b"%d\n" % number for number in range(9000))
    upload = ada.uploads.create(bytes=len(content), filename="many.txt", mime_type="text/plain", purpose="assistants")
    assert (upload.status, upload.expires_at) == ("pending", upload.created_at + 3600)
    second = ada.uploads.parts.create(upload.id, data=content[20_000:])
    first = ada.uploads.parts.create(upload.id, data=content[:20_000])
    with pytest.raises(openai.BadRequestError):
        ada.uploads.complete(upload.id, part_ids=[first.id])
    with pytest.raises(openai.BadRequestError):
        ada.uploads.complete(upload.id, part_ids=[first.id, second.id], md5="0" * 32)
    done = ada.uploads.complete(upload.id, part_ids=[first.id, second.id])
    assert done.status == "completed"
    assert ada.files.content(done.file.id).read() == content
    with pytest.raises(openai.BadRequestError):
        ada.uploads.cancel(upload.id)
    assert not app.resources.files.parts(upload.id)
    other = ada.uploads.create(bytes=1, filename="a.txt", mime_type="text/plain", purpose="assistants")
    with pytest.raises(openai.BadRequestError):
        ada.uploads.parts.create(other.id, data=b"two")
    assert ada.uploads.cancel(other.id).status == "cancelled"
