"""Results are shown as table, JSON and rows."""

from __future__ import annotations

import copy
import json
import re

import pytest

import buddysim
from buddysim import training
from buddysim.base.jsonfile import to_json, write_json
from buddysim.base.parquet import tidy_rows, write_parquet
from buddysim.capture.memory.derived_kernels import ASSUMED
from buddysim.replay.component.shown import ShownRow
from buddysim.replay.sensitivity import NO_DIFFERENCE
from buddysim.report import bottleneck, replay_screen
from buddysim.report.bottleneck import format_bottleneck, format_next_resource, resources, utilizations
from buddysim.report.quantities import (
    format_bytes,
    format_count,
    format_percent,
    format_rate,
    format_speedup,
    format_speedup_range,
    format_time,
)
from buddysim.report.replay_screen import result_parts
from buddysim.report.screen import format_as_html, format_as_text
from buddysim.synthetic import make_trace
from buddysim.trace.model import DERIVED_ACCESSES


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "t.bin"
    make_trace("stream", path, {"footprint": "256 KiB", "op": "copy", "sizes": "32 B:3, 128 B:1"})
    results = buddysim.simulate_schemes(path, schemes=("buddy", "ideal", "pinned-host"))
    return {scheme: result.to_dict() for scheme, result in results.items()}


def printed(results, width=100):
    return format_as_text(result_parts(results, "full result: r.json", seconds=0.5), width)


def row(shown, label):
    line = next(line for line in shown.splitlines() if line.strip().startswith(label))
    return line.strip().removeprefix(label).split("  ")


def cells(shown, label):
    return [cell.strip() for cell in row(shown, label) if cell.strip()]


def test_no_times_of_a_trace_whose_accesses_are_derived(results):
    """Of a native program: the assumption stands before all numbers, and neither times nor speedups are shown."""
    assert ASSUMED["accesses"].startswith(DERIVED_ACCESSES)
    derived = copy.deepcopy(results)
    for result in derived.values():
        result["provenance"]["assumptions"]["trace.accesses"] = ASSUMED["accesses"]
    shown = printed(derived)
    assert shown.splitlines()[2] == "DERIVED ACCESSES: compare compression, not times, which are in --json alone"
    for text in ("speedup", "simulated time", "core cycles", "bottleneck", "DRAM-bound", "waiting time"):
        assert text not in shown
    assert cells(shown, "compression ratio")[0] == "4.00x"
    five = format_as_text(replay_screen._schemes_as_rows(derived), 100)
    assert "speedup" not in five
    assert "bottleneck" not in five
    assert "device" in five


def test_table_says_what_the_counters_say(results):
    shown = printed(results)
    buddy, ideal = results["buddy"], results["ideal"]
    assert cells(shown, "core cycles") == [f"{result['cycles']:,}" for result in results.values()]
    assert cells(shown, "speedup over ideal")[0] == format_speedup(ideal["time_ps"] / buddy["time_ps"])
    assert cells(shown, "compression ratio")[0] == "4.00x"
    assert cells(shown, "buddy-access fraction") == [format_percent(buddy["buddy.access_fraction"]), "-", "-"]
    assert re.search(r"simulated in 0.500 s \(.* memory instructions/s\); full result: r.json\n$", shown)


def test_a_ratio_that_changes_over_time_is_shown_with_its_largest_and_its_mean(results):
    label = "peak, mean over time"
    assert label not in printed(results)
    changing = {"compression.ratio": 2.5, "compression.max_ratio": 4.0, "compression.mean_ratio": 3.125}
    shown = printed({scheme: {**result, **changing} for scheme, result in results.items()})
    assert cells(shown, "compression ratio") == ["2.50x"] * 3
    assert cells(shown, label) == ["4.00x, 3.12x"] * 3


def test_table_without_the_baseline_has_no_slowdown(results):
    shown = printed({"buddy": results["buddy"]})
    assert "speedup" not in shown
    assert "baseline" not in shown


def test_a_narrow_terminal_is_enough(results):
    assert max(map(len, printed(results, width=80).splitlines())) <= 80


def test_names_from_a_file_cannot_steer_the_terminal(results):
    changed = json.loads(json.dumps(results["buddy"]))
    changed["per_allocation"][0]["name"] = "\x1b[2Jname" + 100 * "x"
    changed["provenance"]["assumptions"]["trace.gaps"] = "a\x1b]0;title\x07b\nc"
    parts = result_parts({"buddy": changed}, with_assumptions=True)
    shown = format_as_text(parts, 200)
    assert "\x1b" not in shown
    assert "?[2Jname" in shown


def test_a_scheme_adds_rows_of_every_kind(results, monkeypatch):
    counters = ("l2.sector_hits", "l2.sector_mshr_merges", "l2.sector_accesses")
    own = (
        ShownRow("my section", "my section", "title", (), "Section."),
        ShownRow("my section", "own count", "count", counters[2:], "Accesses."),
        ShownRow("my section", "absent", "count", ("mine.absent",), "Nothing."),
        ShownRow("hit rates", "own hits", "hits", counters, "Hits."),
        ShownRow("DRAM traffic", "own bytes", "bytes", ("device.demand_bytes",), "Bytes."),
        ShownRow("allocations", "own column", "fraction", ("per_allocation.buddy_access_fraction",), "Fraction."),
    )
    for module in (replay_screen, bottleneck):
        monkeypatch.setattr(module, "shown_rows", lambda *_: iter(own))
    shown, buddy = printed({"buddy": results["buddy"]}), results["buddy"]
    assert cells(shown, "own count") == [format_count(buddy["l2.sector_accesses"])]
    misses = format_percent(buddy["l2.sector_accesses"] - buddy[counters[0]] - buddy[counters[1]], buddy[counters[2]])
    assert cells(shown, "own hits") == [*cells(shown, "L2 sectors"), f"misses {misses}"]
    assert cells(shown, "own bytes") == cells(shown, "demand")
    assert "my section" in shown
    assert "own column" in shown
    assert "absent" not in shown
    assert "metadata cache" not in shown


def test_every_resource_has_a_name_for_people(results):
    assert {f"utilization.{name}" for name in resources()} >= {key for key in results["buddy"] if "utilization." in key}
    nearest = utilizations(results["buddy"])
    assert [fraction for _, fraction in nearest] == sorted((fraction for _, fraction in nearest), reverse=True)


def test_bottleneck_and_next_resource_are_named_with_their_utilization():
    busy = {"utilization.dram_channels": 0.9, "utilization.dram_busiest_channel": 0.92, "utilization.link_read": 0.7}
    assert (format_bottleneck(busy), format_next_resource(busy)) == ("DRAM 90 %", "link read 70 %")
    assert format_bottleneck({**busy, "utilization.dram_busiest_channel": 0.999}) == "channel 100 %"
    idle = {"utilization.dram_channels": 0.3, "utilization.issue_slots": 0.4}
    assert (format_bottleneck(idle), format_next_resource(idle)) == ("none > 60 %", "issue 40 %")


def test_speedups_have_three_digits_and_slowdowns_are_below_1():
    assert format_speedup(2.0492) == "2.05x"
    assert format_speedup(0.8) == "0.800x"
    assert format_speedup(1 / 160.86) == "0.00622x"
    assert format_speedup(0.9999) == "1.00x"
    assert format_speedup_range(0.98, 1.25) == "0.980x - 1.25x"


def test_a_notebook_shows_the_same_table(results):
    html = format_as_html(result_parts(results))
    assert html.count("<table>") == 2
    assert html.count("<tr>") == html.count("</tr>")
    assert "&lt;" not in html or "<script" not in html
    assert "speedup over ideal" in html


def test_json_is_sorted_and_the_same_every_time(results, tmp_path, capsys):
    text = to_json(results)
    assert json.loads(text) == json.loads(json.dumps(results))
    backwards = {scheme: dict(reversed(result.items())) for scheme, result in reversed(results.items())}
    assert to_json(backwards) == text
    write_json(tmp_path / "r.json", results)
    assert (tmp_path / "r.json").read_text() == text
    write_json("-", results)
    assert capsys.readouterr().out == text


def test_rows_are_tidy(results):
    rows = list(tidy_rows(results))
    keys = [(row["scheme"], row["scope"], row["index"], row["counter"]) for row in rows]
    assert len(set(keys)) == len(keys)
    values = {key: row["value"] for key, row in zip(keys, rows, strict=True)}
    texts = {key: row["text"] for key, row in zip(keys, rows, strict=True)}
    buddy = results["buddy"]
    assert values["buddy", "run", None, "time_ps"] == buddy["time_ps"]
    assert values["buddy", "kernel", 0, "cycles"] == buddy["per_kernel"][0]["cycles"]
    assert texts["buddy", "allocation", 1, "target"] == "4x"
    assert values["buddy", "run", None, "latency.l1_miss_histogram.0"] == buddy["latency.l1_miss_histogram"][0]
    assert values["ideal", "run", None, "sensitivity.half_compute_gaps_time_ps"] is None
    assert {row["machine"] for row in rows} == {"p100-nvlink2"}


def test_rows_of_a_training_iteration():
    results = {
        name: training.simulate("alexnet-cifar10", 4, "titan-x", name).to_dict() for name in ("oracle", "baseline-m")
    }
    rows = list(tidy_rows(results))
    keys = {(row["scheme"], row["scope"], row["index"], row["counter"]): row for row in rows}
    assert len(keys) == len(rows)
    assert {(row["network"], row["batch"], row["machine"]) for row in rows} == {("alexnet-cifar10", 4, "titan-x")}
    base = results["baseline-m"]
    assert keys["baseline-m", "run", None, "time_ms"]["value"] == base["time_ms"]
    assert keys["baseline-m", "layer", 1, "forward_ms"]["value"] == base["per_layer"][1]["forward_ms"]
    assert keys["baseline-m", "layer", 1, "algorithms.forward"]["text"] == "implicit_gemm"
    assert keys["oracle", "run", None, "fits"]["value"] == 1


def test_parquet_holds_the_rows(results, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_parquet(tmp_path / "r.parquet", results)
    assert parquet.read_table(tmp_path / "r.parquet").to_pylist() == list(tidy_rows(results))
    assert [file.name for file in tmp_path.iterdir()] == ["r.parquet"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (format_time(143_645_606), "144 us"),
        (format_time(0), "0 ps"),
        (format_time(999), "999 ps"),
        (format_time(5_000_000_000_000), "5.00 s"),
        (format_time(1e300 * 1e9), "inf s"),
        (format_bytes(36_186_880), "34.5 MiB"),
        (format_bytes(484), "484 B"),
        (format_rate(3_331_867), "3.33 M/s"),
        (format_rate(12.4), "12.4/s"),
        (format_percent(0.1766), "17.7 %"),
        (format_percent(0.0), "0 %"),
        (format_percent(1, 0), "-"),
        (format_percent(0.00084), "0.1 %"),
        (format_percent(0.00012), "< 0.1 %"),
        (format_percent(1), "100 %"),
        (format_percent(3, 4), "75.0 %"),
    ],
)
def test_quantities(text, expected):
    assert text == expected


def changed(result, **values):
    copy = json.loads(json.dumps(result))
    for key, value in values.items():
        copy[key.replace("__", ".")] = value
    return copy


def test_sensitivity_range_that_contains_1_is_a_caveat(results):
    runs = {"requested": "all", "kinds": ["latency"], "runs": [{"seed": 0}] * 2}
    some = {}
    for scheme, (ratio, low, high) in {
        "buddy": (0.99, 0.98, 1.01),
        "pinned-host": (9, 8, 9.5),
        "ideal": (1, 1, 1),
    }.items():
        some[scheme] = changed(
            results[scheme],
            slowdown__ratio=ratio,
            slowdown__min=low,
            slowdown__max=high,
            sensitivity__time_ps=[1, 2],
            sensitivity__compression_ratio=[1.5, 2.5] if scheme == "buddy" else [1.0, 1.0],
        )
        some[scheme]["provenance"]["sensitivity"] = runs
    shown = printed(some, width=120)
    assert cells(shown, "speedup over ideal") == ["no difference", "0.111x", "baseline"]
    words = [line[:44].split() for line in shown.splitlines()]
    row = next(n for n, line in enumerate(words) if line[:3] == ["speedup", "over", "ideal"])
    assert " ".join([*words[row][3:], *words[row + 1], *words[row + 2]]) == NO_DIFFERENCE
    assert cells(shown, "sensitivity range") == ["0.990x - 1.02x", "0.105x - 0.125x", "-"]
    assert "1.50x - 4.00x" in shown
    assert "buddy: no difference that this trace can tell: the range contains 1." in shown
    with_notes = printed({scheme: some[scheme] for scheme in ("pinned-host", "ideal")})
    assert "latency +-2.5 %" in with_notes
    assert "distinguish" not in with_notes


def test_extrapolated_sizes_are_a_caveat_with_their_fraction(results):
    assert "nearest sampled page" not in printed(results)
    fractions = {"sizes__extrapolated_fraction": 0, "sizes__extrapolated_mean_fraction": 0.123}
    shown = printed({"buddy": changed(results["buddy"], **fractions)})
    assert "- Sizes of 12.3 % of the entries are those of the nearest sampled page." in shown


def test_pinned_host_and_unified_memory_next_to_buddy_are_said_to_be_optimistic(results):
    text = "optimistic against buddy: TLB misses and page walks are not modelled."
    assert f"pinned-host is {text}" in printed(results, 120)
    assert text not in printed({scheme: results[scheme] for scheme in ("pinned-host", "ideal")}, 120)
    both = {**results, "unified-memory": changed(results["pinned-host"])}
    shown = printed(both, 120)
    assert f"pinned-host and unified-memory are {text}" in shown
    assert shown.count("optimistic against") == 1


def test_schemes_become_rows_from_five_on(results):
    names = ("buddy", "ideal", "pinned-host", "unified-memory", "bandwidth-compression")
    some = {name: results.get(name, results["ideal"]) for name in names}
    shown = printed(some, 80)
    assert [line.split()[0] for line in shown.splitlines() if line.startswith(names)] == sorted(
        names, key=lambda name: some[name]["time_ps"]
    )
    heading = " ".join(shown.split("scheme")[0].split() + shown.split("scheme")[1].splitlines()[0].split())
    assert all(word in heading for word in ("speedup", "device", "link traffic", "bottleneck"))
    assert "simulated" not in heading.split("allocated")[1]
    assert "compression" in printed(some, 200)


def test_a_heading_of_more_than_12_characters_breaks_at_its_first_hyphen():
    assert replay_screen._heading_of("twelve-signs") == "twelve-signs"
    assert replay_screen._heading_of("thirteen-sign") == "thirteen-\nsign"
