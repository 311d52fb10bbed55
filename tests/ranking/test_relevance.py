"""Relevance: bounded, monotone, the same whatever else is searched; files of calibrations; fit and measures."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.errors import SettingsError
from parquetry.ranking.relevance import (
    KINDS,
    LOG_ODDS,
    ROLES,
    Calibration,
    Curve,
    Evidence,
    relevance,
    reranked_relevance,
    words_evidence,
)
from parquetry.ranking.relevance_files import (
    bundled,
    bundled_words,
    calibrations_of,
    general_questions,
    parse_calibrations,
    with_calibration,
)
from parquetry.ranking.relevance_fit import calibration_error, fit_logistic, reliability
from parquetry.ranking.relevance_report import PRIOR, JudgedPair, curve_of, curves_of, held_out, report, weights_of
from parquetry.ranking.relevance_words import Occurrences, asked_stems, occurrences

cosines = st.none() | st.floats(-1, 1)
parts = st.none() | st.floats(0, 1)
(KNOWN,) = bundled().values()


def told(evidence):
    return relevance(evidence, KNOWN, bundled_words())


# --- the curve


@given(cosines, parts, st.floats(0, 6))
def test_relevance_is_between_nothing_and_one(cosine, coverage, amount):
    evidence = Evidence(cosine, coverage, None if coverage is None else amount)
    for calibration in (KNOWN, None):
        assert 0 <= relevance(evidence, calibration, bundled_words()) <= 1


@given(cosines, parts, st.floats(0, 6))
def test_relevance_that_is_shown_may_be_asked_for_as_the_least(cosine, coverage, amount):
    evidence = Evidence(cosine, coverage, None if coverage is None else amount)
    for calibration in (KNOWN, None):
        found = relevance(evidence, calibration, bundled_words())
        assert found >= round(found, 6)


@given(st.floats(-1, 1), parts, st.floats(0, 6), st.floats(0, 1), st.floats(0, 1), st.floats(0, 3))
def test_more_evidence_never_lowers_relevance(cosine, coverage, amount, nearer, wider, more):
    amount = None if coverage is None else amount
    weaker = Evidence(cosine, coverage, amount)
    stronger = Evidence(
        min(1.0, cosine + nearer),
        None if coverage is None else min(1.0, coverage + wider),
        None if amount is None else amount + more,
    )
    assert told(stronger) >= told(weaker)
    words_only = [Evidence(None, each.coverage, each.amount) for each in (weaker, stronger)]
    assert told(words_only[1]) >= told(words_only[0])


def test_unknown_embedder_has_its_cosine_and_words_alone_need_no_embedder():
    words = Evidence(coverage=0.5, amount=1.0)
    assert relevance(Evidence(0.4, 0.5, 1.0), None, bundled_words()) == 0.4
    assert relevance(Evidence(-0.4), None, bundled_words()) == 0
    assert relevance(words, None, bundled_words()) == relevance(words, KNOWN, bundled_words()) > 0
    assert relevance(Evidence(), KNOWN, bundled_words()) == 0


# --- words


def test_coverage_is_the_share_of_the_weight_and_counts_words_that_no_chunk_holds():
    found = Occurrences(Counter(oak=2), 10)
    coverage, amount = words_evidence({"oak": 3.0, "unheard": 1.0}, found, 100, 10.0)
    assert coverage == 0.75
    assert amount == pytest.approx(np.log1p(3 * 2 / (2 + 1.5) / np.log(202)))
    assert words_evidence({}, found, 100, 10.0) == (0.0, 0.0)


@given(st.integers(1, 20), st.integers(0, 20), st.integers(1, 500))
def test_another_occurrence_never_lowers_the_evidence(times, more, length):
    few, many = (
        words_evidence({"oak": 2.0}, Occurrences({"oak": count}, length), 50, 40.0) for count in (times, times + more)
    )
    assert many >= few


def test_occurrences_are_counted_by_stem():
    stems = asked_stems("How do I oil the oak tables?", "english")
    assert stems == {"oil": 1, "oak": 1, "tabl": 1}
    one, none = occurrences(["Oak: a table, tables and OAKS.", "Nothing."], stems, "english")
    assert one.times == {"oak": 2, "tabl": 2}
    assert (one.length, none.times) == (6, {})


# --- files


def test_package_has_the_bundled_embedder_with_the_data_it_was_measured_on():
    from importlib import resources

    text = (resources.files("parquetry.ranking.calibrations") / "wordllama.json").read_text("utf-8")
    (each,) = json.loads(text)["calibrations"]
    assert each["embedder"].startswith("wordllama:")
    assert {"date", "collections", "pairs", "held_out", "fitted"} <= set(each["measured"])
    assert set(each["curves"]) == set(ROLES["embedder"])
    assert len(general_questions()) == 40


def test_own_file_wins_and_keeps_other_embedders(tmp_path):
    curves = {kind: Curve(-1.0, {"cosine": 2.0} if kind != "text" else {}) for kind in ROLES["embedder"]}
    mine = Calibration("embedder", "mine@3", curves)
    text = with_calibration(None, mine, {"pairs": 1}, "mine.json")
    both = with_calibration(text, replace(mine, model="other@3"), {}, "mine.json")
    keys = {("embedder", "mine@3"), ("embedder", "other@3")}
    assert set(parse_calibrations(both, "mine.json")) == keys
    place = tmp_path / "mine.json"
    place.write_text(both)
    assert set(calibrations_of(str(place))) == {*keys, ("embedder", KNOWN.model)}
    assert calibrations_of(str(place))["embedder", "mine@3"] == mine


def test_a_file_holds_an_embedder_and_a_reranker_of_the_same_name():
    curves = {kind: Curve(-1.0, {}) for kind in ROLES["embedder"]}
    reranker = Calibration("reranker", "onnx:small", {"rerank": Curve(-1.0, {LOG_ODDS: 0.5})})
    text = with_calibration(None, Calibration("embedder", "onnx:small", curves), {}, "c.json")
    for told in (reranker, replace(reranker, curves={"rerank": Curve(-2.0, {LOG_ODDS: 0.5})}), reranker):
        text = with_calibration(text, told, {}, "c.json")
    found = parse_calibrations(text, "c.json")
    assert set(found) == {("embedder", "onnx:small"), ("reranker", "onnx:small")}
    assert found["reranker", "onnx:small"] == reranker


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=2), st.floats(-9, 9), st.floats(0, 9))
def test_a_better_score_of_a_reranker_is_never_less_relevant(scores, intercept, weight):
    calibration = Calibration("reranker", "x", {"rerank": Curve(intercept, {LOG_ODDS: weight})})
    for known in (calibration, None):
        low, high = (reranked_relevance(score, known) for score in sorted(scores))
        assert 0 <= low <= high <= 1


@pytest.mark.parametrize("score", [-0.5, 0.0, 0.0002, 0.3, 0.9, 0.9998, 1.0])
def test_a_curve_that_changes_nothing_leaves_the_score_as_it_is(score):
    same = Calibration("reranker", "x", {"rerank": Curve(0.0, {LOG_ODDS: 1.0})})
    assert reranked_relevance(score, same) == pytest.approx(reranked_relevance(score, None), abs=1e-4)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2, "calibrations": []}', '{"format": 1, "calibrations": [{}]}']
)
def test_file_that_is_no_calibration_is_named(text):
    with pytest.raises(SettingsError, match=r"c\.json holds no calibrations"):
        parse_calibrations(text, "c.json")


def test_weight_that_rewards_less_evidence_is_refused():
    curves = {
        kind: {"intercept": 0.0, "weights": {"coverage" if kind == "text" else "cosine": -1.0}}
        for kind in ROLES["embedder"]
    }
    told = {"format": 1, "calibrations": [{"embedder": "x", "curves": curves}]}
    with pytest.raises(SettingsError, match="holds no calibrations"):
        parse_calibrations(json.dumps(told), "c.json")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(SettingsError, match="parquetry calibrate"):
        calibrations_of(str(tmp_path / "none.json"))


# --- fit and measures


def test_fit_finds_the_curve_behind_the_answers():
    random = np.random.default_rng(4)
    signals = random.uniform(0, 1, (20_000, 2))
    answers = (random.uniform(0, 1, 20_000) < 1 / (1 + np.exp(2 - 4 * signals[:, 0]))).astype(float)
    intercept, weights = fit_logistic(signals, answers, np.ones(20_000))
    assert intercept == pytest.approx(-2, abs=0.25)
    assert weights == pytest.approx([4, 0], abs=0.4)


def test_signal_that_speaks_against_is_left_out():
    random = np.random.default_rng(5)
    signals = random.uniform(0, 1, (2_000, 2))
    answers = (signals[:, 0] - signals[:, 1] + random.normal(0, 0.3, 2_000) > 0).astype(float)
    _, weights = fit_logistic(signals, answers, np.ones(2_000))
    assert weights[0] > 0
    assert weights[1] == 0


def test_error_is_the_distance_of_predicted_and_observed():
    told, answers, weights = np.array([0.15, 0.15, 0.95, 1.0]), np.array([0.0, 0.0, 1.0, 1.0]), np.ones(4)
    assert calibration_error(told, answers, weights) == pytest.approx((0.3 + 0.05) / 4)
    assert [(each.count, each.observed) for each in reliability(told, answers, weights)] == [(2, 0.0), (2, 1.0)]


def pair(number, kind, cosine, relevant, rank=1, collection="a"):
    evidence = {"cosine": cosine, "coverage": cosine, "amount": cosine, LOG_ODDS: cosine}
    return JudgedPair(collection, f"q{number}", kind, "hybrid", evidence, relevant, rank)


def some_pairs(collection="a"):
    random = np.random.default_rng(6)
    made = []
    for number in range(200):
        cosine = random.uniform(0.3, 0.9)
        made.append(pair(number, "answered", cosine, random.uniform() < cosine, collection=collection))
        made.append(pair(number, "foreign", random.uniform(0, 0.4), False, collection=collection))
    return made


def test_prior_holds_where_the_evidence_says_nothing():
    mute = [pair(n, "answered" if n % 2 else "foreign", 0.0, n % 8 == 1) for n in range(80)]
    assert curve_of(mute, ("cosine",)).relevance({"cosine": 0.0}) == pytest.approx(PRIOR, abs=0.01)


def test_documents_left_out_are_not_held_against_their_neighbours():
    """Without the judged document, others answer that nobody judged."""
    pairs = some_pairs()
    removed = [pair(n, "removed", 0.9, False) for n in range(200)]
    assert curve_of([*pairs, *removed], ("cosine",)) == curve_of(pairs, ("cosine",))


def test_collections_and_kinds_weigh_the_same_whatever_was_found():
    pairs = [pair(0, "answered", 0.5, True), *(pair(1, "answered", 0.5, False, rank) for rank in (1, 2, 3))]
    pairs += [pair(9, "foreign", 0.1, False), pair(0, "answered", 0.5, True, collection="b")]
    assert weights_of(pairs) == pytest.approx([0.25, 0.25 / 3, 0.25 / 3, 0.25 / 3, 0.5, 0.5])


def test_thresholds_count_what_stays_and_which_questions_find_nothing():
    pairs = [
        pair(0, "answered", 0.9, True),
        pair(0, "answered", 0.5, False, rank=2),
        pair(1, "answered", 0.4, True),
        pair(2, "foreign", 0.6, False),
        pair(3, "foreign", 0.1, False),
        pair(0, "answered", 0.99, True, rank=6),
    ]
    done = report("hybrid", pairs, np.array([each.evidence["cosine"] for each in pairs]))
    assert (done.answered, done.unanswerable) == (2, 2)
    at = {each.threshold: each for each in done.thresholds}
    assert at[0.5].kept == pytest.approx(1 / 3, abs=1e-4)
    assert at[0.5].precision == 0.5
    assert at[0.5].answered == 0.5
    assert at[0.5].silent == {"foreign": 0.5}
    assert at[0.7].precision == 1


def test_error_is_of_the_collection_left_out():
    easy, other = (
        some_pairs("a"),
        [JudgedPair("b", p.query, p.kind, p.mode, p.evidence, False, 1) for p in some_pairs()],
    )
    both = {mode: [] for mode in KINDS}
    pairs = [
        JudgedPair(p.collection, p.query, p.kind, mode, {s: p.evidence[s] for s in KINDS[mode]}, p.relevant, p.rank)
        for mode in both
        for p in (*easy, *other)
    ]
    curves = curves_of(pairs)
    assert set(curves) == set(KINDS)
    for mode, each in held_out(pairs).items():
        # Told from the collection that answers, the other is overrated.
        assert each.error > 0.1, mode
