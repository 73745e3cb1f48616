"""Writes tests/requirements.lock: the versions and hashes of what the tests and checks use, as pip resolves them now.

    python -m tools.lock_environment        (make lock)
    python -m pip install --require-hashes --only-binary=:all: -r tests/requirements.lock

For this Python on this platform, which the file names. PyTorch, Triton and OpenCL are left out: their versions and
index are those of tools/install_extras.sh.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_text
from buddysim.base.parsers.json_text import loads
from buddysim.base.textfile import parse_toml

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "tests" / "requirements.lock"
#: Of pyproject.toml: what most tests use.
EXTRAS = ("dev", "sweep", "data", "report", "lz4", "docs", "plugins")


def requirements() -> list[str]:
    """Return what pyproject.toml asks of the package, and of `EXTRAS`."""
    project = parse_toml((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "pyproject.toml")["project"]
    requested = [*project["dependencies"]]
    for extra in EXTRAS:
        requested += project["optional-dependencies"][extra]
    return [*dict.fromkeys(requested)]


def locked(report: Mapping[str, Any], of: str) -> str:
    """Return the file for a report of ``pip install --report``.

    Parameters
    ----------
    of : Python and platform that it is of

    Raises
    ------
    BuddysimError
        where an archive has no hash
    """
    lines = []
    for entry in report["install"]:
        about, archive = entry["metadata"], entry["download_info"]["archive_info"]
        if "sha256" not in archive.get("hashes", {}):
            raise BuddysimError(f"{about['name']} {about['version']}: no SHA-256: expected an archive of an index")
        lines.append(f"{about['name'].lower()}=={about['version']} --hash=sha256:{archive['hashes']['sha256']}")
    return "\n".join([f"# {of}; made by make lock", *sorted(lines)]) + "\n"


def main() -> int:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run"]
        command += ["--ignore-installed", "--only-binary=:all:", "--report", str(report), *requirements()]
        try:
            subprocess.run(command, check=True)
            of = f"Python {'.'.join(platform.python_version_tuple()[:2])}, {platform.system()} {platform.machine()}"
            text = locked(loads(report.read_bytes(), "pip's report: not valid JSON"), of)
        except (BuddysimError, subprocess.CalledProcessError) as error:
            print(f"buddysim: error: make lock: {error}", file=sys.stderr)
            return 2
    write_text(FILE, text)
    print(FILE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
