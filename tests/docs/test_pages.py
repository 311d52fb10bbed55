"""Everything that the pages name exists: commands, settings, links, columns."""

import re

import pytest
from typer.main import get_command

from parquetry.serving.access.audit import EVENTS
from parquetry.serving.cli.commands import application
from parquetry.settings.sections import Settings
from tests.documentation import OWN_RULES, PAGES, ROOT, anchors_of, blocks_of, links_of, prose_of, text_of

COMMANDS = get_command(application()).commands
OWN_PAGES = [page for page in PAGES if page not in OWN_RULES]
LANGUAGES = {"sh", "console", "yaml", "json", "python", "sql", "toml", "text"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_command_has_help_and_a_place_in_the_docs(name):
    command = COMMANDS[name]
    assert command.help
    assert [option.name for option in command.params if not option.help] == []
    pages = ["README.md", "docs/operators.md", "docs/analysts.md"]
    assert [page for page in pages if re.search(rf"\bparquetry {name}\b", text_of(page))]


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_a_page_names_exist(page):
    code = [block.code for block in blocks_of(page) if block.language in ("sh", "console")]
    inline = re.findall(r"`([^`\n]+)`", prose_of(page))
    named = {
        found[1]
        for text in [*code, *inline]
        for found in re.finditer(r"(?:^|\$ |[;&|] *)parquetry ([a-z]+)", text, re.MULTILINE)
    }
    assert named <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_options_that_a_page_shows_exist(page):
    for block in blocks_of(page):
        if block.language in ("sh", "console"):
            for line in block.code.splitlines():
                if found := re.match(r"(?:\$ )?parquetry ([a-z]+) (.*)", line):
                    command = COMMANDS[found[1]]
                    # For a group, use the command in it that comes next.
                    command = getattr(command, "commands", {}).get(found[2].split()[0], command)
                    known = {option for parameter in command.params for option in parameter.opts}
                    assert set(re.findall(r"(?<= )--[a-z-]+", " " + found[2])) <= known, line


@pytest.mark.parametrize("page", PAGES)
def test_settings_that_a_page_names_exist(page):
    sections = {name: _model(field.annotation) for name, field in Settings.model_fields.items()}
    for section, key in re.findall(rf"`({'|'.join(sections)})\.([a-z_]+)[` ]", prose_of(page)):
        # Names of audit events look like settings.
        assert key in sections[section].model_fields or f"{section}.{key}" in EVENTS, f"{section}.{key}"


def _model(annotation):
    return getattr(annotation, "__args__", (annotation,))[0]


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page):
    for link in links_of(page):
        target, _, anchor = link.partition("#")
        file = ((ROOT / page).parent / target).resolve() if target else ROOT / page
        assert file.is_relative_to(ROOT)
        assert file.exists(), link
        if anchor:
            assert anchor in anchors_of(file.relative_to(ROOT).as_posix()), link


def test_every_page_is_reached_from_the_readme():
    seen, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        if page in seen or not page.endswith(".md"):
            continue
        seen.add(page)
        for link in links_of(page):
            file = ((ROOT / page).parent / link.partition("#")[0]).resolve()
            if file.is_file():
                todo.append(file.relative_to(ROOT).as_posix())
    assert set(PAGES) <= seen


@pytest.mark.parametrize("page", OWN_PAGES)
def test_blocks_of_a_page_say_what_they_are(page):
    """A block without a language would escape all tests."""
    assert {block.language for block in blocks_of(page)} <= LANGUAGES


def test_targets_that_the_readme_names_exist():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for page in PAGES:
        for target in re.findall(r"(?:\$ |`)make (\w+)", text_of(page)):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("page", PAGES)
def test_modules_that_a_page_names_exist(page):
    named = {path.removeprefix("parquetry/") for path in re.findall(r"`([\w./-]+/[\w-]+\.py)`", prose_of(page))}
    assert sorted(path for path in named if not any((ROOT / top / path).exists() for top in ("", "parquetry"))) == []


def test_drawing_of_the_rooms_names_every_package():
    drawing = next(block.code for block in blocks_of("docs/architecture.md") if block.language == "text")
    words = set(re.findall(r"\w+", drawing))
    packages = {path.parent.name for path in (ROOT / "parquetry").glob("*/__init__.py")}
    inner = {
        path.parent.name
        for room in ("storage", "tasks", "flows", "serving")
        for path in (ROOT / room).glob("*/__init__.py")
    }
    assert packages | inner <= words
