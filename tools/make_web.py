"""Builds the page of `buddysim web` as a static site: out/web.

    python tools/make_web.py [-o FOLDER]

npm brings Pyodide, the solver and the library of charts, pip the wheels of pydantic: chosen versions, kept in
build/web, each archive with the hash that is known of it. What the page runs of this package is copied from the
working tree: all but folders that need arrays or compiled modules. ``licences/`` has the licence of each part,
``bom.cdx.json`` lists them as CycloneDX.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from statistics import median
from typing import Any

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.base.parsers.json_text import loads
from buddysim.base.parsers.tar import read_members
from buddysim.base.parsers.zipped import ZippedFile
from buddysim.base.validation_table import FILE, page_rows
from buddysim.training.result import CHECKSUM, simulator_checksum

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.bill_of_materials import component, document, metadata  # noqa: E402
from tools.write_reference import PAGES  # noqa: E402

CACHE = ROOT / "build" / "web"
PYODIDE = "pyodide@314.0.7"
CHARTS = "plotly.js-basic-dist-min@4.1.1"
SOLVER = "highs@1.15.3"
#: Of Pyodide's Python and its build of WebAssembly.
PYTHON, ABI, PLATFORM = "3.14", "cp314", "pyemscripten_2026_0_wasm32"
WHEELS = (
    "pydantic==2.14.4", "pydantic-core==2.50.5", "annotated-types==0.8.0", "typing-extensions==4.16.0",
    "typing-inspection==0.4.5",
)  # fmt: skip
#: Of each archive, by the name of its file: what the registries had when its version was chosen.
SHA256 = {
    "pyodide-314.0.7.tgz": "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0",
    "plotly.js-basic-dist-min-4.1.1.tgz": "ea907f854b6cec4f6a2fa71540ec019a21ed2c61e6a109ddd5c072103a96eed0",
    "highs-1.15.3.tgz": "218533577886c69023739024bb92cfc2831ba45ff1fd1fd981753c04cded9793",
    "pydantic-2.14.4-py3-none-any.whl": "653a2ad9f6d8858529c77c72717d0ea991d6c6837fe683246b2f4b2bbfc3fadc",
    "pydantic_core-2.50.5-cp314-cp314-pyemscripten_2026_0_wasm32.whl": (
        "b2910ec0fa5aeb9bef70156f2b79f4783978fdcfaa7b2f1b5d1814458d2e79a1"
    ),
    "annotated_types-0.8.0-py3-none-any.whl": "f072f4d804ea359e4eaf198b1af7a8b0943881a87f31bb764f8bf219bb9419e0",
    "typing_extensions-4.16.0-py3-none-any.whl": "481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8",
    "typing_inspection-0.4.5-py3-none-any.whl": "bc210535442b39e1bf2805e0c7a17dfd6a4ace760c84c7f7d16245d23a6b1c39",
}
#: Documents behind the numbers of the page; it shows them as texts.
DOCUMENTS = ("validation/llm.md", "validation/operators.md", "explanation/training-model.md", "explanation/fit.md")
PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
#: Texts of licences that Pyodide's archive lacks, by what they are of; CPython and Emscripten are in it.
LICENCES = ROOT / "tools" / "web_licences"
#: Folders of the package that the page does not use.
LEFT_OUT = {
    "analyses", "buddy", "capture", "contracts", "figures", "importers", "measure", "papers", "replay", "sweep",
    "synthetic", "trace", "validation", "web", "workloads",
}  # fmt: skip
LEFT_OUT_FILES = (".pyx", ".pxd", ".pyi", ".h", ".c", ".cpp", ".cu", ".cl", ".so", ".maps", ".pyc", ".S")


def main() -> int:
    """Build the site."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path, default=ROOT / "out" / "web")
    folder: Path = parser.parse_args().output
    try:
        build(folder)
    except (BuddysimError, OSError, subprocess.CalledProcessError) as error:
        print(f"buddysim: error: make web: {error}: expected npm, pip and their registries", file=sys.stderr)
        return 2
    pyodide = _size(folder / "pyodide")
    print(f"{folder}: {(_size(folder) - pyodide) / 1e6:.1f} MB, and Pyodide of {pyodide / 1e6:.1f} MB")
    return 0


def build(folder: Path) -> None:
    """Write the site; a folder of that name is replaced when the new one is complete."""
    CACHE.mkdir(parents=True, exist_ok=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as part:
        site = Path(part) / "web"
        shutil.copytree(ROOT / "buddysim" / "web" / "page", site)
        _unpack(_npm_package(PYODIDE), site / "pyodide", PYODIDE_FILES)
        _unpack(_npm_package(CHARTS), site, ("plotly-basic.min.js",))
        _unpack(_npm_package(SOLVER), site, ("build/highs.mjs", "build/highs.wasm"))
        packed = gzip.compress((site / "highs.wasm").read_bytes(), compresslevel=9, mtime=0)
        (site / "highs.wasm").unlink()
        (site / "highs.wasm.gz").write_bytes(packed)
        _copy_documents(site)
        _add_licences(site)
        with zipfile.ZipFile(site / "python.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
            for wheel in _wheels():
                _add_wheel(bundle, wheel)
            for path in package_files():
                _add(bundle, str(path.relative_to(ROOT)), path.read_bytes())
            _add(bundle, f"buddysim/{CHECKSUM}", simulator_checksum().encode())
            about = f"Metadata-Version: 2.1\nName: buddysim\nVersion: {buddysim.__version__}\n"
            _add(bundle, f"buddysim-{buddysim.__version__}.dist-info/METADATA", about.encode())
        shutil.rmtree(folder, ignore_errors=True)
        site.rename(folder)


def _copy_documents(site: Path) -> None:
    """Copy the documents that the page links to, and say what one of them measures about memory."""
    (site / "docs").mkdir()
    for name in DOCUMENTS:
        text = PAGES[name]() if name in PAGES else (ROOT / "docs" / name).read_text(encoding="utf-8")
        (site / "docs" / f"{Path(name).stem}.txt").write_text(text, encoding="utf-8")
    rows = [row for row in page_rows(ROOT / "docs" / "validation" / FILE, "llm") if row["tolerance_fraction"]]
    errors = [float(row["error_fraction"]) for row in rows if row["quantity"] == "peak memory"]
    largest, middle = max(errors, key=abs), median(map(abs, errors))
    text = f"{len(errors)} measured trainings are off by {middle:.1%} (median), {largest:+.0%} at most"
    (site / "errors.json").write_text(json.dumps({"memory": text.replace("%", " %")}), encoding="utf-8")


def _add_licences(site: Path) -> None:
    """Write the licence of each part of the page, and the list of the parts."""
    folder = site / "licences"
    folder.mkdir()
    own = component("buddysim", buddysim.__version__, "BSD-3-Clause", f"pkg:pypi/buddysim@{buddysim.__version__}")
    texts, parts = {"buddysim": (ROOT / "LICENSE").read_bytes()}, []
    for package, licence in ((PYODIDE, "MPL-2.0"), (CHARTS, "MIT"), (SOLVER, "MIT")):
        archive, (name, _, version) = _npm_package(package), package.partition("@")
        texts[name] = _licence_of_npm(archive, name)
        parts.append(component(name, version, licence, f"pkg:npm/{package}", archive.read_bytes()))
    lock = loads((site / "pyodide" / "pyodide-lock.json").read_bytes(), "pyodide-lock.json: not valid JSON")["info"]
    emscripten = lock["platform"].removeprefix("emscripten_").replace("_", ".")
    for name, version, licence in (
        ("cpython", lock["python"], "PSF-2.0"), ("emscripten", emscripten, "MIT OR NCSA"),
    ):  # fmt: skip
        texts[name] = (LICENCES / f"{name}.txt").read_bytes()
        parts.append(component(name, version, licence, f"pkg:generic/{name}@{version}"))
    for wheel in _wheels():
        name, version = wheel.name.split("-")[:2]
        texts[name], licence, inside = _licence_of_wheel(wheel)
        listed = component(name, version, licence, f"pkg:pypi/{name.replace('_', '-')}@{version}", wheel.read_bytes())
        parts.append(listed | ({"components": inside} if inside else {}))
    for name, text in texts.items():
        (folder / f"{name}.txt").write_bytes(text)
    (site / "bom.cdx.json").write_bytes(document(own, parts))


def _licence_of_npm(archive: Path, name: str) -> bytes:
    stored = LICENCES / f"{name}.txt"
    return stored.read_bytes() if stored.exists() else read_members(archive, ["package/LICENSE"])["package/LICENSE"]


def _licence_of_wheel(wheel: Path) -> tuple[bytes, str, list[Any]]:
    """Return the licence's text and name, and the parts that the wheel itself lists: those compiled into it."""
    with ZippedFile(wheel, "wheel") as content:
        by_end = {member.filename.partition(".dist-info/")[2]: member for member in content.members}
        if "licenses/LICENSE" not in by_end:
            raise BuddysimError(f"{wheel.name}: no licence in it: expected licenses/LICENSE")
        fields = metadata(content, wheel)
        lists = [
            loads(content.read(one), f"{end}: not valid JSON")
            for end, one in sorted(by_end.items())
            if end.startswith("sboms/")
        ]
        text = content.read(by_end["licenses/LICENSE"])
    return text, str(fields["License-Expression"]), [part for each in lists for part in each["components"]]


def package_files() -> list[Path]:
    """Return the files of the package that the page runs, in order."""
    package = ROOT / "buddysim"
    return sorted(
        path
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and _is_used(path.relative_to(package))
    )


def _is_used(path: Path) -> bool:
    return (
        path.parts[0] not in LEFT_OUT and path.parts[:2] != ("gpu_codecs", "data") and path.suffix not in LEFT_OUT_FILES
    )


def _npm_package(name: str) -> Path:
    """Return the archive of a package at its version."""
    stored = CACHE / f"{name.replace('@', '-')}.tgz"
    if not stored.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise OSError("npm is missing (Debian: npm)")
        with tempfile.TemporaryDirectory(dir=CACHE) as part:
            subprocess.run([npm, "pack", "--silent", "--pack-destination", part, name], check=True, cwd=part)
            (archive,) = Path(part).glob("*.tgz")
            archive.rename(stored)
    return _checked(stored)


def _wheels() -> list[Path]:
    folder = CACHE / "wheels"
    folder.mkdir(exist_ok=True)
    stored = {name: _stored(folder, name) for name in WHEELS}
    missing = [name for name, path in stored.items() if path is None]
    if missing:
        subprocess.run(
            [
                sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                "--only-binary=:all:", "--python-version", PYTHON, "--implementation", "cp", "--abi", ABI,
                "--abi", "none", "--platform", PLATFORM, "--platform", "any", "-d", os.fspath(folder), *missing,
            ],
            check=True,
        )  # fmt: skip
    return sorted(_checked(path) for name in WHEELS if (path := _stored(folder, name)) is not None)


def _checked(archive: Path) -> Path:
    """Return an archive whose content is the known one; another is removed."""
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256.get(archive.name):
        archive.unlink()
        raise BuddysimError(f"{archive.name}: removed, as its content isn't that of the release: expected its SHA-256")
    return archive


def _stored(folder: Path, name: str) -> Path | None:
    project, _, version = name.partition("==")
    return next(iter(folder.glob(f"{project.replace('-', '_')}-{version}-*.whl")), None)


def _unpack(archive: Path, folder: Path, names: tuple[str, ...]) -> None:
    """Copy some files of an npm package."""
    folder.mkdir(exist_ok=True)
    for name, content in read_members(archive, [f"package/{name}" for name in names]).items():
        (folder / Path(name).name).write_bytes(content)


def _add_wheel(bundle: zipfile.ZipFile, wheel: Path) -> None:
    with ZippedFile(wheel, "wheel") as content:
        for member in sorted(content.members, key=lambda one: one.filename):
            name = member.filename
            if (
                not name.endswith((".pyi", "RECORD"))
                and not name.startswith(("pydantic/v1/", "pydantic/mypy"))
                and "/sboms/" not in name
            ):
                _add(bundle, name, content.read(member))


def _add(bundle: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file with the same date everywhere: the same tree gives the same bundle."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    bundle.writestr(info, content)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main())
