"""Terminal output holds no control sequences, hides nothing, and goes through one module."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquetry.printing import json_text, plain_text, tell, tell_wrapped, visible, visible_text
from tests.product_modules import ROOMS
from tests.terminal_signs import obeyed

ROOT = Path(__file__).parents[1]
_CHARACTERS = st.characters(codec=None, exclude_categories=[])
_TEXTS = st.text(st.one_of(_CHARACTERS, st.sampled_from("\\u{1b}ax\x1b\x9b\u202e\u200d\ufe0f\n\t😀ی")), max_size=40)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b]52;c;Y2F0\x07", r"\u{1b}]52;c;Y2F0\u{7}", id="clipboard"),
        pytest.param("\x9b31m\x7f", r"\u{9b}31m\u{7f}", id="upper-controls"),
        pytest.param("a\r\nb\tc", r"a\u{d}\u{a}b\u{9}c", id="line-ends"),
        pytest.param("a\x85b\u2028c", r"a\u{85}b\u{2028}c", id="line-ends-of-unicode"),
        pytest.param("fdp.\u202eexe\u202c", r"fdp.\u{202e}exe\u{202c}", id="direction"),
        pytest.param("read\u200bme\ufeff \xadx", r"read\u{200b}me\u{feff} \u{ad}x", id="no-width"),
        pytest.param("ad\u200dmin a\ufe0f", r"ad\u{200d}min a\u{fe0f}", id="joiner-in-latin"),
        pytest.param("😀\ufe0f\ufe01\ufe02", "😀\ufe0f\\u{fe01}\\u{fe02}", id="smuggled-in-selectors"),
        pytest.param("a\U000e0041", r"a\u{e0041}", id="tags"),
        pytest.param("caf\udce9", r"caf\u{dce9}", id="bytes-that-are-not-utf-8"),
        pytest.param(r"\u{1b} \x1b \u001b", r"\u{5c}u{1b} \x1b \u001b", id="looks-like-a-sign"),
    ],
)
def test_what_a_terminal_obeys_or_hides_is_shown(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Größe 30 °C – “Öl” C:\\new\\x", id="latin"),
        pytest.param("می\u200cخواهم שלום 日本\u3000語", id="scripts"),
        pytest.param("👩\u200d💻 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 ™\ufe0f 👍🏽", id="emoji"),
        pytest.param("🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", id="flag"),
        pytest.param("葛\U000e0100城市", id="variant-of-a-letter"),
    ],
)
def test_what_people_write_stays(text):
    assert visible(text) == text
    assert visible_text(text) == text


@given(_TEXTS, _TEXTS)
def test_different_names_are_shown_differently_in_one_line(one, other):
    assert not obeyed(visible(one))
    assert (visible(one) == visible(other)) == (one == other)


@given(_TEXTS)
def test_text_keeps_its_lines_and_tabs_alone(text):
    shown = visible_text(text)
    assert not obeyed(shown, allowed="\n\t")
    assert (shown.count("\n"), shown.count("\t")) == (text.count("\n"), text.count("\t"))
    assert visible_text(shown) == shown


@given(st.dictionaries(_TEXTS, _TEXTS))
def test_json_parses_to_the_same_value(value):
    text = json_text(value)
    assert not obeyed(text)
    assert json.loads(text) == value


def test_a_line_is_one_line(capsys):
    tell("failed a\nparquetry: all is well", err=True)
    tell_wrapped("a title\nof two lines", 15, first="[1] ", hanging="    ")
    told = capsys.readouterr()
    assert told.err == "failed a\\u{a}parquetry: all is well\n"
    assert told.out == "[1] a title\\u{a\n    }of two\n    lines\n"


LIBRARIES = r"""
import logging, threading, warnings
from parquetry.masked_output import guard_output
guard_output()
evil = "a\x1b[2J\x9b\u202e\nparquetry: forged"
logging.getLogger("parquetry").warning("failed %s", evil)
logging.getLogger("parquetry").warning(evil)
try:
    raise OSError(evil)
except OSError:
    logging.getLogger("somebody.else").exception("it is %s", evil)
warnings.warn(evil, stacklevel=1)
thread = threading.Thread(target=lambda: [][0 if evil else 1])
thread.start()
thread.join()
raise ValueError(evil)
"""


def test_logs_warnings_and_tracebacks_of_libraries_go_the_same_way():
    done = subprocess.run([sys.executable, "-c", LIBRARIES], capture_output=True, cwd=ROOT, check=False)
    told = done.stderr.decode()
    assert not obeyed(told, allowed="\n")
    assert told.count("\\u{1b}[2J") >= 5
    assert "failed a\\u{1b}[2J\\u{9b}\\u{202e}\\u{a}parquetry: forged\n" in told
    assert "IndexError" in told


WAYS = {
    **dict.fromkeys(("print", "input", "typer.echo", "typer.secho", "typer.prompt", "click.echo", "click.secho"), ()),
    "traceback.print_exc": (),
    # The log of a service's processes, whose records are masked and made visible as they are made.
    "logging.basicConfig": ("parquetry/telemetry/json_logs.py",),
    # Lines of JSON, in which control characters are replaced.
    "logging.StreamHandler": ("parquetry/telemetry/json_logs.py",),
    # A file: lines of JSON, in which control characters were replaced beforehand.
    "os.write": ("serving/access/audit.py",),
    "typer.confirm": ("serving/cli/output.py",),
    # A table and a progress bar of texts in which control characters were replaced beforehand.
    "Console": ("serving/cli/output.py", "serving/cli/progress.py"),
    # A worker's word to the process that started it.
    # Also frames of files, and a picture or a reason, for the process that started this one.
    "sys.stdout": (
        *("parquetry/printing.py", "serving/service/answering.py", "parquetry/extract/drawing.py"),
        "parquetry/sources/archive/seven_zip_process.py",
    ),
    "sys.stderr": ("parquetry/printing.py", "parquetry/telemetry/json_logs.py"),
}
"""ways to write to a terminal -> modules that may use them"""
HARMLESS = ("flush", "isatty", "fileno")
"""stream methods that any module may call"""


def ways_in(source):
    """Return the ways of writing to a terminal that a module uses, with their line numbers."""
    tree = ast.parse(source)
    asked = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in HARMLESS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.stdout", "sys.stderr"):
            if id(node) not in asked:
                yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in WAYS:
            yield ast.unparse(node.func), node.lineno


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_written_by_another_way(room):
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        for way, line in ways_in(file.read_text("utf-8")):
            assert name in WAYS[way], f"{name}:{line}: {way}; use parquetry.printing"


def test_another_way_would_be_found():
    source = "print(1)\nsys.stdout.write('a')\nf(file=sys.stderr)\nsys.stdout.flush()\ntyper.echo('a')\n"
    assert sorted(ways_in(source), key=lambda way: way[1]) == [
        ("print", 1),
        ("sys.stdout", 2),
        ("sys.stderr", 3),
        ("typer.echo", 5),
    ]


@pytest.mark.parametrize("around", ["{}", "a{}b", "1{}2\n\t\u00e9"], ids=["alone", "ascii", "other"])
def test_plain_text_keeps_of_the_controls_tabs_and_line_ends_alone(around):
    for letter in map(chr, range(128)):
        kept = letter if letter.isprintable() or letter == "\t" else "\n" if letter in "\n\r\v\f" else ""
        assert plain_text(around.format(letter)) == around.format(kept), ascii(letter)


def test_json_of_ascii_has_no_controls():
    for letter in map(chr, range(128)):
        text = json_text(f"a{letter}b")
        assert text.isprintable(), ascii(letter)
        assert json.loads(text) == f"a{letter}b"
