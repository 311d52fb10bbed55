"""Entities of a document's own are expanded, within bounds."""

from __future__ import annotations

import pytest

from parquetry.errors import BrokenDocument
from parquetry.extract.xml.entities import FREE_EXPANSION, MAX_ENTITY, MAX_NESTING, expand_entities
from parquetry.extract.xml.tree import parse


def read(subset: str, content: str) -> str:
    """Return the text and the attribute `a` of an element `x`."""
    root, warnings = parse(f"<!DOCTYPE x [{subset}]>\n<x>{content}</x>")
    assert not warnings
    return "".join(root.itertext()) + "".join(f" {inner.tag}={inner.get('a')}" for inner in root if inner.get("a"))


def refused(subset: str, content: str) -> str:
    with pytest.raises(BrokenDocument) as caught:
        parse(f"<!DOCTYPE x [{subset}]><x>{content}</x>")
    assert caught.value.reason == "unsafe-xml"
    return str(caught.value)


@pytest.mark.parametrize(
    ("subset", "content", "text"),
    [
        ('<!ENTITY v "2.1">', "Version &v;", "Version 2.1"),
        ("<!ENTITY n 'Pump &v;'><!ENTITY v '2.1'>", "&n;, &n;", "Pump 2.1, Pump 2.1"),
        ('<!ENTITY v "2.1"><!ENTITY v "3.0">', "&v;", "2.1"),
        ('<!-- <!ENTITY v "1.0"> --><?x <!ENTITY v "1.1"> ?><!ENTITY v "2.1">', "&v;", "2.1"),
        ('<!ENTITY m "<b>bold</b> &#38;amp; more">', "&m;", "bold & more"),
        ('<!ENTITY v "&#233;t&#xe9;">', "&v;", "été"),
        ("<!ENTITY q 'say \"yes\" > no'>", "<y a=\"&q;\"/><y a='&q;'/>", ' y=say "yes" > no y=say "yes" > no'),
        ('<!ENTITY v "2.1">', "<![CDATA[&v;]]><!-- &v; -->", "&v;"),
        ('<!ENTITY lt "&#38;#60;"><!ENTITY amp "&#38;#38;">', "&lt;&amp;", "<&"),
        ('<!ENTITY v "2.1"><!ELEMENT x ANY><!ATTLIST y a CDATA "&v;">', "<y/>", " y=2.1"),
        ('<!ENTITY v "2.1"><!ENTITY fig SYSTEM "fig.gif" NDATA gif><!NOTATION gif SYSTEM "gif">', "&v;", "2.1"),
        ('<!ENTITY % more "<!ENTITY w \'x\'>"> %more; <!ENTITY v "2.1">', "&v;", "2.1"),
    ],
    ids=[
        "plain", "nested", "first counts", "in a comment", "markup", "characters", "quotes", "in code", "predefined",
        "default", "picture", "parameter",
    ],
)  # fmt: skip
def test_declared_entity_is_read_where_it_stands(subset: str, content: str, text: str):
    assert read(subset, content) == text


@pytest.mark.parametrize("subset", ['<!ENTITY e SYSTEM "e.xml">', '<!ENTITY % p PUBLIC "p" "p.ent"> %p;'])
def test_entity_that_is_a_file_is_refused(subset: str):
    assert "refers to another file: the entity" in refused(subset, "text")


def test_bounds_of_an_entity_are_those_of_what_it_expands_to():
    assert len(read(f'<!ENTITY a "{"x" * MAX_ENTITY}">', "&a;")) == MAX_ENTITY
    refused(f'<!ENTITY a "{"x" * MAX_ENTITY}"><!ENTITY b "&a;y">', "&b;")
    refused(f'<!ENTITY a "{"x" * (MAX_ENTITY + 1)}">', "&a;")


def test_entity_that_is_too_long_harms_no_document_that_does_not_use_it():
    assert read(f'<!ENTITY a "{"x" * (MAX_ENTITY + 1)}">', "text") == "text"


def test_all_entities_of_a_document_have_one_bound():
    times = FREE_EXPANSION // MAX_ENTITY
    subset = f'<!ENTITY a "{"x" * MAX_ENTITY}">'
    assert len(read(subset, "&a;" * times)) == FREE_EXPANSION
    refused(subset, "&a;" * (times + 1))
    refused(f'{subset}<!ATTLIST y a CDATA "{"&a;" * (times // 2)}">', "&a;" * (times // 2 + 1))
    padding = "y" * 2 * FREE_EXPANSION
    assert len(read(subset, padding + "&a;" * (times + 1))) == 3 * FREE_EXPANSION + MAX_ENTITY


def test_references_that_stand_in_default_values_count():
    assert "more text" in refused(f'<!ENTITY a "{"x" * MAX_ENTITY}"><!ATTLIST y a CDATA "{"&a;" * 20}">', "<y/>")


def test_entities_refer_to_each_other_only_so_deep():
    def chain(count: int) -> str:
        return '<!ENTITY e0 "x">' + "".join(f'<!ENTITY e{n} "&e{n - 1};">' for n in range(1, count))

    assert read(chain(MAX_NESTING), f"&e{MAX_NESTING - 1};") == "x"
    refused(chain(MAX_NESTING + 1), f"&e{MAX_NESTING};")
    assert "refers to itself" in refused('<!ENTITY a "&b;"><!ENTITY b "&a;">', "&a;")


def test_names_of_characters_are_known_and_other_names_stay():
    root, warnings = parse('<!DOCTYPE x PUBLIC "-//OASIS//DTD DocBook XML V4.5//EN" "d.dtd"><x>a&nbsp;&mdash;&foo;</x>')
    assert root.text == "a\u00a0—&foo;"
    assert warnings == ["entities that it does not declare are kept as they are: &foo;"]
    root, warnings = parse("<x>&copy;&LT;</x>")
    assert root.text == "©<"
    assert warnings == ["entities that it does not declare are read as in HTML: &copy;, &LT;"]


def test_warning_names_a_few_of_many_entities():
    _, warnings = parse(f"<x>{''.join(f'&none{n};' for n in range(7))}</x>")
    assert warnings[0].endswith(": &none0;, &none1;, &none2;, &none3;, &none4; and 2 more")


def test_lines_keep_their_numbers():
    text = '<!DOCTYPE x [\n<!ENTITY v\n"2.1">\n<!-- \n -->\n]>\n<x>&v;\n</x>'
    assert expand_entities(text).text.splitlines().index("<x>2.1") == text.splitlines().index("<x>&v;")
