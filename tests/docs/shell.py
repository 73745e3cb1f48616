"""A document's commands, as a person would type them, in one shell."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.docs.test_commands import cut_or_too_wide

ROOT = Path(__file__).parents[2]


def typed(blocks: Sequence[str], folder: Path, timeout_s: int, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run blocks in a folder with `out`; each command succeeds, and no printed line is too wide."""
    for name in ("out", "bin"):
        (folder / name).mkdir()
    (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "bin" / "python").chmod(0o755)
    own = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(blocks)],
        cwd=folder, env=os.environ | own | environment, capture_output=True, text=True, check=False, timeout=timeout_s,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-4000:])
    assert "Traceback" not in done.stderr
    assert not (cut := cut_or_too_wide(done.stdout)), cut
    return done
