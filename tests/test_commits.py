"""Subjects of commits are short enough for one line of `git log`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: Commits up to this one have longer subjects.
LAST_UNCHECKED = "c288c8b5f10cda52301cd0f3cb4f29b5711c5892"
MAX_SUBJECT = 72


def long_subjects(root: Path, after: str) -> list[str] | None:
    """Return the subjects that are too long, of commits after one; None where the history doesn't reach back to it."""
    command = ["git", "-C", str(root), "log", "--no-merges", "--format=%s", f"{after}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return [subject for subject in done.stdout.splitlines() if len(subject) > MAX_SUBJECT]


def test_subjects_are_short() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not in a clone")
    long = long_subjects(ROOT, LAST_UNCHECKED)
    if long is None:
        pytest.skip("a shallow clone")
    assert not long


def test_a_long_subject_is_found_and_a_missing_commit_is_none(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    for subject in ("first", "x" * 72, "y" * 73):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", subject], check=True)
    assert long_subjects(tmp_path, "HEAD~2") == ["y" * 73]
    assert long_subjects(tmp_path, "0" * 40) is None
