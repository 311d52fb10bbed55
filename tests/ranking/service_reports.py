"""A made test collection: reports from workshops, and questions about them in their own words and in others.

Many reports share a machine, a fault or a place; few share two, one has all three. Other machines and places are
mentioned beside.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from parquetry.ranking.evaluation import CollectionDocument, Dataset

MACHINES = (
    ("lift", "elevator"), ("boiler", "furnace"), ("lorry", "truck"), ("conveyor", "assembly line"),
    ("refrigerator", "cold storage"), ("fan", "ventilator"), ("pump", "water supply"), ("printer", "copying machine"),
    ("camera", "video surveillance"), ("lathe", "turning machine"), ("oven", "bakery stove"), ("gate", "entrance door"),
    ("crane", "hoist"), ("generator", "emergency power supply"), ("radiator", "heating"), ("saw", "cutting blade"),
    ("scale", "weighing machine"), ("telephone", "switchboard"), ("lamp", "lighting"), ("tractor", "farm vehicle"),
    ("sewing machine", "stitching equipment"), ("dishwasher", "cleaning of dishes"), ("server", "computer"),
    ("bicycle", "two-wheeler"),
)  # fmt: skip
"""name of a machine in reports, and another in questions"""
FAULTS = (
    ("got stuck between two positions", "jammed"), ("leaks oil on the floor", "drips lubricant"),
    ("makes a loud grinding noise", "sounds terrible"), ("smells of smoke", "risk of fire"),
    ("starts only at the third attempt", "does not start"), ("has rust on its frame", "corrosion"),
    ("trips the fuse", "short circuit"), ("runs too hot", "overheating"), ("shakes at full speed", "vibration"),
    ("stops without any warning", "sudden shutdown"), ("shows a wrong reading", "inaccurate display"),
    ("lost a bolt", "missing screw"),
)  # fmt: skip
"""words for a fault in reports, and others in questions"""
PLACES = tuple(
    f"{first} {second}"
    for first in ("Arden", "Birch", "Coldwater", "Dunlin", "Eastmoor", "Foxley", "Garnet", "Hollow")
    for second in ("Mill", "Wharf", "Quarry", "Yard", "Depot")
)
_REMEDIES = (
    "A technician replaced the worn part and tested it for an hour.",
    "The maker has been asked for a spare part, which should arrive within two weeks.",
    "It was cleaned, greased and put back into service on the same day.",
    "Until it is repaired, staff must not use it.",
    "The inspector signed it off after a second visit.",
    "Nobody was hurt, and the insurance was informed.",
)
_ASIDES = (
    "The {machine} next to it works as it should.",
    "On the way, the visitor from {place} saw the {machine} as well.",
    "The {machine} that was repaired in {place} last year had the same age.",
    "Costs are shared with {place}.",
    "A new {machine} has been ordered for {place}.",
    "The caretaker asked when the {machine} will be looked at.",
)
_WANTED = 30
"""questions of each kind"""


@dataclass(frozen=True, slots=True)
class _Report:
    number: str
    machine: int
    fault: int
    place: str


def service_reports(count: int) -> Dataset:
    """Return a collection of reports, the same at each call, with questions of four kinds.

    A question names a report by its number, by machine, fault and place, by the same with another word for the machine,
    or asks for all reports of a machine with a fault in other words.

    Args:
        count: number of reports.
    """
    chance = random.Random(20310412)
    places = {pair: chance.sample(PLACES, len(PLACES)) for pair in product(range(len(MACHINES)), range(len(FAULTS)))}
    drawn = [(*pair, places[pair][turn]) for turn, pair in product(range(len(PLACES)), places)][:count]
    chance.shuffle(drawn)
    reports = [_Report(f"SR-2031-{number:04d}", *each) for number, each in enumerate(drawn)]
    documents = tuple(CollectionDocument(each.number, _title(each), _text(each, chance)) for each in reports)
    asked = list(_questions(reports, chance))
    queries = {f"q{number}": question for number, (question, _) in enumerate(asked)}
    judgements = {f"q{number}": dict.fromkeys(answers, 1) for number, (_, answers) in enumerate(asked)}
    return Dataset("service-reports", documents, queries, judgements, 0)


def _title(report: _Report) -> str:
    return f"Visit to {report.place}" if int(report.number[-1]) % 2 else ""


def _text(report: _Report, chance: random.Random) -> str:
    machine, fault = MACHINES[report.machine][0], FAULTS[report.fault][0]
    asides = [
        each.format(machine=chance.choice(MACHINES)[0], place=chance.choice(PLACES))
        for each in chance.sample(_ASIDES, 4)
    ]
    first, second = chance.sample(_REMEDIES, 2)
    sentences = [f"The {machine} in {report.place} {fault}.", asides[0], first, *asides[1:], second]
    return f"Report {report.number}. " + " ".join(sentences)


def _questions(reports: Sequence[_Report], chance: random.Random) -> Iterator[tuple[str, list[str]]]:
    """Yield questions, each with the numbers of the reports that answer it."""
    for report in chance.sample(reports, _WANTED):
        yield f"What does {report.number.lower()} say?", [report.number]
    for name in (0, 1):
        for report in chance.sample(reports, _WANTED):
            yield f"{MACHINES[report.machine][name]} {FAULTS[report.fault][0]}, {report.place}", [report.number]
    for report in chance.sample(reports, _WANTED):
        alike = [each.number for each in reports if (each.machine, each.fault) == (report.machine, report.fault)]
        yield f"{MACHINES[report.machine][1]}: {FAULTS[report.fault][1]}", alike
