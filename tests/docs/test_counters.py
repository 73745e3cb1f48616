"""docs/counters.md and the results agree, key for key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import buddysim
from buddysim.replay.schemes import REGISTRY
from buddysim.synthetic import make_trace

DOCUMENT = Path(__file__).parents[2] / "docs" / "counters.md"
TRAINING = "# Results of training iterations"
LISTS = ("per_kernel", "per_allocation")

# The keys that every version must have, whatever else there is.
PROMISED = re.findall(
    r"\S+",
    """
time_ps cycles warp_instructions memory_instructions l1.sector_accesses l1.sector_hits l2.sector_accesses l2.sector_hits
l2.fill_sectors l2.writeback_sectors metadata.accesses metadata.hits device.read_bytes device.write_bytes
device.metadata_bytes link.read_bytes link.write_bytes buddy.accesses buddy.access_share compression.ratio
footprint.device_bytes footprint.buddy_bytes sizes.switches sizes.extrapolated_share per_kernel
speed.memory_instructions_per_s speed.line_accesses_per_s speed.peak_rss_bytes provenance
""",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("counters") / "t.bin"
    make_trace("stream", path, {"footprint": "1 MiB", "op": "copy", "laps": "6", "sizes": "32 B:3, 128 B:1"})
    machine = buddysim.Machine.load("p100-nvlink2").with_overrides({"l2.size": "512 KiB"})
    return {scheme: buddysim.simulate(path, machine, scheme).to_dict() for scheme in REGISTRY.names()}


def documented(training=False):
    """Keys in the first column of the document's tables, with the rest of their row."""
    rows = {}
    for line in DOCUMENT.read_text(encoding="utf-8").split(TRAINING)[training].splitlines():
        if line.startswith("| `"):
            first, *others = [cell.strip() for cell in line.strip("|").split(" | ")]
            for key in re.findall(r"`([^`]+)`", first):
                assert key not in rows, f"{key} is there twice"
                rows[key] = others
    return rows


def keys_of(result):
    keys = {key for key in result if key not in (*LISTS, "provenance")}
    keys |= {f"provenance.{key}" for key in result["provenance"]}
    return keys | {f"{name}.{key}" for name in LISTS for row in result[name] for key in row}


def test_every_key_is_documented_and_every_documented_key_exists(results):
    own = {key for _, scheme in REGISTRY.items() for key in scheme.COUNTERS}  # documented by their schemes
    for result in results.values():
        assert own <= keys_of(result)
        assert sorted(documented()) == sorted(keys_of(result) - own)


def test_units_are_named():
    for key, cells in documented().items():
        if not key.startswith("provenance."):
            unit, text = cells
            assert unit, key
            assert text, key


def test_counters_of_schemes_name_their_unit():
    for name, scheme in REGISTRY.items():
        for key, definition in scheme.COUNTERS.items():
            unit, colon, text = definition.partition(": ")
            assert unit, (name, key)
            assert colon, (name, key)
            assert text, (name, key)


def test_every_promised_key_is_there_and_every_scheme_has_the_same_shape(results):
    shapes = {tuple(sorted(result)) for result in results.values()}
    assert len(shapes) == 1
    assert set(PROMISED) <= set(shapes.pop())


def test_the_document_names_only_keys_that_exist():
    """Also in its running text: anything in backticks that looks like a key is one."""
    known = documented()
    groups = {key.partition(".")[0] for key in known if "." in key}
    for word in re.findall(r"`([a-z_0-9]+\.[a-z_0-9]+)`", DOCUMENT.read_text(encoding="utf-8").split(TRAINING)[0]):
        if word.partition(".")[0] in groups and word != "l1.lines_per_cycle":
            assert word in known


@pytest.mark.parametrize("scheme", REGISTRY.names())
def test_sums_that_the_document_states(results, scheme):
    r = results[scheme]
    assert r["l2.sector_accesses"] == r["l2.read_sectors"] + r["l2.write_sectors"]
    assert r["l2.sector_hits"] == r["l2.read_sector_hits"] + r["l2.write_sector_hits"]
    assert r["load_sectors"] == r["l1.sector_hits"] + r["l1.sector_merged"] + r["l2.read_sectors"]
    assert r["l2.read_sectors"] == r["l2.read_sector_hits"] + r["l2.sector_merged"] + r["l2.demand_sectors"]
    left = r["l2.writeback_sectors"] + r["l2.overwritten_sectors"] + r["l2.dirty_sectors_left"]
    assert r["l2.dirtied_sectors"] == left
    reads = ("device.demand_bytes", "device.overfetch_bytes", "device.read_modify_write_bytes")
    assert r["device.read_bytes"] == sum(r[key] for key in reads)
    assert r["device.write_bytes"] == r["device.writeback_bytes"]
    moved = r["device.read_bytes"] + r["device.write_bytes"] + r["device.metadata_bytes"]
    assert moved == r["device.bus_bytes"] + r["device.queued_write_bytes"]
    assert sum(r["device.channel_bytes"]) == r["device.bus_bytes"]
    for kind in ("demand", "overfetch", "read_modify_write", "write_back"):
        assert sum(r[f"device.channel_{kind}_bytes"]) == r[f"device.{kind.replace('write_back', 'writeback')}_bytes"]
    metadata = sum(r["device.channel_metadata_read_bytes"]) + sum(r["device.channel_metadata_write_bytes"])
    assert metadata == r["device.metadata_bytes"]
    link = ("demand", "overfetch", "read_modify_write", "writeback", "migration_in", "migration_out")
    assert r["link.read_bytes"] + r["link.write_bytes"] == sum(r[f"link.{kind}_bytes"] for kind in link)
    assert r["buddy.accesses"] == r["buddy.fills"] + r["buddy.writebacks"]
    assert r["sizes.switches"] == r["sizes.grown"] + r["sizes.shrunk"]
    assert sum(r["latency.l2_miss_histogram"]) == r["l2.fills"]
    for name in ("fills", "writebacks"):
        assert sum(row[name] for row in r["per_allocation"]) == r[f"l2.{name}"]
    assert sum(row["buddy_accesses"] for row in r["per_allocation"]) == r["buddy.accesses"]
    assert sum(row["memory_instructions"] for row in r["per_kernel"]) == r["memory_instructions"]
    assert all(0 <= share <= 1 for key, share in r.items() if key.startswith("utilization."))
