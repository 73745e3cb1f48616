"""``info`` and ``verify``."""

from __future__ import annotations

import json
import re

import pytest

import buddysim.trace as bt
from buddysim.cli import main
from buddysim.synthetic import make_trace
from tests.trace.builders import write_small


@pytest.fixture
def path(tmp_path):
    return write_small(tmp_path / "t.bin")


def test_info_shows_what_is_there(path, capsys):
    assert main(["info", str(path), "--assumptions"]) == 0
    shown = capsys.readouterr().out
    for text in ("1. ", "by formula", "scratch", "second", "16x2x1", "htod", "with 0x00", "50.0 %"):
        assert text in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    assert "PARTIAL TRACE" not in shown


def test_info_says_above_the_tables_what_is_not_a_gpus(tmp_path, capsys):
    provenance = bt.Provenance("buddysim capture triton", assumptions={"not_a_gpu": "the order of warps", "x": "other"})
    with bt.TraceWriter(tmp_path / "t.bin", provenance):
        pass
    assert main(["info", str(tmp_path / "t.bin")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "not a GPU's: the order of warps" in lines
    assert lines.index("not a GPU's: the order of warps") < lines.index("no allocations")


def test_info_as_json_is_complete(path, capsys):
    assert main(["info", str(path), "--json", "-"]) == 0
    content = json.loads(capsys.readouterr().out)
    with bt.open_trace(path) as trace:
        assert content["fingerprint"] == trace.fingerprint
        assert content["totals"]["memory_instructions"] == 772
        assert [kernel["name"] for kernel in content["kernels"]] == ["first", "second", "empty"]
        assert len(content["events"]) == len(trace.events)
        assert content["snapshots"][1]["contents"][0]["sampled_fraction"] == 0.5
        assert sum(content["size_maps"][0]["entries_by_class"]) + content["size_maps"][0]["unknown"] == 2304


def test_info_abbreviates_long_lists_and_cleans_names(tmp_path, capsys):
    path = tmp_path / "t.bin"
    with bt.TraceWriter(path, bt.Provenance("test")) as writer:
        for i in range(500):
            writer.begin_kernel(f"kernel_{i}\x1b[31m[red]" + "x" * 100, (1, 1, 1), (32, 1, 1))
            writer.end_kernel()
    assert main(["info", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "500 kernels" in shown
    assert "500 kernels: the first 12 and the last 4 (--json has all)" in shown
    assert "kernel_499" in shown
    assert "kernel_250" not in shown
    assert "\x1b" not in shown
    assert "x" * 100 in "".join(shown.split())
    main(["info", str(path), "--json", "-"])
    assert len(json.loads(capsys.readouterr().out)["kernels"]) == 500


def test_one_thing_is_no_plural_and_whole_numbers_have_no_decimals(tmp_path, capsys):
    small = tmp_path / "small.bin"
    make_trace("chase", small, {"footprint": "4 KiB", "hops": "7"})
    assert main(["info", str(small)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"1 kernel, \d+ warp instructions \(\d+ memory\), \d+ lines accessed", shown)
    assert "1 thread block in 1 chunk of" in shown
    assert main(["verify", str(small)]) == 0
    assert "1 kernel of 1 block in 1 chunk," in " ".join(capsys.readouterr().out.split())


def test_verify(path, capsys):
    assert main(["verify", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"{path}: ok\n")
    assert "3 kernels of 20 blocks" in " ".join(shown.split())


def test_interrupted_files(path, capsys):
    path.write_bytes(path.read_bytes()[:-100])
    assert main(["verify", str(path)]) == 2
    assert "interrupted" in capsys.readouterr().err
    assert main(["info", str(path)]) == 0
    assert "PARTIAL TRACE: " in capsys.readouterr().out


@pytest.mark.parametrize("command", ["info", "verify"])
def test_bad_files_are_one_line(tmp_path, capsys, command):
    (tmp_path / "foreign.bin").write_bytes(b"hello, world, this is not a trace")
    for name in ("foreign.bin", "missing.bin", "."):
        assert main([command, str(tmp_path / name)]) == 2
        caught = capsys.readouterr()
        assert caught.out == ""
        assert caught.err.count("\n") == 1
        assert caught.err.startswith("buddysim: error: ")
