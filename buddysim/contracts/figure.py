"""Contracts of figures: a figure of its numbers, the same file again; a file that isn't its own is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_bytes
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.texts import not_a_line
from buddysim.contracts.trial_trace import trial_trace
from buddysim.figures import ResultSource, plot
from buddysim.sweep.store import Store

_FOREIGN = b'{"not": ["a", "result"]}\n'
_OF_TRACE = ".bin"


def _file_suffix(figure: Any) -> str | None:
    """The ending of the file that a figure draws; None: it draws none."""
    return Path(figure.FILE[0]).suffix if hasattr(figure, "FILE") else None


def _source(subject: Subject) -> ResultSource | None:
    """Results to draw; None for a figure of a study, which takes minutes, or of a file other than a trace."""
    suffix, store = _file_suffix(subject.member), Store(subject.folder / "store")
    if getattr(subject.member, "STUDY", False) or suffix not in (None, _OF_TRACE):
        return None
    if suffix is None:
        return ResultSource(store)
    path = subject.folder / "trial.bin"
    return ResultSource(store, file=path if path.exists() else trial_trace(path))


def _misstated(subject: Subject) -> Iterator[str]:
    figure = subject.member
    yield from not_a_line("TITLE", figure.TITLE)
    if hasattr(figure, "FILE"):
        name, description = figure.FILE
        yield from not_a_line("FILE's description", description)
        if not name.partition(".")[0].isupper():
            yield f"FILE's name {name!r}: expected capitals, as help screens show arguments"
    for name in getattr(figure, "OPTIONS", ()):
        if not name.isidentifier():
            yield f"OPTIONS has {name!r}: expected names"


def _not_plotted(subject: Subject) -> Iterator[str]:
    source = _source(subject)
    if source is None:
        return
    figure = subject.member.draw(subject.member.data(source))
    if not isinstance(figure, Figure):
        yield f"draw gives a {type(figure).__name__}: expected a matplotlib Figure"
    elif not any(axes.has_data() or axes.texts for axes in figure.axes):
        yield "the figure has nothing in it"


def _different(subject: Subject) -> Iterator[str]:
    source = _source(subject)
    if source is None:
        return
    files = [subject.folder / f"{subject.name}-{name}.svg" for name in ("one", "again")]
    for file in files:
        plot(subject.name, file, source)
    if files[0].read_bytes() != files[1].read_bytes():
        yield "two files of the same results have different bytes"


def _taken(subject: Subject) -> Iterator[str]:
    suffix = _file_suffix(subject.member)
    if suffix is None or suffix == ".toml":
        return  # a file of TOML is a study, which its reader refuses
    foreign = subject.folder / f"foreign{suffix}"
    write_bytes(foreign, _FOREIGN)
    for file in (foreign, subject.folder / f"absent{suffix}"):
        try:
            plot(subject.name, subject.folder / "taken.svg", ResultSource(Store(subject.folder / "store"), file=file))
            yield f"{file.name} is plotted: expected an error"
        except (BuddysimError, OSError):
            pass
        except Exception as error:
            yield f"{file.name}: {type(error).__name__}: {error}: expected a BuddysimError"


CONTRACTS = {
    "figure": (
        Contract("its title is a line, its file and options are named", _misstated),
        Contract("a file that is not its own is refused in one line", _taken),
        Contract("draw makes a matplotlib Figure with something in it", _not_plotted, safe=True),
        Contract("the same results make the same file", _different),
    )
}
