"""The overview figure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.figures.overview import draw
from buddysim.synthetic import make_trace


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plots")
    make_trace("stream", folder / "t.bin", {"footprint": "1 MiB", "op": "copy", "sizes": "32 B:3, 128 B:1"})
    results = {scheme: buddysim.simulate(folder / "t.bin", scheme=scheme).to_dict() for scheme in ("buddy", "ideal")}
    (folder / "r.json").write_text(json.dumps(results))
    return folder / "r.json"


def test_bars_are_as_long_as_the_counters_say(saved: Path) -> None:
    results = json.loads(saved.read_text())
    times, traffic = draw(results).axes
    assert [label.get_text() for label in times.get_yticklabels()] == ["ideal", "buddy"]
    widths = [bar.get_width() for bar in times.patches]  # type: ignore[attr-defined]
    assert widths == [1, results["buddy"]["time_ps"] / results["ideal"]["time_ps"]]
    moved = sum(bar.get_width() for bar in traffic.patches) * 2**20  # type: ignore[attr-defined]
    keys = ("device.read_bytes", "device.write_bytes", "device.metadata_bytes", "link.read_bytes", "link.write_bytes")
    assert moved == pytest.approx(sum(result[key] for result in results.values() for key in keys))


def test_the_same_result_gives_the_same_small_file(saved: Path, tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        assert main(["plot", "overview", str(saved), "-o", str(tmp_path / name)]) == 0
    image = (tmp_path / "a.png").read_bytes()
    assert image == (tmp_path / "b.png").read_bytes()
    assert len(image) < 200_000


@pytest.mark.parametrize("content", ["", "[]", '{"buddy": 3}'])
def test_file_without_a_result_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    (tmp_path / "r.json").write_text(content)
    assert main(["plot", "overview", str(tmp_path / "r.json"), "-o", str(tmp_path / "p.png")]) == 2
    assert "r.json" in capsys.readouterr().err
    assert not (tmp_path / "p.png").exists()


def test_a_result_without_the_baseline_is_refused(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = json.loads(saved.read_text())
    (tmp_path / "r.json").write_text(json.dumps({"buddy": results["buddy"]}))
    assert main(["plot", "overview", str(tmp_path / "r.json"), "-o", str(tmp_path / "p.png")]) == 2
    assert "'ideal'" in capsys.readouterr().err
