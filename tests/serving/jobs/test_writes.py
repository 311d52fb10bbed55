"""Small writes: published together, each told its own end; nothing that was handed in is lost."""

import json
from dataclasses import replace

import pytest

from parquetry import ids
from parquetry.model import Access
from parquetry.serving.jobs.execute import carry_out
from parquetry.serving.jobs.writes import publish_writes
from parquetry.settings.sections import override
from parquetry.sources.uploads.identity import UPLOADS
from parquetry.storage.lake.current import current_rows
from parquetry.storage.lake.lake import Lake

pytestmark = pytest.mark.slow

BROKEN = b"PK\x03\x04 this is no document at all"


def test_document_is_published_and_its_job_says_so(jobs):
    job = jobs.put("oak.md", "# Oak\n\nOak is hard.\n", uploaded_by="ada")
    jobs.work()
    done = jobs.done(job)
    assert (done.state, done.reason) == ("completed", None)
    (document,) = done.result["documents"]
    assert document | {"document_id": "", "warnings": []} == {
        "document_id": "",
        "namespace": "default",
        "path": "oak.md",
        "filename": "oak.md",
        "media_type": "text/markdown",
        "chunks": 1,
        "status": "indexed",
        "error": None,
        "warnings": [],
    }
    assert done.result["version"] == jobs.publishes()
    assert jobs.found("hard") == ["oak.md"]
    assert jobs.lines == [f"1 ingest job done, version {jobs.publishes()}"]


def test_writes_that_wait_together_are_one_publish(jobs):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    before = jobs.publishes()
    many = [jobs.put(f"{number}.md", f"Board {number}.") for number in range(20)]
    gone = jobs.remove("oak.md")
    jobs.work()
    assert jobs.publishes() == before + 1
    assert {jobs.done(job).state for job in (*many, gone)} == {"completed"}
    assert [jobs.done(job).result["documents"][0]["path"] for job in many] == [f"{n}.md" for n in range(20)]
    assert jobs.done(gone).result["removed"][0]["chunks"] == 1
    assert "oak.md" not in jobs.paths()
    assert len(jobs.paths()) == 20


def test_same_content_again_publishes_nothing(jobs):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    before = jobs.publishes()
    again = jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    assert jobs.publishes() == before
    assert jobs.done(again).result["documents"][0]["status"] == "indexed"


def test_document_that_cannot_be_read_fails_its_own_job_only(jobs):
    good, bad = jobs.put("oak.md", "Oak is hard."), jobs.put("broken.docx", BROKEN)
    empty = jobs.put("empty.txt", " ")
    jobs.work()
    assert jobs.done(good).state == "completed"
    failed = jobs.done(bad)
    assert (failed.state, failed.reason) == ("failed", "damaged")
    assert failed.detail.startswith("broken.docx: ")
    assert failed.result["documents"][0]["error"]["stage"] == "extract"
    assert (jobs.done(empty).state, jobs.done(empty).reason) == ("failed", "no-text")
    assert jobs.found("hard") == ["oak.md"]

    # It fails again, and is never an empty success.
    again = jobs.put("broken.docx", BROKEN)
    jobs.work()
    assert jobs.done(again).reason == "damaged"


def test_one_bad_document_of_several_fails_the_job_with_all_outcomes(jobs):
    paths = []
    for name, content in (("oak.md", b"Oak is hard."), ("broken.docx", BROKEN)):
        upload, _ = jobs.uploads.put("default", name, content, filename=name)
        paths.append({"namespace": "default", "path": upload.path})
    job = jobs.ask("ingest", "default", uploads=paths)
    jobs.work()
    assert (jobs.done(job).state, jobs.done(job).reason) == ("failed", "damaged")
    assert [each["status"] for each in jobs.done(job).result["documents"]] == ["indexed", "failed"]


def test_upload_that_is_gone_fails_with_what_to_do(jobs):
    job = jobs.put("oak.md", "Oak is hard.")
    jobs.uploads.delete("default", "oak.md")
    jobs.work()
    assert (jobs.done(job).state, jobs.done(job).reason) == ("failed", "vanished")
    assert "hand it in again" in jobs.done(job).detail


def test_document_of_a_source_is_removed_as_by_the_command(jobs):
    (jobs.docs / "ash.md").write_text("Ash is light.")
    jobs.ask("refresh")
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    gone = jobs.remove("ash.md", source="docs")
    jobs.work()
    assert jobs.done(gone).result["removed"][0]["chunks"] == 1
    assert jobs.paths() == ["oak.md"]
    assert (jobs.docs / "ash.md").exists()


def test_removal_of_what_is_not_there_removes_nothing(jobs):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    gone = jobs.remove("ash.md")
    jobs.work()
    assert jobs.done(gone).state == "completed"
    assert [each["chunks"] for each in jobs.done(gone).result["removed"]] == [0]
    assert jobs.paths() == ["oak.md"]


def test_document_handed_in_after_its_removal_was_asked_for_stays(jobs):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    gone = jobs.remove("oak.md")
    again = jobs.put("oak.md", "Oak is very hard.")
    jobs.work()
    assert {jobs.done(job).state for job in (gone, again)} == {"completed"}
    assert jobs.found("very") == ["oak.md"]

    # The same bytes keep the time at which they were first handed in.
    gone = jobs.remove("oak.md")
    again = jobs.put("oak.md", "Oak is very hard.")
    jobs.work()
    assert jobs.done(again).result["documents"][0]["status"] == "indexed"
    assert jobs.found("very") == ["oak.md"]


def test_removal_names_the_state_that_was_to_be_removed(jobs):
    """Times tell nothing of what came first: a clock that is set back would take the newer document out."""
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    seen = jobs.uploads.get("default", "oak.md").etag
    document = ids.document_id("default", UPLOADS, "oak.md")
    place = {"namespace": "default", "document_id": document}
    # Handed in by a job that came, and ended, before the removal of what was there before it.
    jobs.put("oak.md", "Oak is very hard.")
    jobs.work()
    gone = jobs.ask("remove", "default", documents=[place | {"etag": seen}])
    jobs.work()
    assert (jobs.done(gone).state, jobs.found("very")) == ("completed", ["oak.md"])
    jobs.ask("remove", "default", documents=[place | {"etag": jobs.uploads.get("default", "oak.md").etag}])
    jobs.work()
    assert jobs.paths() == []


def test_document_removed_after_it_was_handed_in_is_gone(jobs):
    job = jobs.put("oak.md", "Oak is hard.")
    gone = jobs.remove("oak.md")
    jobs.work()
    assert jobs.done(job).result["documents"][0]["status"] == "removed"
    assert jobs.done(gone).state == "completed"
    assert jobs.paths() == []
    assert jobs.uploads.get("default", "oak.md") is None


def test_clear_takes_out_what_the_owner_handed_in(jobs):
    own, acme = Access("individual", user_id="ada"), Access("organization", org_id="acme")
    jobs.put("mine.md", "Mine.", access=own, uploaded_by="ada")
    jobs.put("ours.md", "Ours.", access=acme, uploaded_by="ada")
    jobs.put("all.md", "All.", uploaded_by="ada")
    jobs.put("bobs.md", "Bob's.", access=Access("individual", user_id="bob"), uploaded_by="bob")
    jobs.put("mine.md", "Mine elsewhere.", namespace="other", access=own, uploaded_by="ada")
    jobs.work()
    ada = {"namespace": "default", "user_id": "ada", "org_id": "acme"}
    job = jobs.ask("clear", "default", shared=False, **ada)
    jobs.work()
    assert jobs.done(job).result["removed"] == 1
    assert sorted(jobs.paths()) == ["all.md", "~@acme/ours.md", "~bob/bobs.md"]
    job = jobs.ask("clear", "default", shared=True, **ada)
    jobs.work()
    assert jobs.done(job).result["removed"] == 2
    assert jobs.paths() == ["~bob/bobs.md"]
    assert jobs.paths("other") == ["~ada/mine.md"]
    job = jobs.ask("clear", None, namespace=None, shared=None, user_id=None, org_id=None)
    jobs.work()
    assert jobs.done(job).result["removed"] == 2
    assert (jobs.paths(), jobs.paths("other")) == ([], [])


def test_clear_leaves_what_was_handed_in_after_it_was_asked_for(jobs):
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    job = jobs.ask("clear", "default", namespace="default", shared=None, user_id=None, org_id=None)
    jobs.put("ash.md", "Ash is light.")
    jobs.work()
    assert jobs.done(job).result["removed"] == 1
    assert jobs.paths() == ["ash.md"]


def test_process_that_ended_after_its_publish_tells_the_same(jobs):
    """A removal that is done again still says how many chunks went."""
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    gone = jobs.remove("oak.md")
    claimed = jobs.store.claim()
    carry_out(jobs.context, claimed)
    assert jobs.done(gone).result["removed"][0]["chunks"] == 1
    removing = gone.payload["documents"][0] | {"chunks": 1}
    jobs.store._database.write(
        "UPDATE jobs SET state = 'running', result = NULL, pid = 4194305, process = '1.0', progress = ? WHERE id = ?",
        (json.dumps({"removing": [removing]}), gone.id),
    )
    assert jobs.store.recover() == 1
    before = jobs.publishes()
    jobs.work()
    assert jobs.done(gone).result["removed"][0]["chunks"] == 1
    assert jobs.publishes() == before


def test_outage_of_the_embedder_fails_the_jobs_and_a_retry_succeeds(served):
    jobs, service = served
    jobs.put("oak.md", "Oak is hard.")
    jobs.work()
    service["up"] = False
    first, second = jobs.put("ash.md", "Ash is light."), jobs.put("elm.md", "Elm is rare.")
    jobs.work()
    for job in (first, second):
        assert (jobs.done(job).state, jobs.done(job).reason) == ("failed", "outage")
        assert "embedding service" in jobs.done(job).detail
    service["up"] = True
    again = jobs.put("ash.md", "Ash is light.")
    jobs.work()
    assert jobs.done(again).state == "completed"
    assert jobs.found("light") == ["ash.md"]


def test_outage_before_the_first_document_fails_the_job(served):
    jobs, service = served
    service["up"] = False
    job = jobs.put("ash.md", "Ash is light.")
    jobs.work()
    assert (jobs.done(job).state, jobs.done(job).reason) == ("failed", "outage")
    service["up"] = True
    jobs.store.submit("ingest", "default", job.payload, {})
    jobs.work()
    assert jobs.found("light") == ["ash.md"]


def test_budget_that_is_reached_fails_the_jobs_with_its_name(served):
    jobs, _ = served
    price = {"embedding": {"price_per_million_tokens": 1e6}, "refresh": {"budget_usd": 1e-9}}
    costly = override(jobs.settings, price)
    jobs.context = replace(jobs.context, settings=costly)
    job = jobs.put("ash.md", "Ash is light.")
    jobs.work()
    assert (jobs.done(job).state, jobs.done(job).reason) in [("failed", "refused"), ("failed", "budget")]
    assert "budget" in jobs.done(job).detail


class Overtaken:
    """An engine before whose first publish another run publishes the same documents.

    Args:
        engine: carries out the steps.
        other: publishes as the other run does.
    """

    def __init__(self, engine, other):
        self._engine, self._other = engine, [other]

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def step(self, name, work):
        if name == "publish" and self._other:
            self._other.pop()()
        return self._engine.step(name, work)


def test_document_that_another_run_publishes_at_the_same_time_is_the_one_handed_in(jobs):
    jobs.put("oak.md", "Oak is hard.", metadata={"floor": 1})
    jobs.work()
    job = jobs.put("oak.md", "Oak is hard.", metadata={"floor": 2})

    def other():
        lake = Lake(jobs.settings.corpus.root, create=True)
        (row,) = current_rows(lake.snapshot())
        lake.publish(lake.snapshot(), [replace(row, etag="other", metadata={"floor": 9})], "run-other")

    (claimed,) = jobs.store.claim()
    with jobs.context.writes.engine() as engine:
        outcomes = publish_writes(jobs.context, [claimed], Overtaken(engine, other))
    assert outcomes[job.id].failure is None
    (row,) = current_rows(Lake(jobs.settings.corpus.root).snapshot())
    assert row.metadata["floor"] == 2
