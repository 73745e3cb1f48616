"""``buddysim train``, end to end."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from buddysim.base import plugin_modules
from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.training import schemes, simulate
from buddysim.training.contents import observe_training
from buddysim.training.named_network import load_network
from tests.training.iteration import general_scheme

SMALL = """
name = "small"
input = [3, 32, 32]
"""

PROMISED = re.findall(
    r"\S+",
    """
time_ms performance_vs_oracle fits memory.peak_bytes memory.time_mean_bytes memory.baseline_bytes memory.weights_bytes
memory.feature_map_bytes memory.gradient_bytes memory.workspace_bytes host.peak_pinned_bytes offload.bytes
prefetch.bytes stall_ms per_layer
""",
)


def train(*arguments: str) -> int:
    return main(["train", *arguments])


def test_screen_says_which_schemes_fit_and_why_others_do_not(tmp_path, capsys):
    """The command of the README runs, without the scheme that needs a measurement."""
    path = tmp_path / "r.json"
    schemes = "baseline-p,vdnn-all-m,vdnn-conv-p,vdnn-dyn"
    assert train("vgg19", "--batch", "256", "--machine", "titan-x", "--scheme", schemes, "--json", str(path)) == 0
    screen = capsys.readouterr().out
    assert len(screen.splitlines()) <= 40
    assert "network-wide allocation exceeds the GPU by" in screen
    assert "requested (workspace)" in screen
    results = json.loads(path.read_text())
    assert sorted(results) == sorted(schemes.split(","))
    base, dyn = results["baseline-p"], results["vdnn-dyn"]
    assert not base["fits"]
    assert base["performance_vs_oracle"] is None
    assert dyn["fits"]
    assert 0 < dyn["performance_vs_oracle"] <= 1
    assert dyn["memory.peak_bytes"] <= dyn["memory.capacity_bytes"] < base["memory.peak_bytes"]


def test_keys_are_always_there(tmp_path, capsys):
    path = tmp_path / "r.json"
    assert train("alexnet", "--batch", "8", "--scheme", "baseline-m,oracle,vdnn-none-p", "--json", str(path)) == 0
    results = json.loads(path.read_text())
    keys = {frozenset(result) for result in results.values()}
    assert len(keys) == 1
    assert set(PROMISED) <= next(iter(keys))


def test_kinds_add_up_at_the_peak():
    for scheme in ("baseline-p", "vdnn-all-m", "vdnn-dyn"):
        counters = simulate("vgg19", 32, "titan-x", scheme).counters
        kinds = ("weights", "feature_map", "gradient", "workspace")
        assert sum(counters[f"memory.{kind}_bytes"] for kind in kinds) == counters["memory.peak_bytes"]
        causes = ("offload", "prefetch", "exposed_copy")
        assert sum(counters[f"stall.{cause}_ms"] for cause in causes) == pytest.approx(counters["stall_ms"])
        assert counters["time_ms"] == pytest.approx(counters["compute_ms"] + counters["stall_ms"])


def test_json_to_standard_output_is_only_that(capsys):
    assert train("alexnet", "--batch", "8", "--scheme", "oracle", "--json", "-") == 0
    assert list(json.loads(capsys.readouterr().out)) == ["oracle"]


def test_the_same_bytes_twice(tmp_path):
    for name in ("a.json", "b.json"):
        assert train("googlenet", "--batch", "16", "--scheme", "vdnn-dyn", "--json", str(tmp_path / name)) == 0
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_the_largest_batch_fits_and_one_more_does_not(tmp_path, capsys):
    path = tmp_path / "r.json"
    assert train("vgg19", "--max-batch", "--scheme", "baseline-p,vdnn-all-m", "--json", str(path)) == 0
    results = json.loads(path.read_text())
    batches = {scheme: result["provenance"]["batch"] for scheme, result in results.items()}
    assert batches["baseline-p"] < batches["vdnn-all-m"]
    for scheme, batch in batches.items():
        assert results[scheme]["fits"]
        assert not simulate("vgg19", batch + 1, "titan-x", scheme).counters["fits"]
    assert str(batches["baseline-p"]) in capsys.readouterr().out


def test_the_fastest_within_a_budget(capsys):
    schemes = "baseline-p,vdnn-all-m,vdnn-conv-p,vdnn-dyn"
    assert train("vgg19", "--batch", "64", "--memory-budget", "8GiB", "--scheme", schemes) == 0
    shown = capsys.readouterr().out
    (line,) = [line for line in shown.splitlines()[:12] if line.startswith("fastest")]
    fastest = line.removeprefix("fastest scheme that fits in 8GiB: ")
    times = {
        scheme: simulate("vgg19", 64, "titan-x", scheme, memory_bytes=8 << 30).counters for scheme in schemes.split(",")
    }
    fitting = {scheme: counters["time_ms"] for scheme, counters in times.items() if counters["fits"]}
    assert fitting[fastest] == min(fitting.values())


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["vgg18"], "vgg1"),
        (["vgg19", "--scheme", "vdnn-al-m"], "nearest: vdnn-all-m"),
        (["vgg19", "--machine", "titan-z"], "titan-x"),
        (["vgg19", "--link", "pcie6"], "nearest: pcie"),
        (["vgg19", "--scheme", "vdnn-dym"], "that 'buddysim list training-scheme' names (nearest: vdnn-dyn)"),
        (["vgg19", "--scheme", "bandwidth-compression"], "bandwidth-compression is a replay scheme, of 'run'"),
        (["meta-llama/Llama-3.1-8B"], "of a model on a hub that of its config.json"),
        (["vgg19", "--batch", "0"], "--batch 0: expected"),
        (["vgg19", "--memory-budget", "8 parsecs"], "--memory-budget"),
        (["vgg19", "--prefetch", "never"], "vdnn, just-in-time, on-demand"),
        (["vgg19", "--set", "training.device_memory"], "expected KEY=VALUE"),
        (["vgg19", "--json", "no/such/folder/r.json"], "there is no folder"),
    ],
)
def test_one_line_says_what_is_wrong(arguments, shown, capsys):
    assert train(*arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert shown in output.err
    assert len(output.err.splitlines()) == 1


def test_a_batch_that_cannot_fit_says_how_much_is_missing_and_where(tmp_path, capsys):
    path = tmp_path / "r.json"
    files = ["--json", str(path), "--timeline", str(tmp_path / "t.svg")]
    if importlib.util.find_spec("pyarrow"):
        files += ["--parquet", str(tmp_path / "r.parquet")]
    assert train("vgg19", "--batch", "1024", "--scheme", "baseline-p,vdnn-all-m", *files) == 2
    shown = capsys.readouterr().err
    assert "none of baseline-p, vdnn-all-m fits" in shown
    assert "(search for a plan that fits: buddysim fit vgg19 --batch 1024)" in shown
    assert "requested (" in shown
    assert len(shown.splitlines()) == 1
    assert not [*tmp_path.iterdir()]


def test_an_input_is_not_overwritten(tmp_path, capsys):
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    before = path.read_text()
    assert train(str(path), "--json", str(path)) == 2
    assert path.read_text() == before


def test_timelines_are_written(tmp_path, capsys):
    for name in ("t.json", "t.svg"):
        path = tmp_path / name
        assert train("alexnet", "--batch", "8", "--scheme", "vdnn-all-p,oracle", "--timeline", str(path)) == 0
        assert path.stat().st_size > 5_000
        assert str(path) in "".join(capsys.readouterr().out.split())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.json", "t.svg"]
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]


def test_the_link_and_the_contents_of_maps_count(tmp_path):
    times = {}
    for label, options in {
        "slow": ["--link", "pcie3"],
        "fast": ["--link", "nvlink2"],
        "sparse": ["--link", "pcie3", "--synthetic-density", "0.1"],
    }.items():
        path = tmp_path / f"{label}.json"
        arguments = ["alexnet", "--batch", "128", "--scheme", "vdnn-all-p,cdma-zv", *options]
        assert train(*arguments, "--json", str(path)) == 0
        times[label] = {scheme: result["time_ms"] for scheme, result in json.loads(path.read_text()).items()}
    assert times["fast"]["vdnn-all-p"] < times["slow"]["vdnn-all-p"] == times["sparse"]["vdnn-all-p"]
    assert times["sparse"]["cdma-zv"] < times["slow"]["cdma-zv"] < times["slow"]["vdnn-all-p"]


def test_results_say_what_is_not_calibrated(capsys):
    assert train("alexnet", "--batch", "8", "--machine", "k40", "--scheme", "oracle") == 0
    assert "uncalibrated" in capsys.readouterr().out
    assert simulate("alexnet", 8, "k40", "oracle").provenance["calibration"].startswith("uncalibrated")
    assert not simulate("alexnet", 8, "titan-x", "oracle").provenance["calibration"].startswith("uncalibrated")


def helped(capsys, *arguments):
    with pytest.raises(SystemExit) as leaving:
        train(*arguments)
    assert not leaving.value.code
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    return shown


def test_help_has_every_scheme_and_general_options_alone(capsys):
    shown = helped(capsys, "--help")
    words = " ".join(shown.split())
    names = {word.rstrip(",") for word in words.partition("schemes by family")[2].split()}
    assert set(schemes.REGISTRY.names()) <= names
    assert "--gist-allocator" not in words
    assert "--help-family FAMILY" in words
    assert len(shown.splitlines()) < 110
    first = shown.partition("\noptions:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in first.splitlines() if line.startswith("  --")] == [
        "--plugin", "--batch", "--machine", "--scheme", "--optimizer", "--sequence", "--max-batch", "--memory-budget",
        "--timeline", "--json", "--set", "--help-family", "--input-budget",
    ]  # fmt: skip


def test_help_of_a_family_says_what_its_schemes_do(capsys):
    for family, names in schemes.by_family().items():
        words = " ".join(helped(capsys, "--help-family", family).split())
        for name in names:
            assert f"{name} {schemes.REGISTRY.find(name).SUMMARY[name]}" in words


def test_help_of_families_has_every_option_of_a_scheme(capsys):
    words = " ".join(" ".join(helped(capsys, "--help-family", family).split()) for family in schemes.by_family())
    for name, option in schemes.options().items():
        assert option.flag(name) in words
        assert option.flag_help().split(":")[0] in words
    assert train("--help-family", "gits") == 2
    assert "nearest: gist" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--timeline", "t.gif"], "expected a name that ends in"),
        (["--scheme", "cdma-zv", "--dataset", "folder"], "expected --observe-activations too"),
        (["--scheme", "oracle", "--synthetic-density", "0.5"], "--synthetic-density: is an option of cdma-zv, "),
        (["--scheme", "oracle", "--no-repeated-values"], "expected one of these schemes"),
        (
            ["--scheme", "cdma-zv", "--observe-activations", "--synthetic-density", "0.5"],
            "expected one source of activations",
        ),
        (["--scheme", "cdma-zv", "--activations", "README.md"], "README.md"),
        (["--scheme", "cdma-zv", "--density-table", "no.csv"], "no.csv"),
        (["--calibration", "no.csv"], "no.csv"),
        (["--memory-budget", "8GiB", "--max-batch"], "not allowed with"),
    ],
)
def test_one_line_says_what_is_wrong_with_an_option(arguments, shown, capsys):
    try:
        code = train("alexnet", "--batch", "8", *arguments)
    except SystemExit as left:
        code = left.code
    assert code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert shown in output.err
    assert len(output.err.splitlines()) == 1


def test_a_measurement_made_now_is_what_is_compressed(monkeypatch, capsys):
    """`--observe-activations` is replaced by the bundled observation; tests/training tests the training itself."""
    import shutil

    from buddysim.training.contents.observed_activations import shipped

    def copied(path, settings, progress):
        shutil.copyfile(shipped().path, path)

    monkeypatch.setattr(observe_training, "observe_training", copied)
    assert train("alexnet", "--batch", "8", "--scheme", "cdma-zv", "--observe-activations") == 0
    assert "Compressed sizes are those of feature maps that were observed" in capsys.readouterr().out


def test_a_network_without_feature_layers(tmp_path, capsys):
    file = tmp_path / "only.toml"
    file.write_text('input = [8]\n[[layer]]\nkind = "fc"\nfeatures = 3\n')
    path = tmp_path / "r.json"
    assert train(str(file), "--scheme", "baseline-p,vdnn-dyn,activation-checkpointing", "--json", str(path)) == 0
    for result in json.loads(path.read_text()).values():
        assert result["fits"]
        assert result["feature_layers.memory.peak_bytes"] == result["feature_layers.time_ms"] == 0


@pytest.mark.parametrize("batch", [2.0, "64", None, True])
def test_a_batch_is_a_whole_number(batch):
    with pytest.raises(BuddysimError, match="expected an integer"):
        simulate("alexnet", batch)


def test_whole_numbers_of_numpy_are_as_good(tmp_path):
    whole = simulate("alexnet", np.int64(8), memory_bytes=np.int64(2**31)).to_dict()
    assert json.dumps(whole) == json.dumps(simulate("alexnet", 8, memory_bytes=2**31).to_dict())
    with pytest.raises(BuddysimError, match=r"memory_bytes 2\.5: expected an integer"):
        simulate("alexnet", 8, memory_bytes=2.5)


@pytest.mark.parametrize("library", ["cudnn0", "cudnn1", "cudnn99"])
def test_a_version_of_the_library_without_algorithms_is_refused(library: str, capsys):
    assert main(["train", "vgg11", "--batch", "1", "--conv-library", library]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert f"library '{library}' is not modelled: expected cudnn2 (the oldest) to cudnn9 (the newest)" in error


def test_the_screen_says_what_updates_the_weights(capsys):
    assert train("alexnet", "--scheme", "baseline-p") == 0
    assert ", no optimizer; " in capsys.readouterr().out
    assert train("alexnet", "--scheme", "baseline-p", "--optimizer", "adam") == 0
    state = 8 * load_network("alexnet").parameters / 2**30
    assert f"ms, state {state:.2f} GiB)" in capsys.readouterr().out


def test_the_screen_says_which_figures_are_not_the_machines_own(capsys):
    assert train("alexnet", "--scheme", "baseline-p") == 0
    assert "changed:" not in capsys.readouterr().out
    assert train("alexnet", "--scheme", "baseline-p", "--set", "training.device_memory=4GiB") == 0
    assert "\nchanged: training.device_memory = 4GiB\n" in capsys.readouterr().out


def test_codec_time_has_a_column_where_a_scheme_encodes(capsys, monkeypatch):
    assert train("alexnet", "--scheme", "baseline-p") == 0
    assert "codec" not in capsys.readouterr().out
    monkeypatch.setitem(plugin_modules.loaded, Path(general_scheme.__file__), general_scheme)
    assert train("alexnet", "--scheme", "baseline-p,test-epochs", "--epoch", "1") == 0
    table = capsys.readouterr().out.partition("scheme ")[2]
    shown = {line.split()[0]: line.split()[-1] for line in table.splitlines()[:4] if line.split()}
    assert (shown["baseline-p"], shown["test-epochs"]) == ("-", "0.750")  # 0.25 ms to encode, 0.5 to decode


def test_layers_that_stall_and_the_link_that_removes_it(capsys):
    """The table equals the rows of the layers, and a run with the link named shows no stall there."""
    options = ("vgg19", "--batch", "64", "--scheme", "vdnn-conv-p")
    assert train(*options, "--stalls") == 0
    shown = capsys.readouterr().out
    table = shown[shown.index("removed by\n") : shown.index("removed by: ")].splitlines()
    result = simulate("vgg19", 64, "titan-x", "vdnn-conv-p")
    stalls = {row["name"]: row["forward_stall_ms"] + row["backward_stall_ms"] for row in result.per_layer}
    rows = {cells[0]: cells for cells in map(str.split, table) if cells and stalls.get(cells[0])}
    assert list(rows) == [name for name in sorted(stalls, key=lambda name: -stalls[name]) if stalls[name]]
    for name, cells in rows.items():
        if cells[-1] != "none":
            faster = simulate("vgg19", 64, "titan-x", "vdnn-conv-p", link=cells[-1])
            (row,) = [row for row in faster.per_layer if row["name"] == name]
            assert row["forward_stall_ms"] + row["backward_stall_ms"] < 0.05 * stalls[name]


def test_the_memory_that_limits_a_batch_is_named_and_the_next(capsys):
    options = ("overfeat", "--max-batch", "--scheme", "vdnn-all-m", "--set", "training.device_memory=3GiB")
    assert train(*options, "training.host_memory=4GiB") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "out of memory with one sample more" in shown
    assert re.search(r"vdnn-all-m .*requested .*pinned host memory", shown)
    assert re.search(r"pinned host memory 100 % of 2 GiB, GPU memory \d\d %", shown)
    assert train(*options, "training.host_memory=8GiB") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert re.search(r"GPU memory \d+ %, pinned host memory \d\d % of 6 GiB", shown)


def test_rows_for_other_tools(tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "r.parquet"
    assert train("alexnet", "--batch", "8", "--scheme", "baseline-m", "--parquet", str(path)) == 0
    rows = parquet.read_table(path).to_pylist()
    assert {row["scope"] for row in rows} == {"run", "layer"}
    (time,) = [row["value"] for row in rows if row["counter"] == "time_ms"]
    assert time == simulate("alexnet", 8, "titan-x", "baseline-m").counters["time_ms"]


def test_the_papers_name_of_a_network(capsys):
    one, other = (simulate(name, 32, "titan-x", "vdnn-all-m") for name in ("vgg19", "vgg16-vdnn"))
    assert one.counters == other.counters
    assert one.provenance["network_checksum"] == other.provenance["network_checksum"]
