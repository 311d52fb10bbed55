"""An object store that repeats its credentials: the keys are in nothing that is printed or written."""

from http.server import BaseHTTPRequestHandler
from xml.sax.saxutils import escape

import pytest

from parquetry.serving.cli.main import run
from parquetry.tasks.engine import retries
from tests.servers.loopback import LoopbackServer, Quiet
from tests.written_bytes import holding

pytestmark = pytest.mark.slow

KEY, TOKEN = "of/the+store/planted1", "FwoGZXIvYXdzEPlanted//8="


class Repeating(Quiet, BaseHTTPRequestHandler):
    """Refuse every request, and repeat all credentials received."""

    protocol_version = "HTTP/1.1"
    status = 403
    signatures: list[str] = []  # noqa: RUF012 - of all requests

    def refuse(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        signed = self.headers.get("Authorization", "")
        self.signatures.append(signed.rpartition("Signature=")[2])
        said = escape(f"{KEY} signs {signed} with x-amz-security-token: {self.headers.get('x-amz-security-token')}")
        body = f"<Error><Code>AccessDenied</Code><Message>{said}</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = refuse  # noqa: N815


@pytest.mark.parametrize("where", ["source", "corpus"])
def test_keys_that_an_object_store_repeats_are_in_nothing_printed_or_written(tmp_path, monkeypatch, capfd, where):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(retries, "FIRST_WAIT", 0.001)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Count the boards.")
    Repeating.signatures.clear()
    with LoopbackServer(Repeating) as store:
        for name, value in {
            "AWS_ENDPOINT_URL": store.url,
            "AWS_ACCESS_KEY_ID": "AKIAPLANTED12",
            "AWS_SECRET_ACCESS_KEY": KEY,
            "AWS_SESSION_TOKEN": TOKEN,
            "AWS_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        uri, root = ("s3://notes/a", "corpus") if where == "source" else ("docs", "s3://notes/corpus")
        (tmp_path / "parquetry.toml").write_text(f'[corpus]\nroot = "{root}"\n[[source]]\nname = "a"\nuri = "{uri}"')
        codes = [run([*command]) for command in (("plan",), ("refresh", "--direct", "-v"), ("doctor",), ("status",))]
    printed = capfd.readouterr()
    assert any(Repeating.signatures)
    assert any(codes)
    secrets = {"key": KEY, "token": TOKEN, **{f"signature {each}": each for each in Repeating.signatures if each}}
    assert [name for name, secret in secrets.items() if secret in printed.out + printed.err] == []
    assert ("***" in printed.err) == (where == "corpus")
    assert holding(tmp_path, secrets) == []


@pytest.mark.parametrize("known", [True, False], ids=["let-in", "turned-away"])
def test_keys_of_a_real_object_store_are_in_no_object_and_nothing_printed(
    tmp_path, monkeypatch, capfd, s3_server, known
):
    monkeypatch.chdir(tmp_path)
    bucket = s3_server.bucket()
    secret = s3_server.secret_key if known else KEY
    for name, value in {**s3_server.environment(), "AWS_SECRET_ACCESS_KEY": secret}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Count the boards.")
    (tmp_path / "docs" / "b.md").write_bytes(b"\x00\xff")
    options = ["--corpus", f"s3://{bucket}/kb"]
    commands = (("refresh", "docs", "--direct", "-v"), ("documents", "--json"), ("search", "boards"), ("doctor",))
    codes = [run([*command, *options]) for command in commands]
    assert codes == ([0] * 4 if known else [4] * 4)
    printed = capfd.readouterr()
    assert secret not in printed.out + printed.err
    objects = tmp_path / "objects"
    for number, each in enumerate(s3_server.client().list_objects_v2(Bucket=bucket).get("Contents", [])):
        objects.mkdir(exist_ok=True)
        s3_server.client().download_file(bucket, each["Key"], str(objects / str(number)))
    assert objects.exists() == known
    assert holding(tmp_path, {"key": secret}) == []
