"""Writes conda-forge's recipe of a release: its version, its archive's hash, the requirements of pyproject.toml.

python -m tools.conda_recipe dist/buddysim-1.0.0.tar.gz > recipe.yaml
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.textfile import read_toml

ROOT = Path(__file__).resolve().parents[1]
#: Names on conda-forge that differ from PyPI's; matplotlib without windows.
NAMES = {"matplotlib": "matplotlib-base", "zlib-ng": "python-zlib-ng", "Cython": "cython"}
ARCHIVE = re.compile(r"buddysim-(\d+\.\d+\.\d+)\.tar\.gz")


def recipe(archive: Path) -> str:
    """Return the recipe, in the format of rattler-build; `archive`: the source archive that PyPI has."""
    match = ARCHIVE.fullmatch(archive.name)
    if match is None:
        raise BuddysimError(f"{archive}: expected a source archive, such as buddysim-1.0.0.tar.gz")
    content = read_toml(ROOT / "pyproject.toml", "pyproject.toml", 1 << 20)
    project = content["project"]
    host = ["python", "pip", *map(_conda_name, content["build-system"]["requires"])]
    run = ["python", *map(_conda_name, project["dependencies"])]
    return f"""schema_version: 1

context:
  version: "{match[1]}"

package:
  name: buddysim
  version: ${{{{ version }}}}

source:
  url: https://pypi.org/packages/source/b/buddysim/buddysim-${{{{ version }}}}.tar.gz
  sha256: {hashlib.sha256(archive.read_bytes()).hexdigest()}

build:
  number: 0
  skip: win
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
  python:
    entry_points:
      - buddysim = {project["scripts"]["buddysim"]}

requirements:
  build:
    - ${{{{ compiler("c") }}}}
    - ${{{{ stdlib("c") }}}}
  host:
{_items(host)}
  run:
{_items(run)}

tests:
  - python:
      imports: [buddysim]
  - script:
      - buddysim run fdtd2048 --require-data-values
      - buddysim train vgg16 --batch 64

about:
  summary: {project["description"]}
  license: {project["license"]}
  license_file: LICENSE
"""


def _conda_name(requirement: str) -> str:
    """Return ``matplotlib-base >=3.9`` for ``matplotlib>=3.9``."""
    name, limits = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return f"{NAMES.get(name, name)} {limits}".strip()


def _items(names: Iterable[str]) -> str:
    return "\n".join(f"    - {name}" for name in names)


if __name__ == "__main__":
    try:
        print(recipe(Path(sys.argv[1] if len(sys.argv) == 2 else "")), end="")
    except (BuddysimError, OSError) as error:
        print(f"buddysim: error: {error}", file=sys.stderr)
        sys.exit(2)
