"""Random mutants are comparisons, signs and bounds; a seed and the sources determine them."""

from __future__ import annotations

import pytest

from tools.random_mutants import Source, changes, counts_of_folders, main

TEXT = '''"""Says -1 < 2."""
if TYPE_CHECKING:
    SIZE = 1 + 2
def f(a: "x < y", b=1 - 2) -> "p == q":
    """Return min(a, b)."""
    if a < b and b != 3:
        raise ValueError(f"{a - b}" "at least", 1 < 2)
    a += b  # é
    return max(a[1:], -a) - range(2)
class C:
    def __repr__(self):
        return 1 < 2
'''


def mutated(text: str) -> list[str]:
    """Return the line of each change, changed."""
    source = Source(text)
    all_changes = sorted(changes(source, source.tree))
    return [
        (text[: one.start] + one.new + text[one.end :]).splitlines()[text.count("\n", 0, one.start)].strip()
        for one in all_changes
    ]


def test_changes_are_those_of_results() -> None:
    assert mutated(TEXT) == [
        "if a <= b and b != 3:",
        "if a < b or b != 3:",
        "if a < b and b == 3:",
        "if a < b and b != 4:",
        "a -= b  # é",
        "return min(a[1:], -a) - range(2)",
        "return max(a[2:], -a) - range(2)",
        "return max(a[1:], a) - range(2)",
        "return max(a[1:], -a) + range(2)",
        "return max(a[1:], -a) - range(3)",
    ]


@pytest.mark.parametrize(
    "text", ["x = 'a' + b", "x = a + [b]", "x += f'{a}'", "x = 'c' + a + b", "x = (a <  # why\n b)"]
)
def test_what_has_no_difference_or_a_comment_is_left_as_it_is(text: str) -> None:
    assert mutated(text) == []


def test_lines_before_a_text_make_it_unique() -> None:
    source = Source("y = z\nc = x - 1\nb = 2\ny = z\nc = x - 1\n")
    last = list(changes(source, source.tree))[-1]
    assert source.whole_lines(last) == ("b = 2\ny = z\nc = x - 1", "b = 2\ny = z\nc = x + 1")


def test_folders_have_counts_by_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    counts = counts_of_folders(["report", "figures", "sweep"], 10)
    assert sum(counts.values()) == 10
    assert all(2 <= count <= 5 for count in counts.values())


def test_a_seed_determines_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for seed in ("1", "1", "2"):
        assert main(["plotting", "--seed", seed, "--count", "3"]) == 0
        printed.append(capsys.readouterr().out.partition("\n")[2])
    assert printed[0].count("[[mutant]]") == 3
    assert printed[0] == printed[1] != printed[2]
