"""What a shell completes after an argument: names of schemes, machines, networks, links, figures, traces.

The completion script holds the names that are registered when it is made (``--print-completion``), those of plug-ins
that are given with it too. Only then are the registries read: parsers have no choices otherwise.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.paths import expanded

_MARK = "completes"

#: By shell: the variable of the environment with the folder of a user's files, that folder, the script's path in it.
FOLDERS = {
    "bash": ("XDG_DATA_HOME", "~/.local/share", "bash-completion/completions/buddysim"),
    "zsh": ("XDG_DATA_HOME", "~/.local/share", "zsh/site-functions/_buddysim"),
    "fish": ("XDG_CONFIG_HOME", "~/.config", "fish/completions/buddysim.fish"),
}


def script_file(shell: str) -> Path:
    """Return the file where a shell looks for the completion script of a user.

    Raises
    ------
    BuddysimError
        the user has no home folder
    """
    variable, folder, name = FOLDERS[shell]
    path = expanded(os.environ.get(variable) or folder) / name
    if not path.is_absolute():
        raise BuddysimError(f"no home folder: set {variable}")
    return path


def _registered(kind: str) -> Callable[[], Iterable[str]]:
    def names() -> Iterable[str]:
        from buddysim.base.kinds import registry

        return registry(kind).names()

    return names


def _replay_machines() -> Iterable[str]:
    from buddysim.machine import Machine

    return Machine.presets()


def _training_machines() -> Iterable[str]:
    from buddysim.machine.training import TrainingMachine

    return TrainingMachine.names()


def _links() -> Iterable[str]:
    from buddysim.machine.training import shared_links

    return shared_links()


def _traces() -> Iterable[str]:
    from buddysim.trace.shipped import shipped_traces

    return [trace.name for trace in shipped_traces()]


#: The names of each kind of argument.
NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "replay scheme": _registered("replay scheme"),
    "training scheme": _registered("training scheme"),
    "network": _registered("network"),
    "figure": _registered("figure"),
    "synthetic workload": _registered("synthetic workload"),
    "replay machine": _replay_machines,
    "training machine": _training_machines,
    "machine": lambda: sorted({*_replay_machines(), *_training_machines()}),
    "link": _links,
    "trace": _traces,
    "file": lambda: (),
}
#: Kinds whose arguments may be files as well.
_FILES = ("network", "replay machine", "training machine", "machine", "file")


def completes(argument: argparse.Action, kind: str) -> None:
    """Says that a shell completes an argument with the names of a kind."""
    assert kind in NAMES, kind
    setattr(argument, _MARK, kind)


def give_choices(parser: argparse.ArgumentParser) -> None:
    """Gives every marked argument of a parser its names, for the completion script."""
    import shtab

    for action in parser._actions:
        kind = getattr(action, _MARK, None)
        if isinstance(action, argparse._SubParsersAction):
            for subparser in set(action.choices.values()):
                give_choices(subparser)
        elif kind is not None:
            action.choices = [*NAMES[kind](), *([shtab.Optional.FILE[0]] if kind in _FILES else [])]
