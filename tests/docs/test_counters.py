"""Definitions of counters: complete, readable alone, and true of real results; the pages of counters in
docs/reference/ are made from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

import buddysim
from buddysim.base.counter import law_holds
from buddysim.replay.counter_definitions import COUNTERS as REPLAY_COUNTERS
from buddysim.replay.counter_definitions import LAWS as ENGINE_LAWS
from buddysim.replay.schemes import REGISTRY
from buddysim.report.counter_texts import counter_texts
from buddysim.synthetic import make_trace
from buddysim.training import schemes, simulate
from buddysim.training.counter_definitions import COUNTERS as TRAINING_COUNTERS
from buddysim.training.counter_definitions import LAWS as TRAINING_LAWS

REPLAY_LAWS = tuple(dict.fromkeys((*ENGINE_LAWS, *(law for _, scheme in REGISTRY.items() for law in scheme.LAWS))))
LISTS = ("per_kernel", "per_allocation", "per_layer")
#: First words of a description that has no subject of its own.
NO_SUBJECT = {"of", "these", "those", "this", "that", "likewise", "as", "how", "what", "when", "by", "same", "also"}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("counters") / "t.bin"
    make_trace("stream", path, {"footprint": "1 MiB", "op": "copy", "laps": "6", "sizes": "32 B:3, 128 B:1"})
    no_headers = {"link.protocol": "packets"}  # so that payloads add up to what the link carries
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"l2.size": "512 KiB", **no_headers})
    return {scheme: buddysim.simulate(path, machine, scheme).to_dict() for scheme in REGISTRY.names()}


def keys_of(result: Mapping[str, Any]) -> set[str]:
    keys = {key for key in result if key not in (*LISTS, "provenance")}
    keys |= {f"provenance.{key}" for key in result["provenance"]}
    return keys | {f"{name}.{key}" for name in LISTS for row in result.get(name, ()) for key in row}


def test_replay_counters_are_those_that_are_defined(results):
    of_schemes = {key for _, scheme in REGISTRY.items() for key in scheme.COUNTERS | scheme.ENGINE_COUNTERS}
    for result in results.values():
        assert of_schemes <= keys_of(result)
        assert sorted(REPLAY_COUNTERS) == sorted(keys_of(result) - of_schemes)


@pytest.mark.parametrize("scheme", schemes.runnable_schemes(["buddy_ratio"]))
def test_training_counters_are_those_that_are_defined(scheme):
    if scheme.startswith("buddy-scaled"):
        result = simulate("alexnet-cifar10", 4, "titan-x", scheme, buddy_ratio=1.5).to_dict()
    else:
        result = simulate("alexnet-cifar10", 4, "titan-x", scheme).to_dict()
    assert sorted(TRAINING_COUNTERS) == sorted(keys_of(result))


@pytest.mark.parametrize("counter", counter_texts(), ids=lambda counter: counter.name)
def test_definitions_stand_alone(counter):
    assert counter.unit or counter.name.startswith("provenance.")
    assert counter.text[0].isupper() or not counter.text[0].isalpha()
    assert counter.text.split()[0].lower().strip(",") not in NO_SUBJECT
    assert counter.text.endswith(".")
    assert len(re.findall(r"[.] [A-Z]", counter.text)) == 0, "one sentence"
    assert "likewise" not in counter.text


@pytest.mark.parametrize("scheme", REGISTRY.names())
@pytest.mark.parametrize("law", REPLAY_LAWS)
def test_laws_of_replays_hold(results, scheme, law):
    assert law_holds(law, results[scheme])


@pytest.mark.parametrize("law", TRAINING_LAWS)
def test_laws_of_training_hold(law):
    assert law_holds(law, simulate("googlenet", 32, "titan-x", "vdnn-all-p").to_dict())


@pytest.mark.parametrize("scheme", REGISTRY.names())
def test_lists_add_up_to_totals(results, scheme):
    result = results[scheme]
    assert sum(result["device.channel_bytes"]) == result["device.bus_bytes"]
    for kind in ("demand", "overfetch", "read_modify_write", "writeback"):
        assert sum(result[f"device.channel_{kind}_bytes"]) == result[f"device.{kind}_bytes"]
    metadata = [*result["device.channel_metadata_read_bytes"], *result["device.channel_metadata_write_bytes"]]
    assert sum(metadata) == result["device.metadata_bytes"]
    link = ("demand", "overfetch", "read_modify_write", "writeback", "migration_in", "migration_out")
    both_directions = result["link.read_bytes"] + result["link.write_bytes"]
    assert both_directions == sum(result[f"link.{kind}_bytes"] for kind in link)
    assert sum(result["latency.l2_miss_histogram"]) == result["l2.fills"]
    for name in ("fills", "writebacks"):
        assert sum(row[name] for row in result["per_allocation"]) == result[f"l2.{name}"]
    assert sum(row["buddy_accesses"] for row in result["per_allocation"]) == result["buddy.accesses"]
    assert sum(row["memory_instructions"] for row in result["per_kernel"]) == result["memory_instructions"]
    assert all(0 <= value <= 1 for key, value in result.items() if key.startswith("utilization."))


def test_layers_add_up_to_totals():
    result = simulate("googlenet", 32, "titan-x", "vdnn-all-p").to_dict()
    rows = result["per_layer"]
    assert sum(row["offload_bytes"] for row in rows) == result["offload.bytes"] == result["prefetch.bytes"]
    computing = sum(row["forward_ms"] + row["backward_ms"] + row["recompute_ms"] for row in rows)
    assert computing == pytest.approx(result["compute_ms"])
    stalled = sum(row["forward_stall_ms"] + row["backward_stall_ms"] for row in rows)
    assert stalled == pytest.approx(result["stall_ms"])
    assert result["link.bytes"] == result["offload.bytes"] + result["prefetch.bytes"]


@pytest.mark.parametrize(
    ("law", "holds"),
    [
        ("`a.b` = `a.c` + `d`", True),
        ("`a.b` = `a.c` - `d`", False),
        ("`a.c` <= `a.b`", True),
        ("`a.b` <= `a.c`", False),
        ("`zero` = `d` / (`d` - `d`)", True),
        ("`half` = `d` / (`a.c` - `d`)", False),
        ("`half` = `d` / (`a.c` + `d` - `d`)", True),
    ],
)
def test_a_law_by_hand(law, holds):
    assert law_holds(law, {"a.b": 3, "a.c": 2, "d": 1, "zero": 0, "half": 0.5}) is holds


def test_every_scheme_has_the_same_counters(results):
    assert len({tuple(sorted(result)) for result in results.values()}) == 1
