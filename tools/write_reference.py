"""Write the pages of docs/ that are made from code and stored results: `python -m tools.write_reference`.

They are not in the repository; the site is built with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tools import cost_errors, fit_collectives, operator_errors, order_of_arrival
from tools.reference import (
    cli_page,
    comparison_pages,
    counter_pages,
    cuda_page,
    layer_page,
    machine_page,
    paper_pages,
    python_page,
    scheme_page,
)

DOCS = Path(__file__).parents[1] / "docs"
#: By the page's path in docs/; .gitignore names each.
PAGES: Mapping[str, Callable[[], str]] = {
    "validation/operators.md": operator_errors.page,
    "validation/layer-times.md": cost_errors.text,
    "explanation/buddy-transformers.md": comparison_pages.transformers_page,
    "reference/cli.md": cli_page.cli_page,
    "reference/cpu-and-cuda.md": cuda_page.cuda_page,
    "reference/layer-kinds.md": layer_page.layer_page,
    "reference/machine-keys.md": machine_page.machine_page,
    "reference/python.md": python_page.python_page,
    "reference/replay-counters.md": counter_pages.replay_page,
    "reference/training-counters.md": counter_pages.training_page,
    "reference/training-schemes.md": scheme_page.scheme_page,
    "validation/accelsim.md": comparison_pages.accelsim_page,
    "validation/buddy-paper.md": paper_pages.buddy_page,
    "validation/collectives.md": fit_collectives.page,
    "validation/dram.md": comparison_pages.dram_page,
    "validation/hardware.md": comparison_pages.hardware_page,
    "validation/llm.md": comparison_pages.llm_page,
    "validation/order-of-arrival.md": order_of_arrival.page,
    "validation/training-papers.md": paper_pages.training_page,
    "validation/unified-memory.md": comparison_pages.unified_memory_page,
}
#: Pages that take more than a few seconds.
SLOW = ("validation/operators.md", "validation/layer-times.md")


def made(name: str) -> str:
    """Return the text of a page."""
    return PAGES[name]()


def write_pages(docs: Path = DOCS) -> list[Path]:
    """Write every page that isn't there as it should be, on all processors; return these.

    Parameters
    ----------
    docs : the folder that gets them
    """
    written = []
    with ProcessPoolExecutor() as pool:
        for name, text in zip(PAGES, pool.map(made, PAGES), strict=True):
            path = docs / name
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
                written.append(path)
    return written


def main(arguments: list[str]) -> int:
    """Write the pages."""
    if arguments:
        print("usage: python -m tools.write_reference", file=sys.stderr)
        return 2
    print(*write_pages(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
