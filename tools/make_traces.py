"""Converts archived captures to the trace files of `traces/`.

python tools/make_traces.py --shared PATH -o traces/large       the large ones, which aren't in the repository
python tools/make_traces.py --shared PATH --small -o traces     the small ones of the repository, and their manifest

PATH is the folder whose `data/` has the archives. `make traces` runs the first command. The manifest has the commands
of traces made by `buddysim capture`; these traces and their entries are unchanged.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from buddysim.base.errors import BuddysimError
from buddysim.base.output import write_text
from buddysim.base.textfile import parse_toml
from buddysim.importers import accelsim, opencl
from buddysim.trace import open_trace, verify_trace

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tools.archive import folder_with  # noqa: E402

LEVEL = 19
MANIFEST_HEAD = "# Written by tools/make_traces.py; tests/tools/test_traces.py checks it.\n"

POLYBENCH = "our own capture of PolyBench/GPU (OpenCL); may be copied"
RODINIA = "our own capture of Rodinia (OpenCL); may be copied"
BSD_NASSOSLIAK = "BSD-2-Clause, github.com/nassosliak/accel-sim-framework"
BSD_QISHAO = "BSD-2-Clause, github.com/qishao-chalmers/accel-sim-framework"
MIT_MGPUSIM = "MIT, github.com/sarchlab/mgpusim"
MIT_MICROGPUSIM = "MIT-style, github.com/romnn/microgpusim"


@dataclass(frozen=True)
class Recipe:
    """One trace file.

    Parameters
    ----------
    name : of the file, without .bin
    archive : below data/
    about : description
    licence : and source
    launches : of an OpenCL capture, END not included; None: all
    contents_every : keep the bytes of every n-th page of 8 KiB of a snapshot; size maps cover all pages
    """

    name: str
    archive: str
    about: str
    licence: str
    launches: tuple[int, int] | None = None
    contents_every: int = 1

    @property
    def command(self) -> str:
        """Command that makes the file, for its provenance."""
        if self.archive.startswith("accelsim/"):
            stem = Path(self.archive).name.removesuffix(".tar.xz")
            return (
                f"buddysim import accelsim {stem}/kernelslist.g -o {self.name}.bin "
                f"--contents-every {self.contents_every}"
            )
        launches = f" --launches {self.launches[0]}:{self.launches[1]}" if self.launches else ""
        return (
            f"tools/convert_opencl_bundle.py {Path(self.archive).name} -o {self.name}.bin{launches} "
            f"--contents-every {self.contents_every}"
        )


SMALL = (
    Recipe(
        "bfs-volta",
        "accelsim/bfs-volta.tar.xz",
        "Rodinia bfs, 4096 nodes, whole run with its memory copies, SASS of sm_70",
        BSD_NASSOSLIAK,
    ),
    Recipe(
        "vectoradd-turing",
        "accelsim/vectoradd-turing-values.tar.xz",
        "vectorAdd and vectorSub on 1 M floats, SASS of sm_75, with the values of all stores",
        BSD_QISHAO,
    ),
    Recipe(
        "vectoradd-ampere", "accelsim/vectoradd-ampere.tar.xz", "vectorAdd on 50,000 floats, SASS of sm_80", MIT_MGPUSIM
    ),
    Recipe("matmul-pascal", "accelsim/matmul-pascal.tar.xz", "matrix product, 32 x 32, SASS of sm_61", MIT_MICROGPUSIM),
    Recipe("lud256", "traces/lud256.tar.xz", "Rodinia LU decomposition, 256 x 256, whole run, no values", RODINIA),
    Recipe("backprop16k", "traces/backprop16k.tar.xz", "Rodinia back-propagation, 16,384 inputs, no values", RODINIA),
    Recipe(
        "nw2048",
        "traces/nw2048.tar.xz",
        "Rodinia Needleman-Wunsch, 2048 x 2048, integers, whole run: a wave front; sizes of all 50 MB at three points",
        RODINIA,
        contents_every=64,
    ),
    Recipe(
        "jacobi2d",
        "traces/jacobi2d.tar.xz",
        "PolyBench Jacobi 2D, 512 x 512, 20 steps: fits in an L2; sizes of all 2 MB every 4 launches",
        POLYBENCH,
        contents_every=16,
    ),
)

LARGE = (
    Recipe(
        "fdtd2048-all",
        "traces/fdtd2048.tar.xz",
        "PolyBench FDTD 2D, 2048 x 2048, fp32: time steps 118 to 120, whole contents after launch 360",
        POLYBENCH,
    ),
    Recipe("nw2048-all", "traces/nw2048.tar.xz", "as nw2048, with whole contents", RODINIA),
    Recipe("jacobi2048", "traces/jacobi2048.tar.xz", "PolyBench Jacobi 2D, 2048 x 2048, 3 steps", POLYBENCH),
    Recipe("jacobi2d-all", "traces/jacobi2d.tar.xz", "as jacobi2d, with whole contents", POLYBENCH),
    Recipe("backprop256k", "traces/backprop256k.tar.xz", "Rodinia back-propagation, 262,144 inputs", RODINIA),
)


def make(recipe: Recipe, data: Path, folder: Path) -> Path:
    """Make one trace file."""
    output = folder / f"{recipe.name}.bin"
    archive = data / recipe.archive
    if recipe.archive.startswith("accelsim/"):
        with folder_with(archive, "kernelslist.g") as source:
            accelsim.import_accelsim(
                source / "kernelslist.g",
                output,
                accelsim.AccelsimImportOptions(
                    contents_every=recipe.contents_every,
                    source=recipe.about,
                    licence=recipe.licence,
                    command=recipe.command,
                    compression_level=LEVEL,
                ),
            )
    else:
        with folder_with(archive, "meta.jsonl") as source:
            opencl.convert_bundle(
                source,
                output,
                opencl.BundleImportOptions(
                    launches=recipe.launches,
                    contents_every=recipe.contents_every,
                    source=recipe.about,
                    licence=recipe.licence,
                    command=recipe.command,
                    compression_level=LEVEL,
                ),
            )
    with open_trace(output) as trace:
        verify_trace(trace)
    return output


def manifest(made: Sequence[tuple[Recipe, Path]], before: str) -> str:
    """Return the manifest's text, with new entries for new trace files; other entries are unchanged."""
    entries = {str(entry["file"]): entry for entry in parse_toml(before, "manifest.toml").get("trace", [])}
    for recipe, path in made:
        data = path.read_bytes()
        entries[path.name] = {
            "file": path.name,
            "about": recipe.about,
            "licence": recipe.licence,
            "source": recipe.archive,
            "command": recipe.command,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    return "\n".join([MANIFEST_HEAD, *map(_entry, entries.values())])


def _entry(pairs: Mapping[str, object]) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in pairs.items()]
    return "[[trace]]\n" + "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Make the requested traces."""
    parser = argparse.ArgumentParser(prog="make_traces.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--shared", type=Path, required=True, metavar="PATH", help="folder whose data/ holds the archives"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="default: traces/large, or traces")
    parser.add_argument("--small", action="store_true", help="make those of the repository, and their manifest")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these")
    args = parser.parse_args(argv)
    recipes = SMALL if args.small else LARGE
    folder = args.output or Path("traces" if args.small else "traces/large")
    try:
        unknown = set(args.names) - {recipe.name for recipe in recipes}
        if unknown:
            raise BuddysimError(
                f"{', '.join(sorted(unknown))}: expected some of {', '.join(recipe.name for recipe in recipes)}"
            )
        if not (args.shared / "data").is_dir():
            raise BuddysimError(f"{args.shared}: expected a folder with data/ in it")
        folder.mkdir(parents=True, exist_ok=True)
        made = []
        for recipe in recipes:
            if args.names and recipe.name not in args.names:
                continue
            start = time.perf_counter()
            path = make(recipe, args.shared / "data", folder)
            made.append((recipe, path))
            print(f"{path}: {path.stat().st_size} bytes, {time.perf_counter() - start:.1f} s", flush=True)
        if args.small:
            before = folder / "MANIFEST.toml"
            write_text(before, manifest(made, before.read_text() if before.exists() else ""))
    except (BuddysimError, OSError) as error:
        print(f"make_traces.py: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
