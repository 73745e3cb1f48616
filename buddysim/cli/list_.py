"""``python -m buddysim list``: what there is of every kind, plug-ins too, and what one thing declares about itself."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from buddysim.report.screen import Part

NAME = "list"
TASK = "machine and models"
ORDER = 420
HELP = """list schemes, compressors, networks, figures and other kinds

Without a kind, the command lists the names of every kind. With a kind, it describes each name. With a name, it lists
the parameters, options and counters of that one. Plug-ins (--plugin FILE) are included."""

Rows = list[tuple[str, ...]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", nargs="?", help="for example 'replay scheme' or replay-scheme")
    parser.add_argument("name", metavar="NAME", nargs="?", help="one of that kind")


def run(args: argparse.Namespace) -> int:
    from buddysim.base.errors import BuddysimError
    from buddysim.base.hints import hint, shortened
    from buddysim.base.kinds import HOMES, registry
    from buddysim.report.screen import description_table, print_screen

    if args.kind is None:
        print_screen([description_table((), [(kind, ", ".join(registry(kind).names())) for kind in HOMES])])
        return 0
    kind = args.kind.replace("-", " ").lower()
    kind = next((each for each in HOMES if each.lower() == kind), kind)
    if kind not in HOMES and kind.removesuffix("s") in HOMES:
        kind = kind.removesuffix("s")
    if kind not in HOMES:
        raise BuddysimError(f"list: kind {shortened(args.kind)}: expected one of {', '.join(HOMES)}{hint(kind, HOMES)}")
    known = registry(kind)
    if args.name is None:
        rows = [(name, summary(name, thing)) for name, thing in known.items()]
        print_screen([description_table((kind, "description"), rows)])
        return 0
    thing = known.find(args.name)
    parts: list[Part] = [description_table((kind, "description"), [(args.name, summary(args.name, thing))])]
    for headings, declared in details(kind, args.name, thing):
        parts += ["", description_table(headings, declared)]
    print_screen(parts)
    return 0


def summary(name: str, thing: Any) -> str:
    """One line about a thing: its ``SUMMARY`` (of this name, if it has several), ``TITLE``, ``HELP`` or docstring."""
    for attribute in ("SUMMARY", "TITLE", "HELP", "summary"):
        said = getattr(thing, attribute, None)
        if isinstance(said, Mapping):
            said = said.get(name)
        if said:
            return str(said).partition("\n")[0]
    function = getattr(thing, "func", thing)  # what a functools.partial calls
    return (function.__doc__ or "").strip().partition("\n")[0].rstrip(".")


def details(kind: str, name: str, thing: Any) -> Iterator[tuple[list[str], Rows]]:
    """Tables of what a thing declares: headings and rows."""
    from buddysim.machine.scheme_sections import section_name

    own = getattr(thing, "SECTION", None)
    sections = {section_name(kind, name): own} if own else getattr(thing, "SECTIONS", {})
    for section, declared in sections.items():
        keys: Rows = [
            (f"{section}.{key}", _text(value), declared.model_fields[key].description or "")
            for key, value in declared().model_dump().items()
        ]
        yield ["key of machine files", "default", "description"], keys
    options = getattr(thing, "OPTIONS", None)
    if options:
        yield ["option", "default", "description"], [_option(key, option) for key, option in options.items()]
    parameters = getattr(thing, "parameters", None)
    if parameters is not None:
        yield ["parameter", "default", "description"], list(parameters())
    counters = {**getattr(thing, "COUNTERS", {}), **getattr(thing, "ENGINE_COUNTERS", {})}
    if counters:
        yield ["counter", "definition"], list(counters.items())


def _text(value: Any) -> str:
    """A value as a machine file has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _option(key: str, option: Any) -> tuple[str, str, str]:
    """An option is a default, or declares its default and its help."""
    if hasattr(option, "help"):
        default = getattr(option, "default", None)
        return key, "" if default is None else str(default), str(option.help)
    return key, str(option), ""
