"""`Corpus` on disk and behind a service: one contract, the same results."""

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from types import SimpleNamespace

import pytest

from parquetry import Caller, Corpus, Filters, ServiceRefused, SettingsError
from parquetry.errors import BrokenDocument, DocumentError, ParquetryError, SkippedDocument
from parquetry.serving.corpus_results import Document, SearchResult
from tests.servers.knowledge_service import KnowledgeService
from tests.serving.program import start
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

TEXTS = {
    "leave.md": "# Leave\n\nEverybody has thirty days of holiday. They may be split.\n\n## Moving\n\nOne more day for "
    "moving house.\n",
    "oak.txt": "The oak table has four legs and costs 640 euros.",
    "power.md": "# Power cuts\n\nAfter a power cut the fan in bay 4 runs backwards.\n",
}
SETTINGS = '[corpus]\nroot = "corpus"\n[extraction]\nworkers = 1\n[[source]]\nname = "docs"\nuri = "docs"\n'


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Return two copies of one corpus, and a service over the second."""
    roots = []
    for _ in range(2):
        workshop = Workshop(tmp_path_factory.mktemp("contract"))
        for path, text in TEXTS.items():
            workshop.write(path, text)
        workshop.refresh()
        (workshop.root / "parquetry.toml").write_text(SETTINGS)
        roots.append(workshop.root)
    with KnowledgeService(roots[1]) as service:
        service.wait_ready()
        yield SimpleNamespace(disk=roots[0] / "parquetry.toml", service=service.url, roots=roots)


@pytest.fixture(params=["disk", "service"])
def corpus(request, places):
    place = getattr(places, request.param)
    with Corpus(place) as corpus:
        yield corpus


@pytest.fixture(scope="module")
def both(places):
    with Corpus(places.disk) as disk, Corpus(places.service) as service:
        yield disk, service


def texts(results):
    return [each.text for each in results]


# --- reads


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "text"},
        {"mode": "vector", "k": 2},
        {"level": "document"},
        {"filters": Filters(filename="*.md")},
        {"filters": Filters(media_type="text/plain")},
        {"min_relevance": 0.3, "k": 10},
        {"context": "moving house"},
    ],
    ids=repr,
)
def test_both_find_the_same(both, options):
    disk, service = (each.search("days of holiday", **options) for each in both)
    assert texts(disk) == texts(service)
    assert texts(disk)
    assert [each.relevance for each in disk] == pytest.approx([each.relevance for each in service], abs=1e-5)
    shared = {"chunk_id", "document_id", "text", "path", "filename", "source", "page", "start", "end", "chunk_index"}
    for one, other in zip(disk, service, strict=True):
        assert {name: one.row[name] for name in shared - {"document_id"}} == {
            name: other.row[name] for name in shared - {"document_id"}
        }
        assert one.load() == other.load()
        assert one.summary == other.summary


def test_result_leads_to_its_document(corpus):
    (found,) = corpus.search("oak table", k=1)
    assert found.load() == TEXTS["oak.txt"]
    assert found.summary == TEXTS["oak.txt"]
    assert (found.row["filename"], found.row["chunk_index"]) == ("oak.txt", 0)
    assert 0 <= found.relevance <= 1
    assert found.document_id == found.chunk_id.partition("-chunk-")[0]
    document = corpus.document(found.document_id)
    assert (document.filename, document["filename"], document.status) == ("oak.txt", "oak.txt", "indexed")
    assert document.load() == corpus.text(found.document_id) == TEXTS["oak.txt"]
    (chunk,) = corpus.chunks(found.document_id)
    assert (chunk.chunk_id, chunk.chunk_index, chunk.text) == (found.chunk_id, 0, TEXTS["oak.txt"])


def test_many_queries_are_answered_in_order(corpus):
    queries = ["oak table", "holiday", "fan"] * 40
    found = corpus.search_all(queries, k=1)
    assert len(found) == 120
    assert [texts(each) for each in found[:3]] == [texts(corpus.search(query, k=1)) for query in queries[:3]]
    assert found[:3] == found[3:6] or [texts(each) for each in found[:3]] == [texts(each) for each in found[3:6]]
    assert corpus.search_all([]) == []
    with pytest.raises(SettingsError, match="takes a list"):
        corpus.search_all("oak")


def test_search_by_vector(corpus):
    """The vector of a query finds what the query finds."""
    (vector,) = corpus.explain("oak table", mode="vector", vectors=True).vectors.values()
    assert len(vector) == 256
    found = corpus.search_by_vector(vector, k=2)
    assert texts(found) == texts(corpus.search("oak table", mode="vector", k=2))
    assert corpus.search_by_vector(vector, min_relevance=1.0) == ()
    with pytest.raises(SettingsError):
        corpus.search_by_vector([1.0, 2.0])


def test_documents_are_the_same(both):
    listed = [
        sorted((each.filename, each.media_type, each.size, each.chunks, each.status, each.visibility) for each in found)
        for found in (each.documents() for each in both)
    ]
    assert listed[0] == listed[1]
    assert len(listed[0]) == len(TEXTS)
    assert both[0].entries() == both[1].entries() == []


def test_candidates_and_absences_are_the_same(both):
    told = [each.explain("days of holiday", k=1) for each in both]
    assert [(each.chunk_id.rpartition("-")[2], each.dropped) for each in told[0].candidates] == [
        (each.chunk_id.rpartition("-")[2], each.dropped) for each in told[1].candidates
    ]
    assert len(told[0].results) == 1
    for place in both:
        power = next(each for each in place.documents() if each.filename == "power.md")
        absent = place.explain("days of holiday", power.document_id, k=1)
        assert absent.verdict in ("beyond-k", "no-candidate")
        assert place.explain("fan", power.document_id, k=1).verdict == "found"
        assert place.explain("fan", "0" * 36).verdict == "no-such-document"
        filtered = place.explain("fan", power.document_id, filters=Filters(filename="*.pdf"))
        assert (filtered.verdict, filtered.conditions) == ("filtered", ("filename: *.pdf",))


def test_callback_hears_every_search(places):
    for place in (places.disk, places.service):
        events = []
        with Corpus(place, on_search=events.append) as corpus:
            found = corpus.search("oak table", k=2)
            corpus.search_all(["fan", "zebra"], mode="text")
            assert [event.query for event in events] == ["oak table", "fan", "zebra"]
            assert events[0].results == found
            assert events[0].best_relevance == max(each.relevance for each in found)
            assert events[2].best_relevance is None
            assert {event.version for event in events} == {corpus.version}
            assert all(event.seconds > 0 for event in events)


@pytest.mark.parametrize("ask", [Corpus.document, Corpus.text, Corpus.chunks, Corpus.remove])
def test_unknown_document_is_refused(corpus, ask):
    with pytest.raises(SettingsError, match="no document"):
        ask(corpus, "0" * 36)


def test_what_a_service_does_not_do_is_told(places):
    with Corpus(places.service) as corpus:
        for ask in (lambda: corpus.sql("SELECT 1"), lambda: corpus.connection, lambda: corpus.settings):
            with pytest.raises(SettingsError, match="for a corpus on disk"):
                ask()
        for filters in (Filters(where="size > 1"), Filters(any_tags=("a",)), Filters(("other",))):
            with pytest.raises(SettingsError):
                corpus.search("oak", filters=filters)
    with pytest.raises(SettingsError, match="leave version and create"):
        Corpus(places.service, version=1)
    with pytest.raises(SettingsError, match="a token is for a service"):
        Corpus(places.disk, token="pqt_x")


def test_service_is_asked_without_loading_what_a_corpus_on_disk_needs(places):
    code = (
        "import sys; from parquetry import Corpus\n"
        f"with Corpus({places.service!r}) as corpus: print(len(corpus.search('oak')))\n"
        "print(*sorted(set(sys.modules) & {'duckdb', 'pyarrow', 'deltalake', 'prefect', 'numpy', 'fastapi'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == [""]


# --- tokens


@pytest.fixture
def token(places, request):
    """Return a token of the service with the parameters of a test, and a function that revokes it."""
    create = start("token", "create", "--name", "test", "--json", *request.param, cwd=places.roots[1])
    made = json.loads(create.stdout)
    yield made["token"], lambda: start("token", "revoke", made["id"], cwd=places.roots[1])
    start("token", "revoke", made["id"], cwd=places.roots[1])


RIGHTS = ("--right", "search", "--right", "read", "--right", "write")


@pytest.mark.parametrize("token", [("--user", "ada", "--namespace", "hr", *RIGHTS)], indirect=True)
def test_token_names_caller_and_namespace(places, token):
    plain, revoke = token
    with Corpus(places.service, token=plain) as corpus:
        added = corpus.add("Ada wants a window seat.", name="seat.md")
        assert corpus.document(added.document_id).visibility == "individual"
        assert [each.document_id for each in corpus.search("window seat")] == [added.document_id]
        assert [each.filename for each in corpus.documents()] == ["seat.md"]
        with Corpus(places.service) as operator:
            assert added.document_id not in {each.document_id for each in operator.documents()}
        with Corpus(places.service, token=plain, namespace="default") as other, pytest.raises(SettingsError):
            other.search("oak")
        with pytest.raises(SettingsError, match="the token names the caller"):
            corpus.search("seat", filters=Filters(caller=Caller("bob")))
        assert corpus.remove(added.document_id).removed == 1
        revoke()
        with pytest.raises(ServiceRefused) as refused:
            corpus.search("window seat")
        assert plain not in str(refused.value)
        assert refused.value.reason


@pytest.mark.parametrize("token", [("--user", "ada")], indirect=True)
def test_token_without_the_right_is_refused(places, token):
    with Corpus(places.service, token=token[0]) as corpus:
        assert corpus.search("oak table")
        with pytest.raises(ServiceRefused) as refused:
            corpus.add("text")
        assert refused.value.reason == "right-missing"
        with pytest.raises(ServiceRefused):
            corpus.refresh()


# --- changes


def test_text_is_added_replaced_and_removed(corpus):
    metadata = {"author": "Ada", "year": 2031}
    added = corpus.add("The lift is inspected in May.", name="lift.md", metadata=metadata, tags=["safety"])
    assert (added.filename, added.chunks, added.job) == ("lift.md", 1, None)
    (found,) = corpus.search("lift inspected", k=1)
    assert (found.document_id, found.text) == (added.document_id, "The lift is inspected in May.")
    document = corpus.document(added.document_id)
    assert (document.tags, document.visibility, document.media_type) == (("safety",), "public", "text/markdown")
    assert {name: document.metadata[name] for name in metadata} == {"author": "Ada", "year": 2031}
    assert corpus.search("lift", filters=Filters(tags=("safety",)))[0].document_id == added.document_id
    version = corpus.version
    again = corpus.add("The lift is inspected in June.", name="lift.md", metadata=metadata, tags=["safety"])
    assert again.document_id == added.document_id
    assert texts(corpus.search("lift inspected", k=1)) == ["The lift is inspected in June."]
    assert corpus.version > version
    removed = corpus.remove(added.document_id)
    assert (removed.removed, removed.version) == (1, corpus.version)
    assert added.document_id not in {each.document_id for each in corpus.search("lift inspected")}


def test_file_and_nameless_text_are_added_and_cleared(corpus, tmp_path):
    (tmp_path / "roof.md").write_text("# Roof\n\nThe roof is green.\n")
    file = corpus.add(tmp_path / "roof.md", shared=True)
    assert corpus.add(str(tmp_path / "roof.md"), shared=True).document_id == file.document_id
    text = corpus.add("The cellar is blue.")
    assert corpus.add("The cellar is blue.").document_id == text.document_id
    assert corpus.text(file.document_id).strip() == "# Roof\n\nThe roof is green."
    assert {each.filename for each in corpus.documents()} >= {"roof.md", "oak.txt"}
    cleared = corpus.clear()
    assert cleared.removed == 2
    assert {each.filename for each in corpus.documents()} == set(TEXTS)


def test_document_of_one_user_stays_when_what_is_shared_is_cleared(corpus):
    own = corpus.add("Ada likes elms.", name="own.md", shared=False, user_id="ada")
    corpus.add("All like oaks.", name="all.md", shared=True)
    assert corpus.document(own.document_id).visibility == "individual"
    assert corpus.clear(shared=True).removed == 1
    assert corpus.document(own.document_id).filename == "own.md"
    assert corpus.clear(shared=False).removed == 1


@pytest.mark.parametrize(
    ("content", "kind", "reason"),
    [(b"", SkippedDocument, "empty"), (b"PK\x03\x04 this is no document", BrokenDocument, "damaged")],
    ids=["empty", "damaged"],
)
def test_document_that_cannot_be_read_is_an_error_with_its_reason(corpus, tmp_path, content, kind, reason):
    (tmp_path / "bad.docx").write_bytes(content)
    with pytest.raises(DocumentError) as raised:
        corpus.add(tmp_path / "bad.docx")
    assert (type(raised.value), raised.value.reason) == (kind, reason)
    assert "bad.docx" in raised.value.detail
    corpus.clear()


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("missing.md", {}),
        ("a/b", {}),
        ("text", {"shared": False}),
        ("text", {"visibility": "organization"}),
        ("text", {"visibility": "public", "shared": False}),
        ("https://example.com/a", {"name": "a"}),
        ("text", {"tags": "policy"}),
    ],
)
def test_argument_that_does_not_fit_is_refused(corpus, content, options):
    before = corpus.version
    with pytest.raises(SettingsError):
        corpus.add(content, **options)
    assert corpus.version == before


def test_page_of_this_machine_is_refused(corpus):
    with pytest.raises(ParquetryError) as refused:
        corpus.add("http://127.0.0.1:1/secret")
    assert refused.value.reason == "forbidden-address"


def test_document_that_is_not_waited_for_comes_with_the_next_change(corpus):
    later = corpus.add("The stairs are steep.", name="stairs.md", wait=False)
    assert later.chunks == 0
    corpus.add("The door is wide.", name="door.md")
    assert "The stairs are steep." in texts(corpus.search("stairs", k=3)) or later.job
    assert corpus.clear().removed == 2


def test_rebuild_and_refresh(corpus, places, request):
    root = places.roots[0] if request.node.callspec.params["corpus"] == "disk" else places.roots[1]
    oak = next(each for each in corpus.documents() if each.filename == "oak.txt")
    rebuilt = corpus.rebuild(oak.document_id)
    assert rebuilt.report["documents"]["changed"] == 1
    assert rebuilt.version == corpus.version
    (root / "docs" / "new.md").write_text("# New\n\nSomething new.\n")
    refreshed = corpus.refresh("docs")
    assert refreshed.report["documents"]["added"] == 1
    (root / "docs" / "new.md").unlink()
    assert corpus.refresh().removed == 1
    with pytest.raises(SettingsError):
        corpus.refresh("nowhere")


def test_earlier_version_is_for_reading(places):
    with Corpus(places.disk, version=1) as corpus, pytest.raises(SettingsError, match="opened for reading"):
        corpus.add("text")


def test_new_corpus_is_made_on_request(tmp_path):
    with pytest.raises(SettingsError, match="no corpus"):
        Corpus(tmp_path / "new")
    with Corpus(tmp_path / "new", create=True) as corpus:
        added = corpus.add("The lift is inspected in May.")
        assert [each.document_id for each in corpus.search("lift")] == [added.document_id]


def test_searches_go_on_while_the_corpus_changes(tmp_path):
    """Readers are replaced under searches in other threads, and closed when the last of these is done."""
    with Corpus(tmp_path / "new", create=True) as corpus:
        corpus.add("The oak is green.", name="oak.md")
        done = threading.Event()
        found = []

        def search():
            # A pause leaves the processor to the changes, which take ten times as long otherwise.
            while not done.wait(0.02):
                found.append(texts(corpus.search("oak", mode="text")))

        with ThreadPoolExecutor(3) as threads:
            running = [threads.submit(search) for _ in range(3)]
            for number in range(3):
                corpus.add(f"The oak is {number}.", name="oak.md")
            done.set()
            for each in running:
                each.result()
        assert all(len(each) == 1 for each in found)
        assert {each[0] for each in found} <= {"The oak is green.", *(f"The oak is {number}." for number in range(3))}
        assert texts(corpus.search("oak")) == ["The oak is 2."]


def test_records_have_the_same_fields_on_both_sides(both):
    """Code written for one place runs with the other."""
    for kind, ask in ((SearchResult, lambda c: c.search("oak")[0]), (Document, lambda c: c.documents()[0])):
        found = [ask(each) for each in both]
        assert [type(each) for each in found] == [kind, kind]
        for name in (field.name for field in fields(kind)):
            assert type(getattr(found[0], name)) is type(getattr(found[1], name)) or name in ("row", "metadata")
