"""Tokens are made, listed and revoked at the command line, and shown once."""

import json
import re
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from parquetry.known_secrets import known_forms
from parquetry.serving.access.principals import Principal
from parquetry.serving.access.token_text import is_token
from parquetry.serving.access.tokens import TokenStore
from tests.serving.conftest import Desk
from tests.serving.program import start

pytestmark = pytest.mark.usefixtures("nothing_announced")


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    """Return an empty folder to run commands in: tokens are made before the first refresh."""
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)


def created(desk, *options):
    return desk("token", "create", "--name", "app", "--json", *options).json


def test_token_is_printed_once_and_known_as_a_secret_from_then_on(desk):
    told = desk("token", "create", "--name", "app", "--user", "ada", "--org", "acme", "--namespace", "hr")
    assert (told.code, told.stderr) == (0, "")
    plain, line, hint = told.stdout.splitlines()
    assert is_token(plain)
    assert re.fullmatch(
        r"Token [0-9a-f]{12} \(app\): user ada; organization acme; namespaces hr; rights search, read; no expiry\.",
        line,
    )
    assert "Authorization: Bearer pqt_..." in hint
    assert plain in known_forms()
    for command in (("list",), ("list", "--all", "--json"), ("audit",), ("audit", "--json")):
        shown = desk("token", *command).stdout
        assert shown
        assert plain[12:] not in shown
    assert plain[:12] in desk("token", "list").stdout
    assert all(plain[12:].encode() not in file.read_bytes() for file in (desk.folder / "corpus" / "service").iterdir())


def test_token_has_what_was_asked_for(desk):
    made = created(
        desk, "--user", "ada", "--namespace", "hr", "--namespace", "law", "--default-namespace", "law", "--right",
        "admin", "--right", "search", "--expires", "30d",
    )  # fmt: skip
    expires = datetime.fromisoformat(made["expires_at"])
    assert abs(expires - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=5)
    with TokenStore(desk.folder / "corpus" / "service") as store:
        assert store.find(made["token"]) == Principal(
            made["id"], "ada", None, ("hr", "law"), frozenset({"search", "admin"}), "law"
        )
    (listed,) = desk("token", "list", "--json").json["tokens"]
    assert listed.pop("last_used_at") is not None
    assert listed == {name: value for name, value in made.items() if name not in ("token", "last_used_at")}
    assert listed["state"] == "active"
    assert listed["rights"] == ["search", "admin"]


def test_token_can_expire_on_a_date(desk):
    assert created(desk, "--expires", "2131-03-01")["expires_at"] == "2131-03-01T00:00:00+00:00"


@pytest.mark.parametrize("named", ["id", "shown", "token"])
def test_revoked_token_is_refused_by_a_service_that_runs(desk, named):
    made = created(desk)
    with TokenStore(desk.folder / "corpus" / "service") as service:
        assert service.find(made["token"]) is not None
        told = desk("token", "revoke", made[named])
        assert told.stdout.startswith(f"Revoked token {made['id']} (app): ")
        assert made["token"][12:] not in told.stdout
        assert service.check(made["token"]) == "revoked"
    assert desk("token", "list").stdout == "No active tokens.\n"
    (listed,) = desk("token", "list", "--all", "--json").json["tokens"]
    assert listed["state"] == "revoked"


def test_expired_token_is_only_listed_when_asked_for(desk):
    created(desk, "--expires", "1h")
    with sqlite3.connect(desk.folder / "corpus" / "service" / "tokens.db") as changed:
        changed.execute("UPDATE tokens SET expires_at = 1")
    changed.close()
    assert desk("token", "list").stdout == "No active tokens.\n"
    assert "expired" in desk("token", "list", "--all").stdout


def test_commands_that_only_look_make_no_files(desk):
    assert desk("token", "list").stdout == "No active tokens.\n"
    assert desk("token", "list", "--all").stdout == "No tokens.\n"
    assert desk("token", "audit").stdout == "No events.\n"
    assert list(desk.folder.iterdir()) == []


def test_tokens_are_those_of_the_state_folder_in_the_settings(desk):
    (desk.folder / "parquetry.toml").write_text('[serve]\nstate = "elsewhere"\n')
    made = created(desk)
    assert (desk.folder / "elsewhere" / "tokens.db").exists()
    assert desk("token", "revoke", made["id"]).code == 0
    assert not (desk.folder / "corpus").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["create"], "Missing option '--name'"),
        (["create", "--name", ""], "name '' is empty"),
        (["create", "--name", "app", "--user", ""], "user '' is empty"),
        (["create", "--name", "app", "--right", "wirte"], "no right 'wirte'; did you mean write?"),
        (["create", "--name", "app", "--namespace", "a/b"], "namespace 'a/b' is not valid"),
        (["create", "--name", "app", "--namespace", "a", "--default-namespace", "b"], "default namespace 'b' is not"),
        (["create", "--name", "app", "--expires", "soon"], "--expires 'soon'"),
        (["create", "--name", "app", "--expires", "1999-01-01"], "is in the past"),
        (["create", "--name", "app", "--expires", "0d"], "is in the past"),
        (["create", "--name", "app", "--expires", "999999w"], "--expires '999999w'"),
        (["revoke"], "Missing argument 'TOKEN'"),
        (["revoke", "0123456789ab"], "there are no tokens in "),
        (["audit", "--event", "retrieve"], "no event 'retrieve'"),
        (["audit", "--since", "soon"], "--since 'soon'"),
        (["audit", "--limit", "0"], "Invalid value for '-n'"),
        (["remove"], "No such command 'remove'"),
        ([], "Missing command"),
    ],
)
def test_wrong_argument_is_one_line(desk, arguments, complaint):
    told = desk("token", *arguments)
    assert (told.code, told.stdout) == (2, "")
    assert complaint in told.complaint
    assert not list(desk.folder.rglob("tokens.db")) or not desk("token", "list", "--json").json["tokens"]


def test_unknown_token_is_refused_without_repeating_it(desk):
    made, other = created(desk), created(desk)
    desk("token", "revoke", made["id"])
    for which in ("0123456789ab", other["token"][:-1] + ("0" if other["token"][-1] != "0" else "1")):
        told = desk("token", "revoke", which)
        assert told.code == 2
        assert told.complaint.startswith("no token '")
        assert other["token"][12:40] not in told.stderr


def test_what_was_done_is_in_the_audit_log(desk):
    made = created(desk)
    desk("token", "revoke", made["id"])
    events = desk("token", "audit", "--json").json["events"]
    assert [(each["event"], each["target"], each["operator"]) for each in events] == [
        ("token.created", made["id"], True),
        ("token.revoked", made["id"], True),
    ]
    revoked = desk("token", "audit", "--event", "token.revoked", "--since", "1h", "--json").json["events"]
    assert revoked == events[1:]
    assert desk("token", "audit", "--limit", "1", "--json").json["events"] == events[1:]
    assert desk("token", "audit", "--user", "ada").stdout == "No events.\n"
    head, _, *rows = desk("token", "audit").stdout.splitlines()
    assert head.split()[:3] == ["time", "event", "caller"]
    assert [row.split()[1:3] for row in rows] == [["token.created", "operator"], ["token.revoked", "operator"]]


def test_forgetting_a_user_deletes_its_tokens_and_events(refreshed, tmp_path, monkeypatch, capsys):
    shutil.copytree(refreshed, tmp_path / "desk", symlinks=True)
    monkeypatch.chdir(tmp_path / "desk")
    desk = Desk(tmp_path / "desk", capsys)
    made = created(desk, "--user", "ada")
    told = desk("forget", "--user", "ada", "--yes", "--json").json
    assert (told["tokens"], told["audit_events"]) == (1, 0)
    with TokenStore(desk.folder / "corpus" / "service") as store:
        assert store.check(made["token"]) == "unknown"


@pytest.mark.slow
def test_real_program_shows_a_token_on_its_output_and_nowhere_else(tmp_path):
    told = start("token", "create", "--name", "app", "--json", cwd=tmp_path)
    plain = json.loads(told.stdout)["token"]
    assert is_token(plain)
    assert told.stderr == ""
    damaged = tmp_path / "corpus" / "service" / "tokens.db"
    damaged.write_bytes(b"no database at all" * 1000)
    told = start("token", "revoke", plain, cwd=tmp_path)
    assert told.returncode == 4
    assert told.stderr.count("\n") == 1
    assert "tokens cannot be checked" in told.stderr
    assert plain[12:] not in told.stderr
