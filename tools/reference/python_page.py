"""Writes docs/reference/python.md from signatures and docstrings of the public API."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import buddysim
import buddysim.capture
from buddysim.base.markdown import wrap_markdown
from buddysim.machine.training import TrainingMachine
from buddysim.training.result import TrainingResult
from tools.reference import cell, head, linked, table

_TEXT = """
The public functions and classes of the package. A name that is not on this page may change. A mistake of the user
raises `BuddysimError` with one line of text.
"""
#: Headings with the import paths of their names.
SECTIONS: dict[str, list[tuple[str, Any]]] = {
    "Replay": [
        ("buddysim.simulate", buddysim.simulate),
        ("buddysim.simulate_schemes", buddysim.simulate_schemes),
        ("buddysim.SchemeResults", buddysim.SchemeResults),
        ("buddysim.ReplayResult", buddysim.ReplayResult),
        ("buddysim.plot", buddysim.plot),
        ("buddysim.open_trace", buddysim.open_trace),
        ("buddysim.analyse", buddysim.analyse),
    ],
    "Machines": [("buddysim.Machine", buddysim.Machine)],
    "Target ratios": [
        ("buddysim.profile", buddysim.profile),
        ("buddysim.Profile", buddysim.Profile),
        ("buddysim.Targets", buddysim.Targets),
    ],
    "Compression": [
        (f"buddysim.compress.{name}", getattr(buddysim.compress, name))
        for name in buddysim.compress.__all__
        if callable(getattr(buddysim.compress, name))
    ],
    "Training": [
        ("buddysim.simulate_training", buddysim.simulate_training),
        ("buddysim.fit", buddysim.fit),
        ("buddysim.training.result.TrainingResult", TrainingResult),
        ("buddysim.machine.training.TrainingMachine", TrainingMachine),
    ],
    "Captures": [("buddysim.capture.training", buddysim.capture.training)],
    "Sweeps": [("buddysim.run_sweep", buddysim.run_sweep), ("buddysim.diff", buddysim.diff)],
    "Errors and plug-ins": [
        ("buddysim.BuddysimError", buddysim.BuddysimError),
        ("buddysim.load_plugin", buddysim.load_plugin),
    ],
}
#: Names of `buddysim.__all__` that are packages, or a text.
PACKAGES = {"compress", "sweep", "training", "__version__"}
#: Described members, for classes of which not all public members are described.
_MEMBERS = {
    "buddysim.Machine": ("presets", "load", "with_overrides", "value", "text", "source", "to_toml", "to_dict"),
    "buddysim.machine.training.TrainingMachine": ("names", "load", "with_overrides"),
    "buddysim.ReplayResult": ("to_dict", "to_dataframe", "assumptions"),
    "buddysim.training.result.TrainingResult": ("to_dict", "to_dataframe", "assumptions"),
    "buddysim.BuddysimError": (),
}
_SECTION = re.compile(r"^(Parameters|Attributes|Returns|Raises|Yields|Notes)\n-+\n", re.MULTILINE)


def python_page() -> str:
    """Return the page: a section for each name."""
    parts = [head("Python API"), _TEXT]
    for title, things in SECTIONS.items():
        parts.append(f"\n## {title}\n")
        for path, thing in things:
            parts += _class(path, thing) if inspect.isclass(thing) else _function(path, thing, 3)
    return wrap_markdown("".join(parts))


def _class(path: str, thing: type) -> Iterator[str]:
    yield f"\n### {path}\n"
    yield from _docstring(inspect.getdoc(thing) or "")
    names = _MEMBERS.get(path)
    if names is None:
        names = tuple(name for name in vars(thing) if not name.startswith("_"))
    for name in names:
        member = inspect.getattr_static(thing, name)
        if isinstance(member, property):
            yield f"\n`{path.rpartition('.')[2]}.{name}`: {_code(_first(member))}\n"
        elif callable(member) or isinstance(member, classmethod | staticmethod):
            yield from _function(f"{path.rpartition('.')[2]}.{name}", getattr(thing, name), 4)


def _first(member: property) -> str:
    return " ".join((inspect.getdoc(member) or "").partition("\n\n")[0].split())


def _function(path: str, thing: Any, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} {path}\n\n```python\n{_signature(path, thing)}\n```\n"
    yield from _docstring(inspect.getdoc(thing) or "")


def _signature(path: str, thing: Any) -> str:
    """Return the call with the source's annotations: on one line, or with one parameter per line."""
    parameters = []
    star = False
    signature = inspect.signature(thing)
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parameters.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        prefix = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
        note = "" if parameter.annotation is parameter.empty else f": {_annotation(parameter.annotation)}"
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parameters.append(f"{prefix}{name}{note}{default if note else default.replace(' ', '')}")
    returned = signature.return_annotation
    end = ")" if returned is signature.empty else f") -> {_annotation(returned)}"
    name = path.removeprefix("buddysim.") if path.count(".") == 1 else path
    line = f"{name}({', '.join(parameters)}{end}"
    if len(line) <= 100:
        return line
    return "\n".join([f"{name}(", *(f"    {parameter}," for parameter in parameters), end])


def _annotation(annotation: Any) -> str:
    return annotation.strip("'\"") if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _docstring(text: str) -> Iterator[str]:
    """Yield a docstring's text, then a table or a sentence for each of its sections."""
    first, *sections = _SECTION.split(text.strip())
    yield f"\n{_prose(first)}\n"
    for title, content in zip(sections[::2], sections[1::2], strict=True):
        if title == "Notes":
            yield f"\n{_prose(content)}\n"
            continue
        rows = [(name, " ".join(meaning.split())) for name, meaning in _items(content)]
        if title in ("Parameters", "Attributes"):
            cells = [(", ".join(f"`{one}`" for one in name.split(", ")), cell(_code(what))) for name, what in rows]
            yield table((title.lower().removesuffix("s"), "meaning"), cells)
        else:
            for name, what in rows:
                thing = f"`{name}`" if re.fullmatch(r"[^ `]+(\[.*\])?", name) else _code(name)
                yield f"\n{title} {thing}{f': {_code(what)}' if what else ''}".rstrip(".") + ".\n"


def _items(content: str) -> Iterator[tuple[str, str]]:
    """Yield names with descriptions, after a colon or indented below."""
    name, meaning = "", ""
    for line in content.strip().split("\n"):
        if line.startswith(" "):
            meaning += f" {line.strip()}"
        elif line.strip():
            if name:
                yield name, meaning
            name, _, meaning = line.partition(" : ")
    if name:
        yield name.strip(), meaning


def _prose(text: str) -> str:
    """Return paragraphs; indented lines are code."""
    parts = []
    for paragraph in text.strip().split("\n\n"):
        if all(line.startswith("    ") for line in paragraph.split("\n")):
            parts.append(paragraph)
        else:
            parts.append(_code(paragraph))
    return "\n\n".join(parts)


def _code(text: str) -> str:
    text = re.sub(r"(?<![\w`\"=])'([^'`]+)'(?!\w)", r"`\1`", text.replace("``", "`"))
    return linked(text).strip()
