"""The lock file of the tests' environment has all that pyproject.toml asks, by version and hash."""

from __future__ import annotations

import re

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from buddysim.base.errors import BuddysimError
from tools.lock_environment import FILE, locked, requirements

LINE = re.compile(r"([a-z0-9._-]+)==(\S+) --hash=sha256:[0-9a-f]{64}")
HASH = {"sha256": "0" * 64}


def entry(name: str, version: str, **hashes: str) -> dict[str, object]:
    return {"metadata": {"name": name, "version": version}, "download_info": {"archive_info": {"hashes": hashes}}}


def test_the_file_covers_what_is_requested() -> None:
    head, *lines = FILE.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"# Python 3\.\d+, Linux \w+; made by make lock", head)
    versions = {}
    for line in lines:
        match = LINE.fullmatch(line)
        assert match, line
        versions[canonicalize_name(match[1])] = match[2]
    for text in requirements():
        requested = Requirement(text)
        assert requested.specifier.contains(versions[canonicalize_name(requested.name)]), text


def test_a_report_becomes_lines_in_order() -> None:
    report = {"install": [entry("B", "2", **HASH), entry("a", "1", **HASH)]}
    zeros = "0" * 64
    assert locked(report, "Python 3.11").splitlines() == [
        "# Python 3.11; made by make lock", f"a==1 --hash=sha256:{zeros}", f"b==2 --hash=sha256:{zeros}",
    ]  # fmt: skip


def test_an_archive_without_a_hash_is_refused() -> None:
    with pytest.raises(BuddysimError, match="a 1: no SHA-256"):
        locked({"install": [entry("a", "1")]}, "Python 3.11")
