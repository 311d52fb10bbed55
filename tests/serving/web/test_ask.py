"""Chats in the dashboard, over a real socket, in front of a scripted model: whole, streamed, stopped, judged."""

import json
import re
import threading
from types import SimpleNamespace

import pytest

from parquetry.flows.pipelines.documents import Request, run_refresh
from parquetry.serving.cli.progress import Observer
from parquetry.settings.sections import parse_settings
from parquetry.tasks.engine.base import DirectEngine
from tests.servers.http_app import running_app
from tests.servers.model_service import ModelService, call, call_stream, cut, failing, said, text_stream, whole
from tests.serving.web.browsing import Page, Visitor
from tests.workshop import Workshop

pytestmark = pytest.mark.slow

TEXTS = {"leave.md": "# Leave\n\nEverybody has thirty days of holiday.\n", "oak.txt": "The oak table costs 640 euros."}
AGENTS = [
    {"name": "helper", "model": "m-large", "system_prompt": "Be brief.", "top_k": 2},
    {"name": "narrow", "model": "m", "top_k": 1},
    {"name": "hr-helper", "model": "m", "namespaces": ["hr"]},
]
QUESTION = "How many days of holiday?"
HOSTILE = "Thirty [1]. <script>alert(1)</script> <img src=x onerror=alert(1)> [go](http://evil.example/) [77]"
LISTED = {"object": "list", "data": [{"id": "llama3.2", "object": "model"}]}


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    """Run an application with agents in front of a model service, which requires tokens."""
    workshop = Workshop(tmp_path_factory.mktemp("talk"))
    for path, text in TEXTS.items():
        workshop.write(path, text)
    private = workshop.root / "private"
    private.mkdir()
    (private / "vault.md").write_text("The holiday vault of eve opens with evesword.")
    sources = [
        {"name": "docs", "uri": str(workshop.folder)},
        {"name": "eve", "uri": str(private), "visibility": "individual", "user_id": "eve"},
    ]
    tables = {"corpus": {"root": str(workshop.root / "corpus")}, "extraction": {"workers": 1}, "source": sources}
    run_refresh(Request(parse_settings(tables, "test")), DirectEngine(), Observer())
    with ModelService() as service:
        more = {
            "upstream": {"base_url": service.base_url, "api_key": "sk-own-key-of-the-service"},
            "agent": AGENTS,
            "serve": {"token_required": True},
        }
        with running_app(parse_settings({**tables, **more}, "test")) as app:
            with app.resources.follower.reader(wait=60):
                pass
            create = app.resources.tokens.create
            tokens = {
                "ada": create("ada", user_id="ada", namespaces=["default"], rights=["search", "read"])[1],
                "eve": create("eve", user_id="eve", rights=["search", "read"])[1],
                "writer": create("writer", rights=["write", "read"])[1],
            }
            yield SimpleNamespace(app=app, service=service, tokens=tokens)


@pytest.fixture
def model(talk):
    """Return a function that scripts the answers to chats; the list of models is always there."""
    talk.service.forget()
    script = []

    def rule(asked):
        if asked.path == "/v1/models":
            return whole(LISTED)
        return script.pop(0) if script else None

    talk.service.rule = rule

    def answers(*given):
        script.extend(given)

    yield answers
    assert script == [], "never asked for"
    talk.service.check()


@pytest.fixture
def person(talk):
    def sign_in(name):
        visitor = Visitor(talk.app.url)
        visitor.sign_in(talk.tokens[name])
        return visitor

    return sign_in


def asked_of(service):
    return [each for each in service.requests if each.path != "/v1/models"]


def form_of(page):
    return next(form for form in page.forms if form.action.startswith("/ask"))


def ask(visitor, page=None, **given):
    return visitor.send(form_of(page or visitor.open("/ask")), **{"question": QUESTION, "model": "helper", **given})


def streamed(visitor, **given):
    """Return the lines of a streamed answer."""
    form = form_of(visitor.open("/ask"))
    data = {**form.values, "question": QUESTION, "model": "helper", **given}
    response = visitor.client.post("/ask/stream", data=data, headers={"Origin": str(visitor.client.base_url)})
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.text.splitlines()]


def test_answer_cites_its_sources_which_lead_to_the_place_in_the_document(talk, model, person):
    ada = person("ada")
    assert re.findall(r'<option value="([^"]+)"', ada.open("/ask").html) == ["helper", "narrow", "llama3.2"]
    model(said("Everybody has **thirty days** [1]."))
    page = ask(ada)
    assert page.status == 200
    (sent,) = asked_of(talk.service)
    assert (sent.body["model"], sent.key) == ("m-large", "sk-own-key-of-the-service")
    assert "[1] [Source: leave.md]" in sent.context
    assert "evesword" not in sent.context
    # Nothing of the browser's goes on.
    assert b"python-httpx" not in sent.everything
    assert "#source-1" in page.links
    (link,) = [
        each
        for each in page.links
        if each.startswith("/documents/")
        and "chunk=0" in each
        and "leave" in page.html[page.html.index(each) : page.html.index(each) + 200].lower()
    ]
    assert "thirty days of holiday" in ada.open(link.partition("#")[0]).text


def test_answer_of_a_model_is_text(talk, model, person):
    model(said(HOSTILE), text_stream(HOSTILE))
    ada = person("ada")
    page = ask(ada)
    *_, last = streamed(ada)
    for html, links in ((page.html, page.links), (last["turn"], re.findall(r'href="([^"]*)"', last["turn"]))):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "<img src=x" not in html
        assert not [each for each in links if "evil" in each]
        assert "#source-77" not in links


def test_answer_is_streamed_in_parts_of_the_page_that_end_as_the_whole_one(talk, model, person):
    answer = "# Leave\nThirty days [1].\n\n- one\n- two\n\n```\ncode\n```\nThe end."
    step = threading.Semaphore(0)
    slow = text_stream(answer)
    step.release(len(slow.pieces))
    model(slow, said(answer))
    ada = person("ada")
    first, *parts, last = streamed(ada)
    assert "2 passages found" in first["sources"]
    assert [each.keys() for each in parts] == [{"keep", "blocks"}] * len(parts)
    page = ask(ada)
    whole_answer = re.search(r'<div class="answer">(.*?)</div>', page.html, re.DOTALL)[1]
    assert re.search(r'<div class="answer">(.*?)</div>', last["turn"], re.DOTALL)[1] == whole_answer
    (turn,) = json.loads(last["turns"])
    assert turn[1:4] == [QUESTION, answer, "helper"]


def test_further_question_goes_with_the_earlier_turns_and_numbers_go_on(talk, model, person):
    ada = person("ada")
    model(said("Thirty days [1]."), said("As said [1], and [3]."))
    page = ask(ada)
    page = ask(ada, page, question="And the oak table?")
    _, second = asked_of(talk.service)
    told = [(each["role"], each["content"]) for each in second.body["messages"] if each["role"] != "system"]
    assert told == [("user", QUESTION), ("assistant", "Thirty days [1]."), ("user", "And the oak table?")]
    assert "[3] [Source: oak.txt]" in second.context
    assert [each for each in page.links if each.startswith("#source-")] == ["#source-1", "#source-1", "#source-3"]
    assert page.text.index(QUESTION) < page.text.index("And the oak table?")


def test_sources_of_another_person_do_not_come_with_a_chat(talk, model, person):
    model(said("The word is secret [1]."))
    eve = person("eve")
    page = ask(eve, question="Which word opens the holiday vault?")
    assert "vault.md" in page.text
    turns = form_of(page).values["turns"]
    model(said("No."))
    seen = ask(person("ada"), turns=turns, question="What is it?")
    assert seen.status == 200
    assert "vault" not in re.sub(r'value="[^"]*"', "", seen.html).replace("Which word opens the holiday vault?", "")
    # And they cannot be judged.
    ada = person("ada")
    (turn, *_) = json.loads(turns)
    refused = judge(ada, ada.open("/ask"), f"{turn[0]}:good", turns=turns)
    assert refused.status == 404
    assert list(talk.app.resources.feedback.answers()) == []


def judge(visitor, page, value, **given):
    form = form_of(page)
    data = {**form.values, "judge": value, "model": "helper", **given}
    return Page(visitor.client.post("/ask/judgement", data=data, headers={"Origin": str(visitor.client.base_url)}))


def test_judgement_of_an_answer_feeds_what_eval_reads(talk, model, person):
    feedback, ada = talk.app.resources.feedback, person("ada")
    model(said("Thirty days [1]."), said("As said [1]; it costs 640 euros [3]."))
    page = ask(ada)
    (turn,) = json.loads(form_of(page).values["turns"])
    page = judge(ada, page, f"{turn[0]}:good")
    assert page.status == 200
    (kept,) = feedback.list(None)
    assert (kept.query, kept.relevant, kept.user_id, kept.answer_id) == (QUESTION, True, "ada", turn[0])
    assert kept.chunk_id is not None
    assert [given["value"] for tag, given in page.tags if tag == "button" and given.get("aria-pressed") == "true"] == [
        f"{turn[0]}:none"
    ]
    # A question that needs the turns before it says nothing by itself.
    page = ask(ada, page, question="And the table?")
    following = json.loads(form_of(page).values["turns"])[1]
    judge(ada, page, f"{following[0]}:good")
    assert [each.query for each in feedback.list(None)] == [QUESTION]
    page = judge(ada, page, f"{turn[0]}:bad")
    assert list(feedback.list(None)) == []
    assert {(each.query, each.good, each.model) for each in feedback.answers()} == {
        (QUESTION, False, "helper"),
        ("And the table?", True, "helper"),
    }
    for one in (turn, following):
        page = judge(ada, page, f"{one[0]}:none")
    assert list(feedback.answers()) == []
    for wrong in ("nobody:good", f"{turn[0]}:fine", ""):
        assert judge(ada, page, wrong).status == 422


def test_stop_ends_the_request_to_the_model_service(talk, model, person):
    step = threading.Semaphore(0)
    slow = text_stream("One two three four five.")
    model(type(slow)(slow.pieces, headers=slow.headers, step=step))
    ada = person("ada")
    form = form_of(ada.open("/ask"))
    data = {**form.values, "question": QUESTION, "model": "helper"}
    origin = {"Origin": str(ada.client.base_url)}
    with ada.client.stream("POST", "/ask/stream", data=data, headers=origin) as response:
        step.release(3)
        assert next(response.iter_lines())
        assert not talk.service.gone.is_set()
    assert talk.service.gone.wait(120)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (failing(401, "bad key"), 502, "refuses the key of this service"),
        (failing(404, "model 'x' not found"), 404, "does not know this model. Choose another"),
        (failing(429, "slow down"), 429, "Wait a little, and ask again. It says: slow down"),
        (failing(400, "maximum context length is 2048 tokens"), 400, "too long for this model"),
        (failing(500, "<b>boom</b>"), 500, "its own log says why. It says: <b>boom</b>"),
        (whole([1]), 502, "does not understand"),
    ],
    ids=["key", "model", "busy", "long", "failed", "broken"],
)
def test_failure_of_the_model_service_is_told_in_plain_words_and_the_question_stays(
    talk, model, person, answer, status, words
):
    model(answer, answer)
    ada = person("ada")
    page = ask(ada)
    assert page.status == status
    assert words in page.text
    assert f">{QUESTION}</textarea>" in page.html
    assert "sk-own" not in page.html
    form = form_of(page)
    data = {**form.values, "question": QUESTION, "model": "helper"}
    response = ada.client.post("/ask/stream", data=data, headers={"Origin": str(ada.client.base_url)})
    assert response.status_code >= 400
    assert words in Page(response).text


def test_answer_that_breaks_off_is_told(talk, model, person):
    model(cut(text_stream("Thirty days of holiday."), 4))
    lines = streamed(person("ada"))
    assert "The model service broke off its answer. Ask again." in lines[-1]["error"]


def test_tools_of_the_model_are_carried_out_and_what_they_find_is_a_source(talk, model, person):
    calls = call_stream(call("search_knowledge", query="oak table", top_k=1))
    model(calls, text_stream("Thirty days [1]; the table costs 640 euros [2]."))
    first, *_, last = streamed(person("ada"), model="narrow")
    assert "1 passage found" in first["sources"]
    cards = re.findall(r'id="source-(\d)".*?<p class="place">(.*?)[<]', last["turn"], re.DOTALL)
    assert cards == [("1", "leave.md"), ("2", "oak.txt")]


@pytest.mark.parametrize("path", ["/ask", "/ask/stream"])
def test_what_must_not_leave_does_not(talk, model, person, path):
    ada = person("ada")
    form = form_of(ada.open("/ask"))
    origin = {"Origin": str(ada.client.base_url)}
    turns = json.dumps([["a", "q", f"see {talk.tokens['eve']}", "m", 1, [], False, ""]])
    for given, status in (
        ({"question": f"my token is {talk.tokens['ada']}"}, 400),
        ({"question": QUESTION, "turns": turns}, 400),
        ({"question": "  "}, 422),
        ({"question": "x" * 9000}, 422),
        ({"question": QUESTION, "turns": "[1]"}, 422),
        ({"question": QUESTION, "model": ""}, 422),
    ):
        data = {**form.values, "model": "helper", **given}
        assert ada.client.post(path, data=data, headers=origin).status_code == status, given
    data = {**form.values, "question": QUESTION, "model": "helper", "form_token": "0" * 64}
    assert ada.client.post(path, data=data, headers=origin).status_code == 403
    assert asked_of(talk.service) == []
    # A token without the right has no chat.
    writer = person("writer")
    assert writer.open("/ask").status == 403
    assert "/ask" not in writer.open("/").links


def test_without_a_model_the_page_says_what_to_set(house):
    page = Visitor(house.url).open("/ask")
    assert "No language model is set" in page.text
    assert "base_url" in page.text
    assert "--upstream" in page.text
    assert [form for form in page.forms if form.action.startswith("/ask")] == []


def test_missing_list_of_models_leaves_the_agents(talk, model, person):
    talk.service.rule = lambda asked: failing(503, "loading") if asked.path == "/v1/models" else None
    page = person("ada").open("/ask")
    assert page.status == 200
    assert "The list of models is missing. The model service has failed." in page.text
    assert re.findall(r'<option value="([^"]+)"', page.html) == ["helper", "narrow"]
