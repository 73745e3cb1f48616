"""``python -m buddysim check-plugin FILE``: holds a plug-in to the contracts of its kind."""

from __future__ import annotations

import argparse

NAME = "check-plugin"
TASK = "machine and models"
ORDER = 430
HELP = """hold a plug-in to the contracts of its kind

The command loads the file, finds what it defines, and tries what its kind promises: a compressor gives its data back;
a training scheme's iteration fits in what its plan says; every part of a replay gives the same result again, also next
to another run. It prints a line for each contract, and one for each breach; the exit code is 2 if there is one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from buddysim.cli.completion import completes

    completes(parser.add_argument("file", metavar="FILE", help="the plug-in, .py or .pyx"), "file")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from buddysim.base.errors import BuddysimError
    from buddysim.base.kinds import HOMES, registry
    from buddysim.base.plugins import load_plugin
    from buddysim.base.terminal import say
    from buddysim.contracts.held import breaches_of, subject_of, untried_of

    module = load_plugin(args.file)
    defined = [(kind, name) for kind in HOMES for name in registry(kind).adopt(module)]
    broken = 0
    with TemporaryDirectory() as folder:
        for kind, name in defined:
            print(f"{kind} {name}")
            subject = subject_of(kind, name, Path(folder))
            for contract, breaches in breaches_of(subject):
                print(_hanging("broken" if breaches else "holds", contract.promise))
                for breach in breaches:
                    print(_hanging("", breach))
                broken += bool(breaches)
            for contract, cause in untried_of(subject):
                say(f"{kind} {name}: {contract.promise}: not tried: {cause}")
    if broken:
        raise BuddysimError(f"{args.file}: broken contracts: {broken}: expected none")
    return 0


def _hanging(word: str, text: str) -> str:
    """Return lines of the screen's width with a word in front."""
    from textwrap import fill

    return fill(text, 80, initial_indent=f"  {word:6}  ", subsequent_indent=10 * " ", break_on_hyphens=False)
