"""The table of what holds GPU memory: at most twelve rows that add up to the peak, in integers."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from buddysim.plotting.memory_kinds import LABELS
from buddysim.report.memory_table import MAX_ROWS, memory_parts, memory_rows
from buddysim.report.screen import ScreenTable, format_as_text

NOT_ALLOCATED = ("library_workspace", "fragmentation", "context")
GIB = 2**30
KINDS = [kind for kind in LABELS if kind not in NOT_ALLOCATED]


def result(by_kind: dict[str, int], saved: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    """A result with these kinds; what is saved is in `saved`, by layer kind."""
    kinds = {**dict.fromkeys(LABELS, 0), **by_kind}
    kinds["feature_maps"] += sum((saved or {}).values())
    peak = sum(kinds[kind] for kind in KINDS)
    return {
        "memory.by_kind": kinds, "memory.saved_by_layer_kind": saved or {}, "memory.saved_by_block": {},
        "memory.peak_bytes": peak, "memory.peak_start_ms": 12.5, "memory.peak_phase": "backward",
        "memory.peak_module": "loss", "memory.peak_operation": "mm", "memory.capacity_bytes": 80 * GIB,
        "nothing_to_do": None, "fits": True, "time_ms": 100.0, "oom.peak_excess_bytes": 0,
        "oom.shortfall_bytes": 0, **more,
    }  # fmt: skip


sizes = st.one_of(st.just(0), st.integers(1, 2**20), st.integers(2**25, 2**37))
results = st.builds(
    result,
    st.dictionaries(st.sampled_from([kind for kind in LABELS if kind != "feature_maps"]), sizes),
    st.one_of(st.none(), st.dictionaries(st.text("abc_", min_size=1, max_size=9), st.integers(1, 2**36), min_size=1)),
)


@given(st.lists(results, min_size=1, max_size=4))
def test_rows_add_up_to_what_is_allocated_and_in_use(several: list[dict[str, Any]]) -> None:
    schemes = {f"s{number}": one for number, one in enumerate(several)}
    rows = memory_rows(schemes)
    assert len(rows) <= MAX_ROWS
    labels = [label for label, _ in rows]
    assert len(set(labels)) == len(labels)
    allocated = labels.index("all tensors")
    for column, one in enumerate(several):
        amounts = [row[1][column] for row in rows]
        assert sum(amounts[:allocated]) == amounts[allocated] == one["memory.peak_bytes"]
        more = sum(one["memory.by_kind"][kind] for kind in NOT_ALLOCATED)
        if "in use" in labels:
            assert amounts[-1] == sum(amounts[allocated:-1]) == one["memory.peak_bytes"] + more
        else:
            assert more == 0


@given(st.lists(results, min_size=1, max_size=4))
def test_the_section_fits_80_columns(several: list[dict[str, Any]]) -> None:
    schemes = {f"activation-checkpointing-{number}": one for number, one in enumerate(several)}
    text = format_as_text(memory_parts(schemes), 80)
    assert max(map(len, text.splitlines())) <= 80


def test_what_is_saved_has_a_row_for_each_kind_of_layer_where_every_scheme_knows_it() -> None:
    divided = result({"weights": 4 * GIB, "logits": GIB}, {"mlp": 3 * GIB, "self_attn": 2 * GIB})
    whole = result({"weights": 4 * GIB, "logits": GIB, "feature_maps": 2 * GIB})
    assert [row[0] for row in memory_rows({"eager": divided})] == [
        "weights", "saved by mlp", "saved by self_attn", "logits and loss", "all tensors",
    ]  # fmt: skip
    rows = dict(memory_rows({"eager": divided, "other": whole}))
    assert rows["saved activations"] == [5 * GIB, 2 * GIB]


def test_what_is_saved_has_one_row_where_kinds_of_layers_have_none() -> None:
    several = dict.fromkeys(("weights", "weight_gradients", "optimizer_state", "gathered_shards", "temporaries"), GIB)
    several |= {"inputs": 1, "context": GIB, "fragmentation": GIB, "library_workspace": GIB}
    rows = dict(memory_rows({"eager": result(several, {"mlp": 30 * GIB, "self_attn": 20 * GIB})}))
    assert rows["saved activations"] == [50 * GIB]
    assert "others" not in rows


def test_rows_of_less_than_a_two_hundredth_are_one() -> None:
    rows = dict(memory_rows({"eager": result({"weights": 100 * GIB, "inputs": 5, "temporaries": 7})}))
    assert rows == {"weights": [100 * GIB], "others": [12], "all tensors": [100 * GIB + 12]}
    by_kind = Counter({"weights": 100 * GIB, "inputs": 5})
    assert "inputs" in dict(memory_rows({"eager": result(by_kind)}))


def test_of_many_schemes_the_first_one_is_shown() -> None:
    schemes = {f"s{number}": result({"weights": number + 1}) for number in range(5)}
    table = next(part for part in memory_parts(schemes) if isinstance(part, ScreenTable))
    assert table.columns[0].heading == "GPU memory at the peak of s0"
