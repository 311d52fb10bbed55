"""The command `parquetry`."""

from __future__ import annotations

import atexit
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import PurePath

from typer.exceptions import Abort, TyperException

from parquetry.errors import ParquetryError, classify
from parquetry.garbage import collect_seldom
from parquetry.masked_output import guard_output
from parquetry.masking import masked
from parquetry.printing import tell
from parquetry.serving.cli.commands import application
from parquetry.serving.cli.suggestions import no_such_option
from parquetry.settings.errors import MOST_SHOWN
from parquetry.storage.publishes import begin, outcome
from parquetry.storage.replaced_files import reread

_INTERRUPTED = 130


def main() -> None:
    """The program: runs the command line and exits."""
    collect_seldom()
    guard_output()
    _leave(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command; every refusal is one clear line on stderr and the right exit code, which is returned."""
    begin()
    try:
        given = list(arguments) or ["--help"]
        app = application(given[0])
        # A command that reads prints when it has read; until then it may begin again.
        code = int(reread(lambda: app(given, prog_name="parquetry", standalone_mode=False)) or 0)
        sys.stdout.flush()
    except TyperException as error:
        return _fail(2, *_shortened([_wrong_use(error)], arguments))
    except ParquetryError as error:
        return _fail(error.exit_code, *_shortened(error.lines, arguments))
    except (KeyboardInterrupt, Abort):
        return _fail(_INTERRUPTED, f"interrupted; {outcome()}")
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough (Typer makes an exit of that).
        _discard_output()
        return 0
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return _fail(2, *_shortened([f"{error.filename} cannot be opened: {error.strerror}"], arguments))
        _discard_output()
        return _fail(4, *_shortened([f"{classify(error).detail}; {outcome()}"], arguments))
    # Typer makes this of a KeyboardInterrupt, without a word.
    return _fail(code, f"interrupted; {outcome()}") if code == _INTERRUPTED else code


def _discard_output() -> None:
    """Discard buffered output: it cannot be written, and Python must not try again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(code: int) -> None:
    """Exit without tearing the interpreter down.

    That would take a tenth of the time of a search. After a Prefect run, its daemon threads keep objects of DuckDB
    alive to the very end, which the binding layer reports as leaks, a hundred lines on stderr. After a command that was
    given up, threads may still wait for a service that does not answer.
    """
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _wrong_use(error: TyperException) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "parquetry"
    message = error.format_message().replace("Value error, ", "").rstrip(".")
    unknown = getattr(error, "option_name", None)
    if unknown is not None and error.message.startswith("No such option") and context is not None:
        options = [option for each in context.command.params for option in each.opts if option.startswith("-")]
        message = no_such_option(unknown, options)
    return f"{message} (see `{command} --help`)"


def _shortened(lines: Sequence[str], arguments: Sequence[str]) -> list[str]:
    """Messages that repeat of no argument more than a person reads."""
    kept = [masked(line) for line in lines]
    for each in arguments:
        # All of it, the value behind `--option=`, and that behind `-o`.
        for long in (each, each.partition("=")[0], each.partition("=")[2], each[2:]):
            if len(long) > MOST_SHOWN:
                for form in {masked(each) for each in (long, str(PurePath(long)), repr(long)[1:-1])}:
                    # The end of a path tells more than its middle.
                    half = MOST_SHOWN // 2
                    left = f"{form[:half]}… ({len(form) - MOST_SHOWN:,} more characters) …{form[-half:]}"
                    kept = [line.replace(form, left) for line in kept]
    return kept


def _fail(code: int, *lines: str) -> int:
    """Print an error and return the exit code that goes with it."""
    for line in lines:
        tell(f"parquetry: {masked(line)}", err=True)
    return code


if __name__ == "__main__":
    main()
