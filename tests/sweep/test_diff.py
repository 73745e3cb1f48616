"""The command diff: differences between two results, machines, traces or studies."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.sweep.differences import Difference, differences
from buddysim.sweep.store import Store

ROOT = Path(__file__).parents[2]
LUD, BFS = (ROOT / "traces" / f"{name}.bin" for name in ("lud256", "bfs-volta"))


def study(path: Path, trace: Path, extra: str = "") -> str:
    """Write a study of two links."""
    path.write_text(
        f'[set]\ntrace = "{trace}"\nscheme = "ideal"\n{extra}[grid]\nlink.bandwidth = ["25 GB/s", "50 GB/s"]\n'
    )
    return str(path)


@pytest.fixture
def sweep_store(tmp_path: Path) -> str:
    return str(tmp_path / "store")


def test_two_paths_of_one_trace_are_equal(tmp_path: Path, sweep_store: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A study in another folder names the same trace by another path: `traces/x`, `out/../traces/x`."""
    (tmp_path / "out").mkdir()
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "x.bin").write_bytes(LUD.read_bytes())
    one = study(tmp_path / "one.toml", tmp_path / "traces" / "x.bin")
    other = study(tmp_path / "out" / "other.toml", Path("../traces/x.bin"), 'l2.size = "2 MiB"\n')
    for each in (one, other):
        assert main(["sweep", each, "--store", sweep_store, "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["diff", one, other, "--store", sweep_store]) == 0
    screen = capsys.readouterr().out
    assert "settings that differ: l2.size\n" in screen
    assert "2 pairs of points, 0 points without a partner" in screen
    paths = {
        record.row["trace"] for key in Store.at(sweep_store).all_keys() if (record := Store.at(sweep_store).get(key))
    }
    assert paths == {str(tmp_path / "traces" / "x.bin")}


def test_paths_of_one_file_do_not_differ() -> None:
    first = {"trace": str(LUD), "seed": 1}
    second = {"trace": str(ROOT / "traces" / ".." / "traces" / "lud256.bin"), "seed": 2}
    assert differences(first, second) == [Difference("seed", 1, 2)]
    assert [each.name for each in differences({"trace": str(LUD)}, {"trace": str(BFS)})] == ["trace"]


def test_values_of_a_study_have_their_units(
    tmp_path: Path, sweep_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    one = study(tmp_path / "one.toml", LUD)
    other = study(tmp_path / "other.toml", LUD, 'l2.size = "2 MiB"\n')
    for each in (one, other):
        assert main(["sweep", each, "--store", sweep_store, "--workers", "1"]) == 0
    capsys.readouterr()
    assert main(["diff", one, other, "--store", sweep_store]) == 0
    screen = capsys.readouterr().out
    assert not re.search(r"\de\+?\d", screen)
    assert re.search(r"^25\.0 GB/s +\d+\.\d us +\d+\.\d us ", screen, re.M)
    assert re.search(r"^l2\.size +- +2\.0 MiB$", screen, re.M)


@pytest.mark.slow
@pytest.mark.parametrize("width", [80, 120, 200])
def test_no_line_is_wider_than_the_screen(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for pair in (("v100", "a100-40"), ("titan-x", "k40"), (str(LUD), str(BFS))):
        assert main(["diff", *pair]) == 0
        screen = capsys.readouterr().out
        assert max(map(len, screen.splitlines())) <= width
        if pair == ("v100", "a100-40"):
            assert re.search(r"^link\.bandwidth +154\.686 GB/s +300 GB/s( +1\.94)?( +0\.516)?$", screen, re.M)


def test_values_that_three_digits_do_not_tell_apart_have_all_digits(capsys: pytest.CaptureFixture[str]) -> None:
    from buddysim.cli.diff import _cells

    assert _cells(Difference("time_ps", 51_880_220, 51_880_230)) == [
        "51,880,220 ps",
        "51,880,230 ps",
        "1.0000002",
        "0.9999998",
    ]
    assert _cells(Difference("time_ps", 51_880_220, 103_760_440)) == ["51.9 us", "104 us", "2.00", "0.500"]


def test_python_gives_the_same_differences() -> None:
    every = {each.name: each for each in buddysim.diff("v100", "a100-40")}
    assert every["link.bandwidth"].ratio == 300 / 154.686
    assert "l2.line" not in every
    with pytest.raises(buddysim.BuddysimError, match=r"v100 is a machine, lud256\.bin a trace"):
        buddysim.diff("v100", str(LUD))
