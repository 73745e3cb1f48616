"""Write the pages of docs/reference/ that are made from code: `python -m tools.write_reference`; `--check` compares."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.reference import cli_page, counter_pages, cuda_page, layer_page, machine_page, python_page, scheme_page

FOLDER = Path(__file__).parents[1] / "docs" / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "cli.md": cli_page.cli_page,
    "cpu-and-cuda.md": cuda_page.cuda_page,
    "layer-kinds.md": layer_page.layer_page,
    "machine-keys.md": machine_page.machine_page,
    "replay-counters.md": counter_pages.replay_page,
    "training-schemes.md": scheme_page.scheme_page,
    "training-counters.md": counter_pages.training_page,
    "python.md": python_page.python_page,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or compare them: 1 if one differs."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m tools.write_reference [--check]", file=sys.stderr)
        return 2
    pages = {name: make() for name, make in PAGES.items()}
    differing = [name for name, page in pages.items() if _content(FOLDER / name) != page]
    for name in differing:
        if arguments:
            print(f"docs/reference/{name} differs: run python -m tools.write_reference")
        else:
            (FOLDER / name).write_text(pages[name], encoding="utf-8")
    return 1 if arguments and differing else 0


def _content(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
