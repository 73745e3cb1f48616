"""Results as table, JSON and rows."""

from __future__ import annotations

import json

import pytest

import buddysim
from buddysim import training
from buddysim.base.jsonfile import to_json, write_json
from buddysim.base.parquet import tidy_rows, write_parquet
from buddysim.report.bottleneck import RESOURCES, format_bottleneck, next_limit, utilizations
from buddysim.report.quantities import band_text, change_text, format_bytes, format_percent, format_rate, format_time
from buddysim.report.replay_screen import result_parts
from buddysim.report.screen import format_as_html, format_as_text
from buddysim.synthetic import make_trace


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "t.bin"
    make_trace("stream", path, {"footprint": "256 KiB", "op": "copy", "sizes": "32 B:3, 128 B:1"})
    results = buddysim.simulate_schemes(path, schemes=("buddy", "ideal", "pinned-host"))
    return {scheme: result.to_dict() for scheme, result in results.items()}


def printed(results, width=100):
    return format_as_text(result_parts(results, "full result: there"), width)


def row(shown, label):
    line = next(line for line in shown.splitlines() if line.strip().startswith(label))
    return line.strip().removeprefix(label).split("  ")


def cells(shown, label):
    return [cell.strip() for cell in row(shown, label) if cell.strip()]


def test_table_says_what_the_counters_say(results):
    shown = printed(results)
    buddy, ideal = results["buddy"], results["ideal"]
    assert cells(shown, "cycles") == [f"{result['cycles']:,}" for result in results.values()]
    assert cells(shown, "against ideal")[0] == change_text(buddy["time_ps"] / ideal["time_ps"])
    assert cells(shown, "compression ratio")[0] == "4.00"
    assert cells(shown, "buddy-access share") == [format_percent(buddy["buddy.access_fraction"]), "-", "-"]
    assert shown.rstrip().endswith("full result: there")


def test_a_ratio_that_changes_over_time_is_shown_with_its_largest_and_its_mean(results):
    label = "largest, and mean over time"
    assert label not in printed(results)
    changing = {"compression.ratio": 2.5, "compression.max_ratio": 4.0, "compression.mean_ratio": 3.125}
    shown = printed({scheme: {**result, **changing} for scheme, result in results.items()})
    assert cells(shown, "compression ratio") == ["2.50"] * 3
    assert cells(shown, label) == ["4.00, 3.12"] * 3


def test_table_without_the_baseline_has_no_slowdown(results):
    shown = printed({"buddy": results["buddy"]})
    assert "against" not in shown
    assert "baseline" not in shown


def test_a_narrow_terminal_is_enough(results):
    assert max(map(len, printed(results, width=80).splitlines())) <= 80


def test_names_from_a_file_cannot_steer_the_terminal(results):
    changed = json.loads(json.dumps(results["buddy"]))
    changed["per_allocation"][0]["name"] = "\x1b[2Jname" + 100 * "x"
    changed["provenance"]["assumptions"]["trace.gaps"] = "a\x1b]0;title\x07b\nc"
    shown = printed({"buddy": changed})
    assert "\x1b" not in shown
    assert "?[2Jname" in shown


def test_every_resource_has_a_name_for_people(results):
    shares = [key.removeprefix("utilization.") for key in results["buddy"] if key.startswith("utilization.")]
    assert set(shares) <= set(RESOURCES)
    nearest = utilizations(results["buddy"])
    assert [share for _, share in nearest] == sorted((share for _, share in nearest), reverse=True)


def test_what_binds_is_named_and_what_comes_next():
    busy = {"utilization.dram_channels": 0.9, "utilization.dram_busiest_channel": 0.92, "utilization.link_read": 0.7}
    assert format_bottleneck(busy) == ("device memory", "90.0 %")
    assert next_limit(busy) == ("link, read", "70.0 %")
    assert format_bottleneck({**busy, "utilization.dram_busiest_channel": 0.999}) == ("busiest channel", "99.9 %")
    idle = {"utilization.dram_channels": 0.3, "utilization.issue_slots": 0.4}
    assert (format_bottleneck(idle)[0], next_limit(idle)) == ("latency", ("issue slots", "40.0 %"))


def test_a_time_below_the_baselines_is_a_speed_up():
    assert change_text(0.488) == "2.049x faster"
    assert change_text(1.25) == "1.250x slower"
    assert change_text(0.9999) == "as fast"
    assert band_text(0.5, 0.4, 0.8) == "1.250x to 2.500x"
    assert band_text(1.01, 0.98, 1.02) == "0.980 to 1.020 of its time"


def test_a_notebook_shows_the_same_table(results):
    html = format_as_html(result_parts(results))
    assert html.count("<table>") == 2
    assert html.count("<tr>") == html.count("</tr>")
    assert "&lt;" not in html or "<script" not in html
    assert "against ideal" in html


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
        (format_time(143_645_606), "143.6 us"),
        (format_time(0), "0 ps"),
        (format_time(999), "999 ps"),
        (format_time(5_000_000_000_000), "5.0 s"),
        (format_bytes(36_186_880), "34.5 MiB"),
        (format_bytes(484), "484 B"),
        (format_rate(3_331_867), "3.3 M/s"),
        (format_rate(12.4), "12/s"),
        (format_percent(0.1766), "17.7 %"),
        (format_percent(0.0), "0 %"),
        (format_percent(1, 0), "-"),
        (format_percent(0.00084), "0.084 %"),
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


def test_a_ratio_has_its_band_and_one_around_1_claims_nothing(results):
    runs = {"asked": "all", "kinds": ["latency"], "runs": [{"seed": 0}] * 2}
    some = {}
    for scheme, (ratio, low, high) in {
        "buddy": (0.99, 0.98, 1.01),
        "pinned-host": (9, 8, 9.5),
        "ideal": (1, 1, 1),
    }.items():
        some[scheme] = changed(
            results[scheme],
            slowdown__ratio=ratio,
            slowdown__low=low,
            slowdown__high=high,
            sensitivity__time_ps=[1, 2],
            sensitivity__compression_ratio=[1.5, 2.5] if scheme == "buddy" else [1.0, 1.0],
        )
        some[scheme]["provenance"]["sensitivity"] = runs
    shown = printed(some, width=120)
    assert cells(shown, "against ideal") == ["1.010x faster", "9.000x slower", "baseline"]
    assert cells(shown, "band") == ["0.980 to 1.010 of its time", "8.000x to 9.500x", "-"]
    assert "1.50 to 4.00" in shown
    assert "bands: 2 more runs of each scheme, changed alike: latencies by 2.5 %" in shown
    assert "the band of buddy contains 1: this trace doesn't tell it from ideal" in shown
    assert "the band of host" not in shown
    assert "the band of ideal" not in shown


def test_sizes_taken_from_neighbours_are_shown_where_there_are_any(results):
    some = dict(results)
    assert "neighbours" not in printed(some)
    some["buddy"] = changed(results["buddy"], sizes__extrapolated_share=0, sizes__extrapolated_mean_share=0.123)
    assert "sizes taken from sampled neighbours (buddy): 0 % of the entries at the start, 12.3 % over the" in printed(
        some
    )
    shares = {"sizes__extrapolated_share": 0.984, "sizes__extrapolated_mean_share": 0.5}
    some |= {scheme: changed(results[scheme], **shares) for scheme in ("buddy", "pinned-host")}
    shown = printed(some, width=120)
    assert "(buddy, pinned-host): 98.4 % of the entries at the start, 50.0 % over the snapshots used" in shown
