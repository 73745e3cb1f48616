"""Causes of numbers that are not reproduced: common ones are stated once."""

from __future__ import annotations

from buddysim.papers.causes import sentences, split_causes


def test_common_causes_and_clauses_are_stated_once() -> None:
    whole = "the first kernel of this network waits for memory"
    clause = "two warps of this block read one line"
    shown, common = split_causes([whole, f"ms, median: 3; {clause}", whole, f"{clause}; a short clause", ""])
    assert shown == ["A.", "ms, median: 3. B.", "A.", "A short clause. B.", ""]
    assert common == [
        "**A**: The first kernel of this network waits for memory.",
        "**B**: Two warps of this block read one line.",
    ]


def test_short_clauses_are_repeated() -> None:
    assert split_causes(["too fast; one", "too fast; two"]) == (["Too fast. One.", "Too fast. Two."], [])


def test_names_of_workloads_have_no_capital() -> None:
    assert sentences("palm 1, ep 2; the rest is less") == "palm 1, ep 2. The rest is less."
