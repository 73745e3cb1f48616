"""No folder grows by over a tenth unless the table of docs/developers/architecture.md says why."""

from __future__ import annotations

from tools.write_lines import DOCUMENT, HEAD, counted, noted, rewritten

LARGEST_GROWTH = 1.1


def test_a_folder_has_grown_by_a_tenth_of_its_number_or_less() -> None:
    numbers = {folder: number for folder, (number, _) in noted(DOCUMENT.read_text(encoding="utf-8")).items()}
    lines = counted()
    assert lines.keys() == numbers.keys()
    grown = {
        folder: (number, lines[folder]) for folder, number in numbers.items() if lines[folder] > LARGEST_GROWTH * number
    }
    assert not grown, f"{grown}: python -m tools.write_lines FOLDER REASON"


def test_a_number_falls_by_itself_and_rises_with_a_reason() -> None:
    text = "# Page\n\n" + HEAD + "| `base` | 1,000 | - |\n| `replay` | 2,000 | kernels |\n"
    lines = {"base": 1090, "replay": 1500, "new": 7}
    fallen = rewritten(text, lines, {})
    assert noted(fallen) == {"base": (1000, "-"), "replay": (1500, "kernels"), "new": (7, "-")}
    assert noted(rewritten(fallen, lines, {"base": "plug-ins"}))["base"] == (1090, "plug-ins")
