"""Contracts of importers: their arguments, and files of another format."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_bytes
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line, unexplained

#: Files that are no trace of any tool.
_FOREIGN = {"foreign.txt": b"not a trace\n", "foreign.bin": bytes(range(256)), "foreign.json": b'{"not": ["a", 1]}\n'}
_ABSENT = "absent.trace"


def _parser(subject: Subject) -> argparse.ArgumentParser:
    """A parser with the importer's arguments and those that every importer has."""
    parser = argparse.ArgumentParser(prog=subject.name, allow_abbrev=False)
    subject.member.add_arguments(parser)
    parser.add_argument("--plugin", help="a plug-in")
    parser.add_argument("-o", "--output", required=True, help="the trace file to write")
    return parser


def _unexplained(subject: Subject) -> Iterator[str]:
    yield from not_a_line("SUMMARY", subject.member.SUMMARY)
    parser = _parser(subject)
    yield from unexplained(parser)
    parser.format_help()  # a single % in a help text is an error


def _arguments(subject: Subject, file: Path, output: Path) -> argparse.Namespace:
    """The arguments with which a file is imported: every required one is the file."""
    parser, arguments = _parser(subject), ["-o", str(output)]
    for action in parser._actions:
        if action.required and action.dest != "output":
            arguments += [*action.option_strings[:1], str(file)]
    return parser.parse_args(arguments)


def _imported(subject: Subject) -> Iterator[str]:
    output = subject.folder / "imported.bin"
    for name, content in _FOREIGN.items():
        write_bytes(subject.folder / name, content)
    for name in (*_FOREIGN, _ABSENT):
        try:
            args = _arguments(subject, subject.folder / name, output)
            subject.member.import_trace(args, "import", lambda what: None)
            yield f"{name} is imported: expected an error"
        except (BuddysimError, OSError):
            pass
        except Exception as error:
            yield f"{name}: {type(error).__name__}: {error}: expected a BuddysimError"
        if left := sorted(path.name for path in subject.folder.glob("imported*")):
            yield f"{name}: {', '.join(left)} is left"
            for path in left:
                (subject.folder / path).unlink()


CONTRACTS = {
    "importer": (
        Contract("its summary is a line, its help screen explains each argument", _unexplained),
        Contract("a file of another format is refused in one line, and nothing is written", _imported),
    )
}
