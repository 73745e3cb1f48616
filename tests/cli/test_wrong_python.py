"""A Python without buddysim gives one line that names the expected Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_one_line_says_which_python_was_expected() -> None:
    """`-S` leaves out site-packages, as Debian's python3 in a clone's folder does."""
    command = [sys.executable, "-S", "-m", "buddysim", "run", "x.bin"]
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "expected the Python that buddysim was installed for" in done.stderr
    assert len(done.stderr.splitlines()) == 1
