"""The commands of sweeps: screens, refused arguments, agreement with the engines."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from pathlib import Path

import pytest

import buddysim
from buddysim.cli import main
from buddysim.sweep import compaction
from buddysim.sweep.store import Store

pytest.importorskip("duckdb", reason="needs pip install 'buddysim[sweep]'")

ROOT = Path(__file__).parents[2]
LUD = str(ROOT / "traces" / "lud256.bin")
STUDY = f"""
[set]
trace = "{LUD}"
[grid]
link.bandwidth = ["50 GB/s", "100 GB/s"]
scheme = ["buddy", "pinned-host", "ideal"]
[[exclude]]
scheme = "pinned-host"
link.bandwidth = "0.1 TB/s"
"""


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a study and the store of its results."""
    folder = tmp_path_factory.mktemp("studied")
    (folder / "study.toml").write_text(STUDY)
    assert main(["sweep", str(folder / "study.toml"), "--store", str(folder / "store"), "--workers", "1"]) == 0
    return folder


def test_a_table_has_what_the_engine_gives(studied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = "scheme,link.bandwidth,time_ps,slowdown_vs_ideal,l2.fills"
    out = studied / "t.csv"
    command = ["results", "--store", str(studied / "store"), "--columns", columns, "-o", str(out)]
    assert main([*command, "--where", "link.bandwidth < 60 GB/s"]) == 0
    with out.open(newline="") as file:
        rows = {row["scheme"]: row for row in csv.DictReader(file)}
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"link.bandwidth": "50 GB/s"})
    results = {scheme: buddysim.simulate(LUD, machine, scheme).counters for scheme in ("buddy", "pinned-host", "ideal")}
    assert rows.keys() == results.keys()
    for scheme, counters in results.items():
        assert int(rows[scheme]["time_ps"]) == counters["time_ps"]
        assert int(rows[scheme]["l2.fills"]) == counters["l2.fills"]
        assert float(rows[scheme]["slowdown_vs_ideal"]) == counters["time_ps"] / results["ideal"]["time_ps"]
        assert float(rows[scheme]["link.bandwidth"]) == 50e9
    assert "3 rows, 5 columns" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("scheme = buddy", 2),
        ("scheme = 'buddy'", 2),
        ("link.bandwidth > 50 GB/s", 2),
        ("link.bandwidth >= 50GB/s and scheme in (buddy, pinned-host)", 3),
        ("link.bandwidth = 0.05 TB/s", 3),
        ("not (scheme = buddy or scheme = ideal)", 1),
        ("l2.size = 4 MiB and time_ps > 1 us", 5),
        ("time_ps > 1 ms", 0),
        ("compression.ratio > 1 and scheme != ideal", 2),
        ("queueing = false and seed is not null", 5),
        ("link.bandwidth is null", 0),
    ],
)
def test_conditions_know_units(studied: Path, where: str, count: int, tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    columns = "key,time_ps"
    assert (
        main(["results", "--store", str(studied / "store"), "--where", where, "--columns", columns, "-o", str(out)])
        == 0
    )
    assert len(out.read_text().splitlines()) == count + 1


def test_sql_is_that_of_duckdb(studied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "select scheme, count(*) as n from results group by scheme order by scheme"
    assert main(["results", "--store", str(studied / "store"), "--sql", query]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:4]] == [
        ["buddy", "2"], ["ideal", "2"], ["pinned-host", "1"]
    ]  # fmt: skip


def test_the_screen_shows_what_varies(studied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["results", "--store", str(studied / "store")]) == 0
    above, heading, *_ = capsys.readouterr().out.splitlines()
    assert above.split() == ["link.", "slowdown_"]
    assert heading.split() == ["key", "trace", "scheme", "sizes", "bandwidth", "time", "vs_ideal"]


def test_figures_of_machines_have_units_on_the_screen(studied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = "key,link.bandwidth,l2.size,l2.load_to_use,clock.core,l2.ways"
    assert main(["results", "--store", str(studied / "store"), "--columns", columns, "--where", "scheme = buddy"]) == 0
    heading, first, *_ = capsys.readouterr().out.splitlines()
    assert heading.split()[:6] == columns.split(",")
    assert re.fullmatch(r"\w{10} +(50\.0|100) GB/s +4\.0 MiB +180 ns +1\.3 GHz +16( +synthetic)?", first), first


def test_a_ratio_of_synthetic_sizes_is_never_shown_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, store = str(ROOT / "traces" / "bfs-volta.bin"), ["--store", str(tmp_path / "store")]
    assert main(["sweep", trace, "--scheme", "buddy", "--seed", "1,2", "--workers", "1", *store]) == 0
    assert main(["sweep", LUD, "--scheme", "ideal", "--workers", "1", *store]) == 0
    capsys.readouterr()
    assert main(["results", "--columns", "scheme,compression.ratio", *store]) == 0
    assert capsys.readouterr().out.count("synthetic") == 2
    assert main(["results", "--columns", "scheme,compression.ratio", "--where", "scheme = ideal", *store]) == 0
    assert "synthetic" not in capsys.readouterr().out


def test_results_of_two_engines_are_two_tables(
    studied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each engine's results have their own columns: a value that only one engine has distinguishes no row."""
    shutil.copytree(studied / "store", tmp_path / "store")
    store = ["--store", str(tmp_path / "store")]
    study = tmp_path / "training.toml"
    study.write_text(
        'engine = "training"\n[set]\nnetwork = "alexnet-cifar10"\nbatch = 4\nscheme = "oracle"\n[grid]\n'
        'machine = ["titan-x", "v100"]\n'
    )
    assert main(["sweep", str(study), "--workers", "1", *store]) == 0
    assert main(["results", *store]) == 0
    shown = capsys.readouterr().out
    replays, trainings = shown[shown.index("replay:") :].split("training:")
    assert replays.split("\n")[2].split()[:5] == ["key", "trace", "scheme", "sizes", "bandwidth"]
    columns = ["key", "network", "machine", "scheme", "time", "vs_oracle"]
    assert trainings.split("\n")[2].split() == columns  # the machines' names stand for all their keys


def test_what_is_there_is_not_simulated_again(studied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = ["sweep", str(studied / "study.toml"), "--store", str(studied / "store")]
    assert main([*study, "--json-lines"]) == 0
    planned, ended = map(json.loads, capsys.readouterr().out.splitlines())
    assert (planned["requested"], planned["stored"], planned["missing"]) == (5, 5, 0)
    assert ended["done"] == 0
    assert main([*study, "--dry-run", "--set", "link.bandwidth=100GB/s,10GB/s"]) == 0
    said = capsys.readouterr().err
    assert re.search(r"^[56] points: 2 in the store, [34] to simulate$", said, re.M)
    assert "of one CPU" in said


def test_diff_shows_what_differs(
    studied: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    store = ["--store", str(studied / "store")]
    assert main(["results", *store, "--where", "scheme = buddy", "--columns", "key", "-o", str(studied / "n.csv")]) == 0
    first, second = (line.strip('"') for line in (studied / "n.csv").read_text().splitlines()[1:])
    capsys.readouterr()
    assert main(["diff", first[:12], second[:12], *store]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[1] == "settings that differ: link.bandwidth"
    ratios = [line.split()[-2:] for line in said]
    assert ["2.00", "0.500"] in ratios or ["0.500", "2.00"] in ratios
    assert main(["diff", "v100", "a100-40"]) == 0
    words = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    differing = {name: rest for name, *rest in words}
    assert differing["link.bandwidth"] == ["154.686", "GB/s", "300", "GB/s", "1.94", "0.516"]
    assert differing["training.host_memory"][1::2] == ["GiB", "GiB", "0.537"]  # not 128 GB next to 64 GiB
    assert main(["diff", LUD, str(ROOT / "traces" / "bfs-volta.bin")]) == 0
    assert "kernels" in capsys.readouterr().out
    other = studied / "other.toml"
    other.write_text(STUDY.replace("[grid]", 'l2.size = "2 MiB"\n[grid]'))
    assert main(["sweep", str(other), *store, "--workers", "1"]) == 0
    assert main(["diff", str(studied / "study.toml"), str(other), *store]) == 0
    said = capsys.readouterr().out
    assert "settings that differ: l2.size" in said
    assert "5 pairs of points, 0 points without a partner" in said


def test_explain_says_unit_definition_source_and_laws(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "l2.read_sectors"]) == 0
    said = capsys.readouterr().out.replace("\n  ", " ")
    assert said.startswith("l2.read_sectors (sectors), replay: L2 sectors that L1 misses")
    assert "law: `l2.read_sectors` = `l2.read_sector_hits` + `l2.sector_mshr_merges` + `l2.read_sector_misses`" in said
    assert "source: buddysim/replay/l2/counters.py" in said
    assert main(["explain", "l2.read_sector"]) == 2
    assert "(nearest: l2.read_sectors)" in capsys.readouterr().err
    for name in ("link.bandwidth", "slowdown_vs_ideal", "memory.peak_bytes"):
        assert main(["explain", name]) == 0
        assert name in capsys.readouterr().out


def test_every_counter_of_results_is_explained() -> None:
    from buddysim.report.counter_texts import counter_texts
    from buddysim.training import simulate

    known = {(counter.engine, counter.name) for counter in counter_texts()}
    replay = buddysim.simulate(LUD).to_dict()
    training = simulate("alexnet", 8).to_dict()
    for engine, result in (("replay", replay), ("training", training)):
        missing = [
            key for key, value in result.items() if not isinstance(value, dict | list) and (engine, key) not in known
        ]
        assert not missing


def test_plot_sweep_draws_lines_and_maps_with_their_numbers(studied: Path, tmp_path: Path) -> None:
    command = ["plot", "sweep", str(studied / "study.toml"), "--store", str(studied / "store")]
    for kind in ("line", "heatmap"):
        out = tmp_path / f"{kind}.png"
        columns = ["--x", "link.bandwidth", "--y", "slowdown_vs_ideal", "--by", "scheme", "--kind", kind]
        assert main([*command, *columns, "-o", str(out)]) == 0
        assert out.stat().st_size > 5_000
        with out.with_suffix(".csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0] == ["link.bandwidth", "scheme", "slowdown_vs_ideal"]
        assert len(rows) == 6
    assert main([*command, "-o", str(tmp_path / "defaults.svg")]) == 0


def test_plot_sweep_has_the_units_of_the_study(tmp_path: Path) -> None:
    from buddysim.figures.sweep import SweepFigureData, _best_unit, _given_unit, draw

    axes = [[{"link.bandwidth": "25 GB/s"}, {"link.bandwidth": "200 GB/s"}], [{"scheme": "buddy"}]]
    assert _given_unit(axes, "link.bandwidth") == ("GB/s", 10**9)
    assert _given_unit([[{"l2.size": "2 MiB"}, {"l2.size": "1 GiB"}]], "l2.size") is None
    assert _given_unit([[{"l2.load_to_use": "82 core_cycles"}]], "l2.load_to_use") is None
    assert _best_unit([{"time_ps": 52_000_000}, {"time_ps": 3}], "time_ps") == ("us", 10**6)
    scales = {"link.bandwidth": ("GB/s", 10**9), "slowdown_vs_ideal": ("", 1), "scheme": ("", 1)}
    rows = [(25e9, "buddy", 1.5), (2e11, "buddy", 1.25)]
    figure = draw(SweepFigureData("x", "link.bandwidth", "slowdown_vs_ideal", "scheme", "line", rows, scales))
    (panel,) = figure.axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("link bandwidth, GB/s", "slowdown vs ideal")
    assert panel.get_ylim()[0] == 0
    assert list(panel.lines[0].get_xdata()) == [25, 200]


def test_another_machine_file_is_simulated_again_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = tmp_path / "mine.toml"
    machine.write_text('base = "p100-nvlink2"\nname = "mine"\n')
    command = [
        "sweep",
        LUD,
        "--machine",
        str(machine),
        "--scheme",
        "ideal",
        "--store",
        str(tmp_path / "s"),
        "--workers",
        "1",
    ]
    assert main(command) == 0
    machine.write_text('base = "p100-nvlink2"\nname = "mine"\n[l2]\nsize = "2 MiB"\n')
    capsys.readouterr()
    assert main(command) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"1 points: the machine {machine} has changed: simulated again" in said
    assert "1 simulated" in said


def test_another_model_version_is_simulated_again_and_pruned(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from buddysim.sweep.engines import replay

    store = ["--store", str(tmp_path / "s")]
    command = ["sweep", LUD, "--scheme", "ideal", *store, "--workers", "1"]
    assert main(command) == 0
    version = replay.MODEL_VERSION
    monkeypatch.setattr(replay, "MODEL_VERSION", version + 1)
    capsys.readouterr()
    assert main(command) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"model version {version} made them, now it is {version + 1}: simulated again" in said
    assert main(["results", "--prune", *store]) == 0
    assert "nothing was removed" in capsys.readouterr().out
    assert len(Store.at(tmp_path / "s").all_keys()) == 2
    assert main(["results", "--prune", "--yes", *store]) == 0
    assert "1 files removed" in capsys.readouterr().out
    assert len(Store.at(tmp_path / "s").all_keys()) == 1
    assert main(command) == 0
    assert "1 in the store, 0 to simulate" in capsys.readouterr().err


def test_a_changed_bit_that_size_and_time_do_not_show_is_found(
    studied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(studied / "store", tmp_path / "store")
    command, count = ["results", "--store", str(folder)], len(Store.at(folder).all_keys())
    assert main(command) == 0  # the index is warm
    assert main([*command, "--verify"]) == 0
    assert f"{count} results whole, 0 damaged" in capsys.readouterr().out
    path = Store.at(folder).path_of(min(Store.at(folder).all_keys()))
    status, content = path.stat(), bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert main(command) == 0
    assert f"{count} results" in capsys.readouterr().out
    assert main([*command, "--verify"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [f"{path}: damaged: its checksum is wrong", f"{count - 1} results whole, 1 damaged"]
    assert main([*command, "--prune", "--yes"]) == 0
    assert path.name not in Store.at(folder).all_keys()


def test_results_in_a_part_are_verified_too(studied: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shutil.copytree(studied / "store", tmp_path / "store")
    count, _ = compaction.compact(Store.at(folder))
    compaction.compact(Store.at(folder), visible_after_s=0)
    assert Store.at(folder).singles() == {}
    assert main(["results", "--store", str(folder), "--verify"]) == 0
    assert f"{count} results whole, 0 damaged" in capsys.readouterr().out
    (part,) = (folder / "parts").iterdir()
    content = bytearray(part.read_bytes())
    content[len(content) // 3] ^= 1
    part.write_bytes(content)
    assert main(["results", "--store", str(folder), "--verify"]) == 1
    assert f"{part}: damaged: " in capsys.readouterr().out.splitlines()[0]


def test_a_damaged_result_is_simulated_again_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sweep", LUD, "--scheme", "ideal", "--store", str(tmp_path), "--workers", "1"]
    assert main(command) == 0
    (path,) = (tmp_path / "results").glob("*/*")
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    capsys.readouterr()
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "damaged (cut" in said
    assert "1 simulated" in said
    assert len(path.read_bytes()) > len(whole) - 200


def test_a_point_that_fails_is_said_and_stops_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.bin"
    content = bytearray(Path(LUD).read_bytes())
    content[len(content) // 2] ^= 1  # in a chunk, whose checksum is checked when it is read
    bad.write_bytes(content)
    command = ["sweep", str(bad), LUD, "--scheme", "ideal", "--store", str(tmp_path / "s"), "--workers", "1"]
    assert main([*command, "--json-lines"]) == 1
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    kinds = [event["event"] for event in events]
    assert sorted(kinds) == sorted(["planned", "running", "retry", "failed", "done", "ended"])
    (failed,) = events[-1]["failures"]
    assert failed["point"]["trace"] == str(bad)
    assert failed["reason"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sweep", LUD, "--set", "link.bandwith=50GB/s"], "nearest: link.bandwidth"),
        (["sweep", LUD, "--set", "link.bandwidth=50GB"], "is not the unit of a bandwidth"),
        (["sweep", LUD, "--scheme", "budy"], "nearest: buddy"),
        (["sweep", LUD, "--threshold", "much"], "expected a number"),
        (["sweep", LUD, "--threshold", "7"], "expected a fraction from 0 to 1"),
        (["sweep", "no-such.bin"], "no-such.bin: trace not found"),
        (["sweep", "~no-such/t.bin"], "~no-such/t.bin: trace not found"),
        (["sweep", "no-such.toml"], "no-such.toml: can't read the study file"),
        (["sweep", "train"], "no network"),
        (["sweep", "train", "vgg91"], "vgg"),
        (["sweep", "train", "vgg19", "--link", "pcie9"], "expected one of"),
        (["sweep", LUD, "--seed", ",".join(map(str, range(1100))), "--set",
          "link.bandwidth=" + ",".join(f"{n}GB/s" for n in range(1, 1000))], "points, more than 1,000,000"),
        (["sweep", LUD, "--zip", "l2.size,l2.slices"], "the study gives it no values"),
        (["sweep", LUD, "--set", "l2.size=2MiB,4MiB", "l2.slices=32", "--zip", "l2.size,l2.slices"], "as many values"),
        (["sweep", LUD, "--exclude", "l2.size=4MiB"], "the study gives it no value"),
        (["sweep", LUD, "--set", "l2.load_to_use=1ns"], "is less than l1.load_to_use"),
        (["sweep", LUD, "--store", "/dev/null/store"], "/dev/null/store"),
        (["sweep", LUD, "--scheduler", "tcp://127.0.0.1:9", "--rerun"], "does not answer within"),
        (["sweep", LUD, "--workers", "0"], "expected 1 or more"),
        (["sweep", LUD, "--slurm", "no-such.toml"], "no-such.toml"),
        (["results", "--where", "x"], "no results"),
        (["diff", "v100", LUD], "expected two of one kind"),
        (["diff", "v101", "v100"], "nearest: v100"),
        (["results", "-o", "t.txt"], "expected a name that ends in"),
        (["plot", "vdnn-fig5", "--x", "a"], "an option of plot sweep"),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(
    arguments: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    last = error.splitlines()[-1]
    assert last.startswith("buddysim: error:")
    assert expected in last
    assert not list(tmp_path.glob("out/store/results/*/*"))


def test_a_condition_that_is_wrong_is_one_line(studied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for where, expected in (
        ("link.bandwith > 5", "nearest: link.bandwidth"),
        ("link.bandwidth > 5 GBs", "unknown unit"),
        ("scheme =", "--"),
    ):
        assert main(["results", "--store", str(studied / "store"), "--where", where]) == 2
        assert expected in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("content", ['{"ideal": 3}', '{"ideal": {"provenance": 3}}', '{"ideal": []}', "[1]", "{}"])
def test_compare_refuses_what_is_no_result(content, tmp_path, capsys):
    damaged = tmp_path / "r.json"
    damaged.write_text(content, encoding="utf-8")
    assert main(["diff", str(damaged), str(damaged)]) == 2
    error = capsys.readouterr().err
    assert f"{damaged}: not a result as 'run --json' or 'train --json' writes it" in error
    assert len(error.splitlines()) == 1


def test_a_value_with_commas_is_in_brackets(tmp_path: Path) -> None:
    """Adapters of two modules are one value of an axis."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 160, "hidden_size": 64,
        "intermediate_size": 96, "num_hidden_layers": 1, "num_attention_heads": 4, "max_position_embeddings": 16,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    store = str(tmp_path / "store")
    command = ["sweep", "train", str(tmp_path / "config.json"), "--machine", "h100-sxm", "--scheme", "eager"]
    command += ["--workers", "1"]
    assert main([*command, "--lora", "[4,q_proj,v_proj],[4,all]", "--store", store]) == 0
    assert main([*command, "--lora", "4,q_proj", "--store", store]) == 2
