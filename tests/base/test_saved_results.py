"""Saved results: the schema follows the counters' definitions; a damaged file is one line, a bug stays a bug."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.base.saved_results import check_result, check_row, counters, read_results
from buddysim.base.saved_table import SavedTable, saved_tables
from buddysim.cli import main
from buddysim.figures import overview
from tests.fuzz import good_files

#: A counter of each kind that definitions know, values that it can't have, and what the line says.
WRONG = {
    "time_ps": (-1, "'3'", None, [3], True, 1e300),
    "device.channel_bytes": (3, [-1], ["x"], None),
    "queueing.l1_port_histogram": (3, "x"),
    "memory.by_kind": (3, {"weights": -1}, {"weights": "x"}),
    "fits": (1, "yes", None),
    "oom.message": (3, ["x"]),
    "per_kernel": (3, [3], [{"time_ps": "x"}], [{"name": 3}], [{"time_ps": -1}]),
    "per_layer": ({"x": 1}, [{"algorithms": "x"}], [{"algorithms": {"forward": 3}}], [{"in_place": 1}]),
    "provenance": (3, []),
}
#: Commands on the file of a replay, and on that of a training.
OF_REPLAY = (
    ("plot", "overview", "{}", "-o", "{}.svg"),
    ("diff", "{}:ideal", "{}:buddy"),
    ("train", "alexnet", "--scheme", "buddy-scaled", "--buddy-result", "{}"),
)
OF_TRAINING = (("plot", "stalls", "{}", "-o", "{}.svg"),)


@pytest.fixture
def replay() -> dict[str, Any]:
    return copy.deepcopy(good_files.result("run"))


@pytest.fixture
def training() -> dict[str, Any]:
    return copy.deepcopy(good_files.result("train"))


def saved(content: object, folder: Path) -> Path:
    path = folder / "r.json"
    path.write_text(json.dumps(content))
    return path


def line_of(command: tuple[str, ...], path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The line of a command that refuses a file."""
    assert main([part.format(path) for part in command]) == 2
    error = capsys.readouterr().err
    assert len(error.splitlines()) == 1, error
    return error


def test_real_results_are_what_the_definitions_say(replay: dict[str, Any], training: dict[str, Any]) -> None:
    known = {name for name, _, _ in counters()}
    for result in (*replay.values(), *training.values()):
        check_result(result, "r")
        check_row({key: value for key, value in result.items() if isinstance(value, int | float | str)}, "r")
        assert result.keys() - known == {key for key in result if key == "provenance" or key.startswith("per_")}


@pytest.mark.parametrize("key", WRONG)
def test_a_counter_of_another_kind_is_named(key: str) -> None:
    for value in WRONG[key]:
        with pytest.raises(BuddysimError, match=f"^r: {key}.*: expected .*, got ") as raised:
            check_result({key: value}, "r")
        assert "\n" not in str(raised.value)


def test_what_nothing_defines_may_hold_anything() -> None:
    check_result({"mine.counter": ["x", -1], "provenance": {"mine": [3]}}, "r")


def test_a_row_holds_no_tables() -> None:
    check_row({"scheme": "buddy", "link.bandwidth": -1.5, "time_ps": 3, "mine": None}, "r")
    for wrong in ({"mine": [3]}, {"mine": 2**70}, {"time_ps": "3"}):
        with pytest.raises(BuddysimError, match=r"^r: "):
            check_row(wrong, "r")


def test_a_missing_key_names_the_file_and_its_way() -> None:
    table = saved_tables({"a": [{"b": 1}]}, "f.json", str.upper)
    assert isinstance(table["A"][0], SavedTable)
    with pytest.raises(BuddysimError, match=r"^f.json: a\[0\]: c is missing$"):
        table["A"][0]["c"]
    assert table.get("c") is None


@pytest.mark.parametrize(
    "content", ["[1]", "{}", '{"ideal": 3}', '{"ideal": {"provenance": {}}}', '{"ideal": {"provenance": 3}}']
)
def test_a_file_of_other_contents_is_no_result(content: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(BuddysimError, match="not a result as 'run --json' or 'train --json' writes it"):
        read_results(tmp_path / "r.json")


def test_every_command_names_file_and_counter(
    replay: dict[str, Any], training: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay["buddy"]["compression.ratio"] = -3
    for command in OF_REPLAY:
        line = line_of(command, saved(replay, tmp_path), capsys)
        assert "r.json: buddy: compression.ratio: expected at least 0, got -3" in line
    training["vdnn-dyn"]["per_layer"][1]["forward_ms"] = "x"
    for command in OF_TRAINING:
        line = line_of(command, saved(training, tmp_path), capsys)
        assert "r.json: vdnn-dyn: per_layer[1].forward_ms: expected a number, got 'x'" in line


def test_every_command_names_what_is_missing(
    replay: dict[str, Any], training: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del replay["buddy"]["compression.ratio"], training["vdnn-dyn"]["per_layer"][1]["forward_ms"]
    for command in (OF_REPLAY[0], OF_REPLAY[2]):
        assert "r.json: buddy: compression.ratio is missing" in line_of(command, saved(replay, tmp_path), capsys)
    line = line_of(OF_TRAINING[0], saved(training, tmp_path), capsys)
    assert "r.json: vdnn-dyn: per_layer[1]: forward_ms is missing" in line


def test_no_command_divides_by_a_time_of_zero(
    replay: dict[str, Any], training: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay["ideal"]["time_ps"] = 0
    line = line_of(OF_REPLAY[2], saved(replay, tmp_path), capsys)
    assert "r.json: ideal.time_ps: expected more than 0, got 0" in line
    for result in training.values():
        result["time_ms"] = 0
    assert main([part.format(saved(training, tmp_path)) for part in OF_TRAINING[0]]) == 0


def test_half_a_range_of_ratios_is_none(replay: dict[str, Any], tmp_path: Path) -> None:
    replay["buddy"]["footprint.buddy_bytes"], replay["buddy"]["compression.synthetic_min_ratio"] = 3, 1.5
    assert main([part.format(saved(replay, tmp_path)) for part in OF_REPLAY[0]]) == 0


def test_a_bug_in_a_figure_is_not_the_files(
    replay: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(overview, "draw", draw)
    assert main([part.format(saved(replay, tmp_path)) for part in OF_REPLAY[0]]) == 70
    assert "unexpected: KeyError" in capsys.readouterr().err
