"""Write docs/reference/replay-counters.md from the definitions of all counters: `python -m tools.write_counters`."""

from __future__ import annotations

from pathlib import Path

from buddysim.report.counter_texts import counters_page

if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "reference" / "replay-counters.md").write_text(
        counters_page(), encoding="utf-8"
    )
