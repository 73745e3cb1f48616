"""A command run in this process: its start would cost more than a small capture."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from buddysim.cli import main

Done = subprocess.CompletedProcess[str]


def run_in_process(*arguments: str | Path, folder: Path, environment: Mapping[str, str]) -> Done:
    """Run ``buddysim`` in this process; its programs inherit the folder, the environment and the redirected output.

    Parameters
    ----------
    arguments : of the command line
    folder : current folder of the command
    environment : all variables of the command
    """
    words = [str(argument) for argument in arguments]
    with ExitStack() as stack:
        output, errors = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["buddysim", *words])
        for name in set(os.environ) - set(environment):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", DeprecationWarning)  # as in a process of its own
        stack.enter_context(_redirected(1, "stdout", output))
        stack.enter_context(_redirected(2, "stderr", errors))
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(words, code, _text(output), _text(errors))


@contextmanager
def _redirected(descriptor: int, name: str, file: BinaryIO) -> Iterator[None]:
    """Within the block, a standard stream and its descriptor, which programs inherit, lead to a file."""
    before, stream = os.dup(descriptor), getattr(sys, name)
    stream.flush()
    os.dup2(file.fileno(), descriptor)
    try:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as own:
            setattr(sys, name, own)
            yield
    finally:
        setattr(sys, name, stream)
        os.dup2(before, descriptor)
        os.close(before)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
