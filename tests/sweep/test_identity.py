"""The key of a result depends on everything that determines the result, and on nothing else."""

from __future__ import annotations

import inspect
import json
import shutil
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import buddysim
from buddysim.analyses import AnalysisOptions
from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.kinds import HOMES, registry
from buddysim.base.option import FILE, field_options
from buddysim.machine import Machine
from buddysim.machine.training import TrainingMachine
from buddysim.replay.schemes import REGISTRY as REPLAY_SCHEMES
from buddysim.sweep import stored_result
from buddysim.sweep.engines import NAMES, analysis, find, replay, training
from buddysim.sweep.point import SweepPoint
from buddysim.sweep.study import PointKeys
from buddysim.training import schemes
from buddysim.training.cost import CostModel
from buddysim.training.driver import simulate, simulate_outcome
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.options.config_options import ConfigOptions

ROOT = Path(__file__).parents[2]
LUD = str(ROOT / "traces" / "lud256.bin")


def replayed(**settings: Any) -> SweepPoint:
    return SweepPoint("replay", {"trace": LUD, **settings})


def trained(**settings: Any) -> SweepPoint:
    return SweepPoint("training", {"network": "alexnet", **settings})


# -- every parameter is classified ------------------------------------------------------------------------------------


def test_every_parameter_of_replays_is_an_axis_or_without_effect() -> None:
    parameters = set(inspect.signature(buddysim.simulate).parameters)
    assert parameters == {*replay.axes(), *replay.WITHOUT_EFFECT}
    assert set(replay.identity({"trace": LUD})) == set(replay.axes()) - {"machine"}


def test_every_parameter_of_trainings_is_an_axis_or_stands_for_some() -> None:
    signatures = {*inspect.signature(simulate_outcome).parameters, *inspect.signature(CostModel.load).parameters}
    signatures |= {*inspect.signature(simulate).parameters, *TrainingOptions.__dataclass_fields__}
    own = {name for name in training.axes() if name not in schemes.options()}
    assert signatures - schemes.options().keys() == own | {*training.WITHOUT_EFFECT, "extra"}
    own -= field_options(ConfigOptions).keys()
    full = training.identity({"network": "alexnet", "scheme": "cdma-zv"})
    declared = schemes.REGISTRY.find("cdma-zv").OPTIONS
    assert set(full) == (own | declared.keys() | {"machine_name"}) - {"machine"}


def test_file_options_of_schemes_have_the_metavar_of_files() -> None:
    files = {name for name, option in schemes.options().items() if option.metavar == FILE}
    assert files == {"activations", "density_table", "buddy_result", "plan"}


def test_defaults_are_those_of_the_engines() -> None:
    parameters = inspect.signature(buddysim.simulate).parameters
    for name, axis in replay.axes().items():
        if name not in ("trace", "compute_gap_scale"):
            assert axis.default == parameters[name].default, name
    trains = inspect.signature(simulate).parameters
    assert training.axes()["machine"].default == trains["machine"].default
    assert training.axes()["scheme"].default == trains["scheme"].default


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_settings_and_counters_do_not_clash(name: str) -> None:
    engine = find(name)
    subject: Any = {
        "analysis": {"analysis": "ratio", "trace": str(ROOT / "traces" / "jacobi2d.bin")},
        "replay": {"trace": LUD},
        "training": {"network": "alexnet"},
    }[name]
    columns = set(engine.columns(subject))
    result = engine.simulate(subject).to_dict()
    assert not columns & result.keys()
    about = {
        "name",
        "engine",
        "model_version",
        "settings_hash",
        "baseline",
        "machine_checksum",
        "content",
        "seconds",
        "sources",
    }
    assert not about & (columns | result.keys())


def test_options_of_analyses_are_axes() -> None:
    names = {analysis.axis_of_option(field.name) for field in fields(AnalysisOptions)}
    assert names == set(analysis.axes()) - {"analysis", "trace"}


def test_what_an_analysis_does_not_read_is_not_in_its_name() -> None:
    jacobi = {"trace": str(ROOT / "traces" / "jacobi2d.bin")}
    plain = SweepPoint("analysis", {"analysis": "ratio", **jacobi})
    unread: list[dict[str, Any]] = [{"threshold": 0.1}, {"machine": "v100"}, {"link.bandwidth": "50 GB/s"}]
    assert {SweepPoint("analysis", {**plain.settings, **one}).key for one in unread} == {plain.key}
    assert SweepPoint("analysis", {**plain.settings, "compressors": "zvc"}).key != plain.key
    replayed = {"analysis": "targets", **jacobi}
    changes: list[dict[str, Any]] = [{}, *unread, {"compressors": "zvc"}, {"profile_from": LUD}]
    assert len({SweepPoint("analysis", {**replayed, **one}).key for one in changes}) == len(changes)


# -- what changes a result changes the name ---------------------------------------------------------------------------

CHANGES: list[dict[str, Any]] = [
    {"trace": str(ROOT / "traces" / "backprop16k.bin")},
    {"machine": "v100"},
    {"scheme": "pinned-host"},
    {"threshold": 0.1},
    {"compressor": "zvc"},
    {"seed": 1},
    {"size_distribution": "all-zero"},
    {"profile_from": str(ROOT / "traces" / "backprop16k.bin")},
    {"profile_until_launch": 3},
    {"kernels": "0:2"},
    {"compute_gap_scale": "2"},
    {"queueing": True},
    {"exact_order": True},
    {"partial": True},
    {"sensitivity": "all"},
    {"link.bandwidth": "50 GB/s"},
    {"um.page_size": "4 KiB"},
]


def test_every_axis_of_replays_changes_the_name(tmp_path: Path) -> None:
    targets = tmp_path / "targets.toml"
    targets.write_text("[targets]\n")
    changes = [{}, *CHANGES, {"targets": str(targets)}]
    names = [replayed(**change).key for change in changes]
    assert len(set(names)) == len(names)
    assert set(replay.axes()) <= {key for change in changes for key in change}


def test_every_axis_of_trainings_changes_the_name(tmp_path: Path) -> None:
    table = tmp_path / "densities.csv"
    table.write_text("layer,density\n")
    changes: list[dict[str, Any]] = [{}, {"network": "vgg16"}, {"batch": 3}, {"machine": "p100"}, {"link": "pcie4"}]
    changes += [{"scheme": "vdnn-all-m"}, {"prefetch": "on-demand"}, {"conv_library": "cudnn5"}, {"precision": "fp16"}]
    changes += [
        {"calibration": str(table)},
        {"pool_policy": "first-fit"},
        {"memory_bytes": 2**30},
        {"optimizer": "adam"},
        {"channels_last": True},
    ]
    changes += [{"training.device_memory": "8 GiB"}, {"training.links.pcie3.d2h_bandwidth": "9 GB/s"}]
    names = [trained(**change).key for change in changes]
    other = {"epoch": 1.0, "repeated_values": False, "synthetic_density": 0.5, "synthetic_cluster": 2, "seed": 1}
    other |= {"map_layout": "NHWC", "codec_window": 512, "mask_bytes": False}
    other |= {"activations": str(table), "density_table": str(table)}
    names += [trained(scheme="cdma-zv", **{name: value}).key for name, value in other.items()]
    names += [trained(scheme="cdma-zv").key]
    assert len(set(names)) == len(names)
    missing = {
        name for name in training.axes() if name not in {key for change in changes for key in change} | other.keys()
    }
    assert missing <= set(schemes.options()) | field_options(ConfigOptions).keys()


def test_every_option_of_a_configuration_changes_the_name() -> None:
    model = {"network": "tinyllama-1.1b", "machine": "h100-sxm"}
    changes: dict[str, Any] = {"sequence": 64, "recipe": "fp32", "attention": "eager", "loss": "fused"}
    changes |= {"compile": True, "packed": 2, "expert_skew": 1.0, "expert_capacity": 1.5, "accumulation": 2}
    changes |= {"optimizer_variant": "fused", "optimizer_in_backward": True, "alloc_conf": "expandable_segments:True"}
    changes |= {"lora": "8", "lora_library": "peft", "ddp": 2, "fsdp": 2, "zero1": 2, "zero2": 2, "zero3": 2}
    changes |= {"head": "causal", "padding": 0.5}
    together = {"qlora": {"lora": "8"}, "bucket": {"ddp": 2}, "gather_ahead": {"fsdp": 2}, "reshard": {"fsdp": 2}}
    together["reduce_format"] = {"fsdp": 2}
    values = {"qlora": True, "bucket": 50, "gather_ahead": 2, "reshard": False, "reduce_format": "fp32"}
    refused = {"tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel"}
    assert changes.keys() | values.keys() | refused == field_options(ConfigOptions).keys()
    keys = {trained(**model, **{name: value}).key for name, value in changes.items()}
    for name, value in values.items():
        other = {**model, **together[name]}
        assert trained(**other, **{name: value}).key != trained(**other).key, name
    assert len(keys | {trained(**model).key}) == len(changes) + 1
    with pytest.raises(BuddysimError, match="sequence: alexnet is not a model's configuration"):
        training.checked({"network": "alexnet", "sequence": 64}, ["network"])
    with pytest.raises(BuddysimError, match="machine: not named: expected the GPU that trains tinyllama"):
        training.checked({"network": "tinyllama-1.1b"}, ["network"])


@pytest.mark.parametrize("kind", ["trace", "targets", "profile_from", "machine"])
def test_content_of_files_counts_and_their_path_does_not(kind: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    if kind == "machine":
        first.write_text('base = "p100-nvlink2"\nname = "mine"\n')
        changed = 'base = "p100-nvlink2"\nname = "mine"\n[link]\nbandwidth = "10 GB/s"\n'
    else:
        first.write_text("one")
        changed = "two"
    shutil.copy(first, second)
    name = replayed(**{kind: str(first)}).key
    assert replayed(**{kind: str(second)}).key == name
    first.write_text(changed)
    assert replayed(**{kind: str(first)}).key != name


def test_layers_and_their_names_count_of_a_network_file(tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    path.write_text((ROOT / "docs" / "examples" / "leaky.toml").read_text().replace("leaky-relu", "relu"))
    before = trained(network=str(path)).key
    path.write_text(path.read_text().replace('name = "', 'name = "x', 1))
    assert trained(network=str(path)).key != before


def test_the_model_version_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = replayed().key
    monkeypatch.setattr(replay, "MODEL_VERSION", replay.MODEL_VERSION + 1)
    assert replayed().key != before


def test_a_plugin_counts_where_it_defines_something_of_the_engine() -> None:
    points = SweepPoint("replay", {"trace": LUD}), SweepPoint("training", {"network": "alexnet"})
    before = [point.key for point in points]
    buddysim.load_plugin(ROOT / "docs" / "examples" / "plugins" / "vdnn_large.py")
    after = [SweepPoint(point.engine, point.settings).key for point in points]
    assert [one != other for one, other in zip(before, after, strict=True)] == [False, True]


# -- equal values have one name ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"link.bandwidth": "50GB/s"}, {"link.bandwidth": "0.05 TB/s"}),
        ({"l2.size": "4 MiB"}, {"l2.size": "4096KiB"}),
        ({"l2.size": "4 MiB", "um.page_size": "64 KiB"}, {"um.page_size": "65536 B", "l2.size": "4 MiB"}),
        ({}, {"link.bandwidth": "150 GB/s"}),
        ({}, {"machine": "p100-nvlink2", "scheme": "buddy", "threshold": 0.3, "seed": 0, "compute_gap_scale": "1"}),
        ({"sm.blocking_atomics": True}, {"sm.blocking_atomics": "true"}),
        ({"scheme": "ideal"}, {"scheme": "ideal", "threshold": 0.1, "compressor": "zvc", "seed": 4}),
        ({"scheme": "bandwidth-compression"}, {"scheme": "bandwidth-compression", "threshold": 0.1}),
    ],
)
def test_equal_replays_have_one_name(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert replayed(**one).key == replayed(**other).key


def test_equal_trainings_have_one_name() -> None:
    assert trained(link="pcie3").key == trained().key == trained(**{"training.link": "pcie3"}).key
    assert trained(conv_library="cudnn4").key == trained().key
    assert trained(scheme="vdnn-all-m", synthetic_density=0.5).key == trained(scheme="vdnn-all-m").key
    assert trained(scheme="cdma-zv", synthetic_cluster=1).key == trained(scheme="cdma-zv").key
    assert trained(**{"training.link": "pcie4"}).key != trained().key


@pytest.mark.parametrize("scheme", REPLAY_SCHEMES.names())
def test_what_a_scheme_does_not_read_does_not_change_its_result(scheme: str) -> None:
    """Points that differ only in settings which the scheme ignores have one result."""
    settings = {
        "trace": LUD,
        "scheme": scheme,
        "threshold": 0.0,
        "seed": 9,
        "size_distribution": "all-zero",
        "profile_until_launch": 1,
    }
    plain = replay.normalised({"trace": LUD, "scheme": scheme})
    unread = {name: value for name, value in settings.items() if replay.normalised(settings)[name] == plain[name]}
    unread = {name: settings[name] for name in unread if settings[name] != plain[name]}
    changed = buddysim.simulate(LUD, scheme=scheme, **{k: v for k, v in unread.items() if k != "scheme"})
    assert changed.counters == buddysim.simulate(LUD, scheme=scheme).counters
    assert bool(unread) == (scheme != "buddy")


VALUES = {
    "threshold": st.sampled_from([0, 0.0, 0.1, 0.30, 1]),
    "seed": st.integers(0, 5),
    "kernels": st.sampled_from([None, "0:2", "1:", "2:3"]),
    "queueing": st.booleans(),
    "link.bandwidth": st.sampled_from(["50 GB/s", "50GB/s", "0.05 TB/s", "150 GB/s", "60 GB/s"]),
    "l2.size": st.sampled_from(["4 MiB", "4096 KiB", "2 MiB"]),
}
SETTINGS = st.fixed_dictionaries({}, optional=VALUES)


def meaning(settings: dict[str, Any]) -> str:
    """The meaning of some settings, computed independently of the code under test."""
    full = {"threshold": 0.3, "seed": 0, "kernels": None, "queueing": False, "link.bandwidth": 150, "l2.size": 4096}
    for name, value in settings.items():
        full[name] = value
        if name == "link.bandwidth" and isinstance(value, str):
            full[name] = 50 if "0.05" in value else int(value.replace("GB/s", ""))
        if name == "l2.size" and isinstance(value, str):
            full[name] = {"4 MiB": 4096, "4096 KiB": 4096, "2 MiB": 2048}[value]
    full["threshold"] = float(full["threshold"])  # type: ignore[arg-type]
    return json.dumps(full, sort_keys=True)


@given(SETTINGS, SETTINGS, st.randoms())
def test_names_are_equal_where_settings_mean_the_same(one: Any, other: Any, random: Any) -> None:
    def read(settings: dict[str, Any]) -> dict[str, Any]:
        axes = replay.axes()
        items = [(name, axes[name].value(name, value) if name in axes else value) for name, value in settings.items()]
        random.shuffle(items)
        return dict(items)

    names, fast = [replayed(**read(settings)).key for settings in (one, other)], PointKeys()
    assert (names[0] == names[1]) == (meaning(one) == meaning(other))
    assert [fast.key_of(replayed(**read(settings))) for settings in (one, other)] == names


@given(st.dictionaries(st.sampled_from(sorted(Machine.load("p100-nvlink2").dotted_keys())), st.just(None), max_size=3))
def test_the_fast_checksum_is_that_of_the_machine(keys: dict[str, None]) -> None:
    machine = Machine.load("p100-nvlink2")
    other = Machine.load("v100")
    overrides = {key: other.text(key) for key in keys if not key.startswith("training.") and key in other.dotted_keys()}
    try:
        made = machine.with_overrides(overrides)
    except BuddysimError:
        return  # invalid combination
    assert machine.checksum_with(overrides) == made.checksum


def test_the_fast_checksum_is_that_of_the_training_machine() -> None:
    machine = TrainingMachine.load("titan-x")
    overrides = {"training.device_memory": "8 GiB", "training.links.pcie3.d2h_bandwidth": "9 GB/s"}
    overrides["training.link"] = "pcie4"
    assert machine.checksum_with(overrides) == machine.with_overrides(overrides).checksum


def test_a_record_that_is_read_says_its_own_name() -> None:
    point = replayed(**{"link.bandwidth": "50 GB/s"})
    made = stored_result.make_record(point, point.sweep_engine.simulate(point.settings), 1.0, 2)
    assert stored_result.key_of(made.identity) == point.key == made.key
    again = stored_result.read_record(made.to_bytes(), point.key)
    assert again == made
    with pytest.raises(stored_result.DamagedResultError):
        stored_result.read_record(made.to_bytes(), "0" * 40)


def test_plugins_of_every_kind_that_an_engine_uses_count() -> None:
    counted = {kind for engine in (analysis, replay, training) for kind in engine.PLUGIN_KINDS}
    without_effect = {
        "importer",
        "synthetic workload",
        "workload",
        "figure",
        "command",
    }  # they make files, or show results
    assert counted | without_effect == set(HOMES)
    assert not counted & without_effect


@pytest.mark.parametrize("kind", [kind for kind in replay.PLUGIN_KINDS if kind != "compressor"])
def test_a_plugin_of_each_kind_of_the_replayed_machine_counts(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It could change results under a name of the package's or its own."""
    home = registry(kind)
    (_, member), *_ = home.items()
    module = ModuleType("mine")
    setattr(module, *home.contract, type("Mine", member.__bases__, {}))
    assert home.adopt(module)
    keys = {replayed().key}
    monkeypatch.setattr(plugins, "modules", lambda: (module,))
    for text in ("the first text", "another text"):
        monkeypatch.setattr(module, "PLUGIN_TEXT", text, raising=False)
        keys.add(replayed().key)
    assert len(keys) == 3
