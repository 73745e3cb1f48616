"""Pages of comparisons: parts that are not written now stay, in the order of the registry."""

from __future__ import annotations

from pathlib import Path

from buddysim.report.validation_page import merged_page, parts_of


def test_parts_are_merged_in_the_order_of_the_registry(tmp_path: Path) -> None:
    path = tmp_path / "hardware.md"
    path.write_text(merged_page(path, "hardware", {"kernels": "k", "other": "o"}), encoding="utf-8")
    text = merged_page(path, "hardware", {"curves": "c", "kernels": "new"})
    assert text.startswith("# Real GPUs: curves and kernels\n")
    assert {name: part.strip() for name, part in parts_of(text).items()} == {
        "curves": "c",
        "kernels": "new",
        "other": "o",
    }
    assert list(parts_of(text)) == ["curves", "kernels", "other"]


def test_page_without_a_title_of_its_own_has_its_name(tmp_path: Path) -> None:
    assert merged_page(tmp_path / "mine.md", "mine", {}).startswith("# mine\n")
