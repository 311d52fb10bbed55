"""An unknown namespace, source or tag is refused with similar names, not answered with an empty result."""

import pytest

pytestmark = pytest.mark.slow

SETTINGS = """[corpus]
root = "corpus"
[extraction]
workers = 1
[[source]]
name = "docs"
uri = "docs"
tags = ["manual"]
[[source]]
name = "staff"
uri = "staff"
namespace = "hr"
visibility = "individual"
user_id = "ada"
tags = ["payroll"]
[[source]]
name = "later"
uri = "later"
namespace = "sales"
visibility = "organization"
org_id = "acme"
tags = ["offers"]
"""

NO_HRR = "no namespace 'hrr' in corpus {corpus}; did you mean hr?"
NO_SOURCE = "no source is configured in namespace hrr; did you mean hr?"


@pytest.fixture
def office(desk):
    (desk.folder / "parquetry.toml").write_text(SETTINGS)
    (desk.folder / "staff").mkdir()
    (desk.folder / "staff" / "pay.md").write_text("Salaries are paid on the last day.")
    assert desk("refresh", "--direct", "docs", "staff").code == 0
    return desk


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("search", "x", "--namespace", "hrr"), NO_HRR),
        (("search", "x", "--namespace", "hr", "--namespace", "zzz"), "no namespace 'zzz' in corpus {corpus}; it has "),
        (("search", "x", "--source", "dosc"), "no source 'dosc' in corpus {corpus}; did you mean docs?"),
        (("search", "x", "--tag", "payrol"), "no tag 'payrol' in corpus {corpus}; did you mean payroll?"),
        (("search", "x", "--any-tag", "manuel"), "no tag 'manuel' in corpus {corpus}; did you mean manual?"),
        (("documents", "--namespace", "hrr"), NO_HRR),
        (("entries", "--namespace", "hrr"), NO_HRR),
        (("decisions", "--namespace", "hrr"), NO_HRR),
        (("export", "out", "--user", "ada", "--namespace", "hrr"), NO_HRR),
        (("remove", "oak.txt", "--namespace", "hrr"), NO_HRR),
        (("restore", "--version", "1", "--namespace", "hrr"), NO_HRR),
        (("reindex", "--all", "--namespace", "hrr"), "no document of {corpus} is in namespace 'hrr'; did you mean hr?"),
        (("refresh", "--namespace", "hrr"), NO_SOURCE),
        (("plan", "--namespace", "hrr"), NO_SOURCE),
        (("watch", "--namespace", "hrr"), NO_SOURCE),
        (("refresh", "staf"), "nor the name of a source (docs, staff, later); did you mean staff?"),
        (("refresh", "staff", "--namespace", "default"), "source staff belongs to namespace hr; leave out --namespace"),
    ],
)  # fmt: skip
def test_unknown_name_is_refused_with_the_nearest(office, arguments, complaint):
    told = office(*arguments)
    assert told.code == 2
    assert complaint.format(corpus="corpus") in told.complaint


@pytest.mark.parametrize(
    "option", [("--namespace", "sales"), ("--source", "later"), ("--tag", "offers"), ("--any-tag", "offers")]
)
def test_configured_name_is_known_before_its_first_refresh(office, option):
    assert office("search", "oak", *option, "--json").json["results"] == []
    assert office("search", "oak", *option, "--org", "acme", "--json").json["results"] == []
    assert office("search", "oak", *option, "--org", "other").code == 2


@pytest.mark.parametrize(
    ("option", "there", "nowhere"),
    [("--namespace", "hr", "xy"), ("--source", "staff", "stuff"), ("--tag", "payroll", "payrule")],
)
def test_name_that_a_caller_may_not_see_is_refused_as_one_that_is_nowhere(office, option, there, nowhere):
    hidden, unknown = (office("search", "paid", option, name, "--user", "eve") for name in (there, nowhere))
    assert hidden.code == unknown.code == 2
    assert hidden.complaint.replace(there, nowhere) == unknown.complaint
    assert [
        each["filename"] for each in office("search", "paid", option, there, "--user", "ada", "--json").json["results"]
    ]


def test_namespace_that_was_deleted_can_still_be_restored(office):
    text = SETTINGS.replace('namespace = "hr"\n', 'namespace = "people"\n')
    assert office("namespaces", "delete", "hr", "--yes").code == 0
    (office.folder / "parquetry.toml").write_text(text)
    assert office("search", "paid", "--namespace", "hr").code == 2
    assert office("restore", "--version", "3", "--namespace", "hr").code == 0
    assert office("search", "paid", "--namespace", "hr").code == 0
