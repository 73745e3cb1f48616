"""``run``, end to end on small traces."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import pytest

import buddysim
from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.cli.run import parse_kernels
from buddysim.compress import DEFAULT
from buddysim.compress.compressors import entry_algorithms
from buddysim.report.quantities import byte_unit, format_in_bytes, format_speedup_range
from buddysim.report.replay_screen import result_parts
from buddysim.report.screen import format_as_text
from buddysim.synthetic import make_trace

BACKPROP = Path(__file__).parents[2] / "traces" / "backprop16k.bin"
NOT_COMPARED = ("provenance",)


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "stream.bin"
    settings = {"footprint": "1 MiB", "op": "copy", "laps": "3", "sizes": "32 B:3, 128 B:1"}
    make_trace("stream", path, settings)
    return path


@pytest.fixture(scope="module")
def untimed(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "untimed.bin"
    make_trace("stream", path, {"footprint": "256 KiB", "gap_instructions": "20", "timed": "false", "sizes": "64 B"})
    return path


def ran(capsys, *arguments):
    assert main(["run", *map(str, arguments)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    return shown.out


def counted(result):
    return {key: value for key, value in result.items() if not key.startswith(NOT_COMPARED)}


def test_the_same_bytes_twice(stream, tmp_path, capsys):
    """No file has the simulator's speed, which differs between any two runs."""
    kinds = ("json", "parquet") if find_spec("pyarrow") else ("json",)
    for name in ("a", "b"):
        written = [f"--{kind}={tmp_path / name}.{kind}" for kind in kinds]
        assert "simulated in" in ran(capsys, stream, *written)
    for kind in kinds:
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()
    assert "speed." not in (tmp_path / "a.json").read_text()


def test_shows_buddy_and_ideal_side_by_side_on_one_screen(stream, capsys):
    shown = ran(capsys, stream)
    for text in (
        "stream.bin on p100-nvlink2  (56 SMs, L2 4 MiB, DRAM 896 GB/s, link 150 GB/s)",
        "3 kernels, ",
        "speedup over ideal",
        "latency +-2.5 %",
        "compression ratio",
        "buddy-access fraction",
        "metadata cache",
        "bottleneck",
        "  next ",
        "ideal: unlimited",
        "- Targets are profiled on this trace: optimistic.",
        " assumptions in all: --assumptions, or provenance.assumptions in --json.",
        "not saved (--json FILE)",
    ):
        assert text in shown
    heading = next(line for line in shown.splitlines() if "buddy" in line and "ideal" in line)
    assert heading.split() == ["buddy", "ideal"]
    assert len(shown.splitlines()) <= 50
    assert "1. trace." not in shown
    assert re.search(r"^1\. trace\.", ran(capsys, stream, "--assumptions", "--no-sensitivity"), re.MULTILINE)


def test_the_table_of_allocations_has_the_columns_of_the_schemes_that_ran(stream, tmp_path, capsys):
    table = re.compile(r"^allocation .*$", re.M)
    assert table.search(ran(capsys, stream, "--scheme", "ideal", "--no-sensitivity"))[0].split() == [
        "allocation", "size", "fills", "write-backs",
    ]  # fmt: skip
    both = ran(capsys, stream, "--scheme", "ideal,buddy", "--no-sensitivity")
    assert table.search(both)[0].split()[4:] == ["target", "buddy", "fraction"]
    host = tmp_path / "host.bin"
    make_trace("chase", host, {"footprint": "64 KiB", "space": "host"})
    assert table.search(ran(capsys, host, "--scheme", "ideal", "--no-sensitivity"))[0].split()[2] == "memory"


def test_json_is_what_python_gives(stream, tmp_path, capsys):
    path = tmp_path / "out.json"
    shown = ran(capsys, stream, "--json", path, "--scheme", "buddy,ideal", "--set", "l2.size=2MiB", "--seed", "3")
    assert f"full result: {path}" in " ".join(shown.split())
    content = json.loads(path.read_text())
    assert sorted(content) == ["buddy", "ideal"]
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"l2.size": "2 MiB"})
    results = buddysim.simulate_schemes(stream, machine, seed=3, sensitivity="all")
    for scheme in content:
        result = results[scheme].to_dict()
        result["provenance"]["sensitivity"]["requested"] = "auto"
        assert counted(content[scheme]) == json.loads(json.dumps(counted(result)))
        assert content[scheme]["provenance"] == json.loads(json.dumps(result["provenance"]))
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_json_on_standard_output_is_alone_there(stream, capsys):
    shown = ran(capsys, stream, "--json", "-", "--scheme", "ideal")
    content = json.loads(shown)
    assert list(content) == ["ideal"]
    again = json.loads(ran(capsys, stream, "--json", "-", "--scheme", "ideal"))
    assert counted(again["ideal"]) == counted(content["ideal"])


def test_some_kernels(stream, capsys):
    content = json.loads(ran(capsys, stream, "--json", "-", "--kernels", "1:3", "--scheme", "buddy"))
    assert [kernel["index"] for kernel in content["buddy"]["per_kernel"]] == [1, 2]
    assert content["buddy"]["memory_instructions"] == 2 * 2 * 8192


def test_targets_of_a_file(stream, tmp_path, capsys):
    assert main(["profile", str(stream), "-o", str(tmp_path / "targets.toml")]) == 0
    text = (tmp_path / "targets.toml").read_text()
    assert '"4x"' in text
    (tmp_path / "targets.toml").write_text(text.replace('"4x"', '"1.33x"'))
    capsys.readouterr()
    arguments = (stream, "--scheme", "buddy", "--json", "-")
    profiled = json.loads(ran(capsys, *arguments))["buddy"]
    replayed = json.loads(ran(capsys, *arguments, "--targets", tmp_path / "targets.toml"))["buddy"]
    assert profiled["compression.ratio"] == 4
    assert replayed["compression.ratio"] == pytest.approx(4 / 3)
    assert set(replayed["provenance"]["targets"].values()) == {"1.33x"}


@pytest.mark.parametrize(
    "compressor",
    [pytest.param(name, marks=() if name in (DEFAULT, "zvc") else pytest.mark.slow) for name in entry_algorithms()],
)
def test_the_command_and_python_choose_the_same_targets(capsys, compressor):
    """Metadata may not distinguish 8 B from 32 B; one of the trace's allocations then overflows 16x."""
    trace = Path(__file__).parents[2] / "traces" / "vectoradd-turing.bin"
    targets = []
    for state in ("true", "false"):
        options = ("--set", f"buddy.eight_byte_class={state}", "--compressor", compressor, "--kernels", "0:1")
        options += ("--size-distribution", "uniform:64")
        shown = json.loads(ran(capsys, trace, "--scheme", "buddy", "--json", "-", *options))["buddy"]
        machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"buddy.eight_byte_class": state})
        direct = buddysim.simulate(
            trace, machine, "buddy", compressor=compressor, size_distribution="uniform:64", kernels=slice(0, 1)
        )
        assert shown["provenance"]["targets"] == direct.provenance["targets"]
        assert shown["provenance"]["compressor"] == direct.provenance["compressor"] == compressor
        targets.append(shown["provenance"]["targets"])
    assert compressor != DEFAULT or targets[0] != targets[1]


def test_estimated_compute_gaps_are_halved_and_doubled(untimed, capsys):
    content = json.loads(ran(capsys, untimed, "--json", "-"))
    for scheme, result in content.items():
        half, double = (result[f"sensitivity.{name}_compute_gaps_time_ps"] for name in ("half", "double"))
        assert half < result["time_ps"] < double
        direct = buddysim.simulate(untimed, scheme=scheme, compute_gap_scale=2)
        assert direct.counters["time_ps"] == double
    assert "compute gaps x 0.5, x 2" in ran(capsys, untimed)


def test_compute_gaps_are_halved_only_if_they_are_estimated(untimed, stream, capsys):
    left_out = ((untimed, "--no-sensitivity"), (untimed, "--scheme", "buddy"), (untimed, "--sensitivity", "none"))
    for arguments in (*left_out, (stream,)):
        content = json.loads(ran(capsys, *arguments, "--json", "-"))
        assert content["buddy"]["sensitivity.half_compute_gaps_time_ps"] is None
        assert bool(content["buddy"]["sensitivity.time_ps"]) == (arguments == (stream,))
    shown = ran(capsys, untimed, "--no-sensitivity")
    assert "compute gaps x" not in shown
    assert "sensitivity range" not in shown


def test_some_changes_alone(untimed, capsys):
    content = json.loads(ran(capsys, untimed, "--json", "-", "--sensitivity", "compute-gaps"))
    runs = content["buddy"]["provenance"]["sensitivity"]["runs"]
    scales = [Fraction(run["compute_gap_scale"]) for run in runs]
    assert scales[-2:] == [Fraction(1, 2), 2]
    assert len(set(scales[:-2])) == 6
    assert all(0 < abs(scale - 1) < Fraction(1, 40) for scale in scales[:-2])
    assert len({str(run["settings"]) for run in runs}) == 1


def test_sensitivity_range_that_contains_1_is_said_to_distinguish_nothing(tmp_path, capsys):
    """Back-propagation with 16,384 inputs is too short to distinguish the schemes."""
    shown = ran(capsys, BACKPROP, "--json", tmp_path / "r.json", "--size-distribution", "uniform:64")
    content = json.loads((tmp_path / "r.json").read_text())["buddy"]
    low, high = content["slowdown.min"], content["slowdown.max"]
    assert low <= content["slowdown.ratio"] <= high
    assert format_speedup_range(1 / high, 1 / low) in shown
    caveat = "buddy: no difference that this trace can tell: the range contains 1." in shown
    assert caveat == (low <= 1 <= high)


@pytest.mark.slow
def test_synthetic_sizes_are_ranges_over_seeds(capsys):
    """Ratios, times and speedups of synthetic sizes are shown as ranges, under any options."""
    first_kernel = ("--kernels", "0:1")
    content = json.loads(ran(capsys, BACKPROP, "--json", "-", "--no-sensitivity", *first_kernel))["buddy"]
    low, high = content["compression.synthetic_min_ratio"], content["compression.synthetic_max_ratio"]
    assert low < high
    assert low <= content["compression.ratio"] <= high
    assert content["sizes.synthetic_fraction"] == 1
    said = "SYNTHETIC SIZES: the trace has no data values; ratios are ranges over 8 seeds"
    for options in (("--seed", "3"), ("--sensitivity", "seed"), ("--threshold", "0.1"), ("--no-sensitivity",), ()):
        shown = ran(capsys, BACKPROP, *options, *first_kernel)
        assert shown.splitlines()[2] == said
        assert re.search(r"^  compression ratio +\d+\.\d\dx - \d+\.\d\dx +1\.00x  without", shown, re.MULTILINE)
        one_run = options == ("--no-sensitivity",)
        number = r"[\d.,]+ us \(1 seed\)" if one_run else r"[\d.]+ - [\d.]+ us"
        assert re.search(rf"^simulated time +{number} +[\d.]+ us$", shown, re.MULTILINE)
        speedup = r"\d\.\d+x \(1 seed\)" if one_run else r"(\d\.\d+x - \d\.\d+x|no difference)"
        assert re.search(rf"^speedup over ideal +{speedup} +baseline", shown, re.MULTILINE)
        assert re.search(r"^  device memory +[\d.]+ - [\d.]+ MiB +[\d.]+ MiB", shown, re.MULTILINE)
        for row in ("buddy memory (reserved)", "buddy-access fraction"):
            assert re.search(rf"^  {re.escape(row)} .* one seed$", shown, re.MULTILINE), row
    allocated, metadata = content["footprint.allocated_bytes"], content["footprint.metadata_bytes"]
    ends = [allocated / ratio + metadata for ratio in (high, low)]
    factor, unit = byte_unit(ends[1])
    assert f"{' - '.join(format_in_bytes(end, factor) for end in ends)} {unit}" in shown
    assert f"{low:.2f}x - {high:.2f}x" in shown
    assert "SYNTHETIC SIZES: " in profiled(capsys, BACKPROP)


def test_fraction_of_synthetic_sizes_is_said(capsys):
    results = {"buddy": json.loads(ran(capsys, BACKPROP, "--json", "-", "--no-sensitivity"))["buddy"]}
    results["buddy"]["sizes.synthetic_fraction"] = 0.03
    shown = format_as_text(result_parts(results), 80)
    assert shown.splitlines()[2] == "SYNTHETIC SIZES: of 3.0 % of the entries; ratios are ranges over 8 seeds"


def test_the_heading_says_which_figures_are_not_the_machines_own(stream, capsys):
    """The screen marks a run on a changed machine, so that it is not mistaken for the preset."""
    options = ("--scheme", "ideal", "--no-sensitivity")
    assert "changed" not in ran(capsys, stream, *options)
    changed = ran(capsys, stream, *options, "--set", "l2.size=2MiB", "--set", "link.bandwidth=50 GB/s")
    assert "L2 2 MiB, DRAM 896 GB/s, link 50 GB/s)\nchanged: l2.size = 2MiB, link.bandwidth = 50 GB/s\n" in changed


def test_every_seeds_ratio_is_within_the_spread(capsys):
    content = json.loads(ran(capsys, BACKPROP, "--json", "-", "--no-sensitivity"))["buddy"]
    seeds = [str(seed) for seed in range(content["compression.synthetic_seeds"])]
    ratios = [
        json.loads(ran(capsys, BACKPROP, "--json", "-", "--no-sensitivity", "--scheme", "buddy", "--seed", seed))
        for seed in seeds
    ]
    ratios_of_seeds = [each["buddy"]["compression.ratio"] for each in ratios]
    assert (min(ratios_of_seeds), max(ratios_of_seeds)) == (
        content["compression.synthetic_min_ratio"],
        content["compression.synthetic_max_ratio"],
    )


def test_a_trace_without_values_is_refused_where_values_are_required(stream, capsys):
    assert main(["run", str(BACKPROP), "--require-data-values"]) == 2
    assert "no data values or size maps of" in capsys.readouterr().err
    ran(capsys, stream, "--require-data-values", "--no-sensitivity", "--scheme", "buddy")


def test_measured_sizes_give_a_ratio(stream, capsys):
    content = json.loads(ran(capsys, stream, "--json", "-", "--no-sensitivity"))["buddy"]
    assert content["compression.synthetic_min_ratio"] is content["compression.synthetic_max_ratio"] is None
    assert content["sizes.synthetic_fraction"] == 0
    shown = ran(capsys, stream, "--no-sensitivity")
    assert re.search(rf"^  compression ratio +{content['compression.ratio']:.2f}x +1\.00x  without", shown, flags=re.M)
    assert "SYNTHETIC" not in shown


def test_unified_memory_shows_what_is_resident_its_faults_and_what_binds(stream, tmp_path, capsys):
    for fraction, resident in (("0.25", "1.5 MiB"), ("0.5", "1.0 MiB")):
        options = ("--scheme", "ideal,unified-memory", "--set", f"um.oversubscription={fraction}", "--no-sensitivity")
        shown = ran(capsys, stream, "--json", tmp_path / "r.json", *options)
        content = json.loads((tmp_path / "r.json").read_text())["unified-memory"]
        assert re.search(rf"^  device memory +2\.0 MiB +{resident}  with metadata$", shown, flags=re.M)
        assert re.search(rf"^  page faults +- +{content['um.page_faults']:,}$", shown, flags=re.M)
        assert re.search(r"^bottleneck .* faults \d\d %$", shown, flags=re.M)
        assert content["utilization.um_fault_handling"] > 0.6
        assert content["link.migration_in_bytes"] > 0


def test_equal_capacity_gives_unified_memory_what_buddy_takes(stream, capsys):
    content = json.loads(ran(capsys, stream, "--equal-capacity", "--json", "-", "--no-sensitivity"))
    assert set(content) == {"buddy", "unified-memory", "pinned-host", "ideal"}
    taken = sum(content["buddy"][f"footprint.{kind}_bytes"] for kind in ("device", "metadata"))
    assert {result["provenance"]["equal_capacity_bytes"] for result in content.values()} == {taken}
    page = 64 << 10
    assert taken - page < content["unified-memory"]["um.resident_bytes"] <= taken
    assert "- Equal capacity: " in ran(capsys, stream, "--equal-capacity", "--no-sensitivity")


def profiled(capsys, *arguments):
    assert main(["profile", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_long_traces_have_no_sensitivity_range_unless_it_is_requested(stream, monkeypatch, capsys):
    for module in ("replay.sensitivity", "report.replay_caveats"):
        monkeypatch.setattr(f"buddysim.{module}.MAX_INSTRUCTIONS", 1000)
    shown = ran(capsys, stream)
    assert "No sensitivity range: 49.2 k memory instructions are more than" in shown
    assert "sensitivity range" in ran(capsys, stream, "--sensitivity", "all")


def test_the_baseline_has_settings_of_its_own(stream, capsys):
    options = ("--set", "l2.size=2MiB", "--baseline-set", "dram.channels=8", "l2.slices=8", "--no-sensitivity")
    content = json.loads(ran(capsys, stream, "--json", "-", *options))
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"l2.size": "2 MiB"})
    baseline = machine.with_overrides({"dram.channels": 8, "l2.slices": 8})
    times = {scheme: result["time_ps"] for scheme, result in content.items()}
    assert times["buddy"] == buddysim.simulate(stream, machine, "buddy").counters["time_ps"]
    assert times["ideal"] == buddysim.simulate(stream, baseline, "ideal").counters["time_ps"]
    assert content["buddy"]["slowdown.ratio"] == times["buddy"] / times["ideal"]
    assert content["buddy"]["provenance"]["baseline"]["settings"] == {"dram.channels": "8", "l2.slices": "8"}
    shown = ran(capsys, stream, *options)
    assert "ideal: changed" in shown
    assert "- ideal alone runs with dram.channels = 8, l2.slices = 8." in shown


def test_a_profile_of_another_input_and_up_to_a_launch(tmp_path, capsys):
    """The targets of an incompressible input come from a compressible one."""
    small, large = tmp_path / "small.bin", tmp_path / "large.bin"
    make_trace("stream", small, {"footprint": "256 KiB", "op": "copy", "sizes": "32 B"})
    make_trace("stream", large, {"footprint": "1 MiB", "op": "copy", "sizes": "128 B"})
    options = ("--scheme", "buddy", "--profile-from", small, "--profile-until-launch", "0")
    content = json.loads(ran(capsys, large, "--json", "-", *options))["buddy"]
    assert set(content["provenance"]["targets"].values()) == {"4x"}
    assert content["provenance"]["targets_source"]["trace"] == "small.bin"
    assert content["provenance"]["targets_source"]["options"]["profile_until_launch"] == 0
    shown = " ".join(ran(capsys, large, *options, "--assumptions").split())
    assert ". targets: profiled on small.bin: 1 snapshot up to launch 0" in shown
    assert "Targets are profiled on this trace" not in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scheme", "bddy"], "nearest: buddy"),
        (["--scheme", "buddy,"], "expected one of"),
        (["--scheme", "vdnn"], "vdnn-none-m is a training scheme, of 'train'"),
        (["--kernels", "7:9"], "has kernels 0 to 2"),
        (["--kernels", "0:99"], "kernels 0:99: no such kernel: t.bin has kernels 0 to 2"),
        (["--kernels", "a:b"], "expected a kernel or FIRST:END"),
        (["--kernels", "5:3"], "no kernel in it"),
        (["--set", "l2.siz=3MiB"], "nearest: l2.size"),
        (["--set", "l2.size=3"], "the unit is missing"),
        (["--set", "l2.ways=0"], "l2.ways"),
        (["--machine", "p100"], "nearest: p100-nvlink2"),
        (["--threshold", "3"], "expected a fraction from 0 to 1"),
        (["--threshold", "much"], "much"),
        (["--size-distribution", "nothing"], "isca20-hpc"),
        (["--compressor", "bcp"], "nearest: bpc"),
        (["--compressor", "zlib"], "zlib: size classes are of entries of 128 B"),
        (["--targets", "missing.toml"], "missing.toml"),
        (["--json", "missing/out.json"], "there is no folder missing"),
        (["--json", "."], "is a folder"),
        (["--json", "t.bin"], "is an input"),
        (["--seed", "-1"], "seed -1"),
        (["--sensitivity", "latencies"], "nearest: latency"),
        (["--baseline-set", "l2.size"], "--baseline-set: 'l2.size': expected KEY=VALUE"),
        (["--baseline-set", "l2.siz=3MiB"], "baseline_set: l2.siz"),
        (["--baseline-set", "l2.size=3MiB", "--scheme", "buddy"], "baseline_set: ideal, the baseline, is not among"),
        (["--profile-from", "missing.bin"], "missing.bin"),
        (["--profile-until-launch", "-1"], "profile_until_launch -1"),
        (["--profile-until-launch", "x"], "argument --profile-until-launch"),
        (["--profile-from", "t.bin", "--json", "t.bin"], "is an input"),
    ],
)
def test_mistakes_are_one_line_and_leave_no_file(stream, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.bin").write_bytes(stream.read_bytes())
    assert _exit_code(["run", "t.bin", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert error.startswith("buddysim: error: ")
    assert [file.name for file in tmp_path.iterdir()] == ["t.bin"]


def _exit_code(arguments):
    try:
        return main(arguments)
    except SystemExit as left:
        return left.code


@pytest.mark.parametrize("content", [b"", b"hello", b"\x8fBUDDY\r\n"])
def test_files_that_are_no_traces(tmp_path, capsys, content):
    (tmp_path / "t.bin").write_bytes(content)
    assert main(["run", str(tmp_path / "t.bin")]) == 2
    assert "t.bin" in capsys.readouterr().err


def test_parquet_that_cannot_be_written_says_what_to_install(stream, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert main(["run", str(stream), "--parquet", str(tmp_path / "x.parquet")]) == 2
    assert "pip install 'buddysim[data]'" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "kernels"),
    [("3", slice(3, 4)), ("3:7", slice(3, 7)), ("3:", slice(3, None)), (":7", slice(0, 7)), (":", slice(0, None))],
)
def test_kernels(text, kernels):
    assert parse_kernels(text) == kernels


@pytest.mark.parametrize("text", ["", "-1", "1:2:3", "x", "3:3", "1.5", "9999999999999"])
def test_kernels_that_make_no_sense(text):
    with pytest.raises(BuddysimError, match="--kernels"):
        parse_kernels(text)


def test_an_interrupted_run_leaves_nothing(tmp_path):
    """Ctrl-C during the replay gives exit code 130, one line, and no output file."""
    make_trace("stream", tmp_path / "t.bin", {"footprint": "16 MiB", "laps": "40", "timed": "false"})
    command = [sys.executable, "-m", "buddysim", "run", str(tmp_path / "t.bin"), "--json", str(tmp_path / "out.json")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=_heed_ctrl_c) as process:
        try:
            _wait_until_open(process.pid, "t.bin")
            process.send_signal(signal.SIGINT)
            output, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert error.decode() == "buddysim: interrupted; nothing half-written was left\n"
    assert output == b""
    assert [file.name for file in tmp_path.iterdir()] == ["t.bin"]


def _heed_ctrl_c():
    """Restore SIGINT, which background jobs may ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _wait_until_open(pid, name):
    """Wait until the process has opened the trace, after its imports."""
    deadline = time.monotonic() + 60
    while not any(Path(target).name == name for target in _open_files(pid)):
        assert time.monotonic() < deadline, "the trace was never opened"
        time.sleep(0.05)
    time.sleep(0.5)


def _open_files(pid):
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            yield str(link.readlink())


def test_the_order_of_arrival_is_in_the_result_and_refuses_page_faults(stream, capsys):
    for more, exact_order in (((), False), (("--exact-order",), True)):
        content = json.loads(ran(capsys, stream, "--json", "-", "--scheme", "ideal", *more))
        assert content["ideal"]["provenance"]["exact_order"] is exact_order
    assert main(["run", str(stream), "--scheme", "unified-memory", "--exact-order"]) == 2
    (error,) = capsys.readouterr().err.splitlines()
    assert error.startswith("buddysim: error: exact_order: unified-memory has page faults")
