"""Rows of the table of schemes, and the sentence above it: which scheme is named, in which order, at most twelve."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.plotting.memory_kinds import LABELS
from buddysim.report.fit_answer import fit_answer, is_lossy, makes_it_fit
from buddysim.report.scheme_rows import MAX_ROWS, in_order, rows_of, simplicity
from buddysim.training.schemes import REGISTRY, UNCHANGED

GIB = 2**30
NAMES = [name for name in REGISTRY.names() if name != "oracle"]


def result(time_ms: float = 100.0, short: float = 0, offload: float = 0, **more: Any) -> dict[str, Any]:
    """A result on a GPU of 80 GiB that it fills to 60; `short` GiB do not fit."""
    return {
        "time_ms": time_ms, "fits": not short, "nothing_to_do": None, "encode_ms": 0.0, "decode_ms": 0.0,
        "oom.peak_excess_bytes": int(short * GIB), "oom.shortfall_bytes": 0, "memory.capacity_bytes": 80 * GIB,
        "memory.peak_bytes": 60 * GIB, "memory.by_kind": {**dict.fromkeys(LABELS, 0), "weights": 60 * GIB},
        "offload.bytes": int(offload * GIB), "link.bytes": int(2 * offload * GIB),
        "provenance": {"accuracy": UNCHANGED}, **more,
    }  # fmt: skip


LOSSY = {"provenance": {"accuracy": "-0.2 +- 2.8 points"}}


def cells(results: dict[str, dict[str, Any]]) -> Any:
    return lambda name: [str(results[name][key]) for key in ("time_ms", "oom.peak_excess_bytes", "offload.bytes")]


one_result = st.builds(
    result,
    st.sampled_from([100.0, 100.01, 120.0, 300.0, 301.0, 999.0]),
    st.sampled_from([0, 0, 0, 0.5, 9, 40]),
    st.sampled_from([0, 0, 4]),
    nothing_to_do=st.sampled_from([None, None, None, "nothing to offload", "nothing to encode"]),
    provenance=st.sampled_from([{"accuracy": UNCHANGED}, {"accuracy": UNCHANGED}, LOSSY["provenance"]]),
)
many_results = st.dictionaries(st.sampled_from(NAMES), one_result, min_size=1)


@given(many_results, st.booleans())
def test_every_scheme_is_accounted_for_once_in_twelve_rows_or_less(
    results: dict[str, dict[str, Any]], allow_lossy: bool
) -> None:
    rows = rows_of(results, cells(results), allow_lossy)
    assert len(rows.shown) <= MAX_ROWS
    others = [name for names in rows.equal.values() for name in names]
    assert sorted([*rows.shown, *others, *rows.idle, *rows.left_out]) == sorted(results)
    if len(results) <= MAX_ROWS:
        assert rows.idle == rows.left_out == ()
    for name, names in rows.equal.items():
        assert {tuple(cells(results)(other)) for other in names} == {tuple(cells(results)(name))}
        assert all(simplicity(results)[name] <= simplicity(results)[other] for other in names)
    if "eager" in results and not results["eager"]["nothing_to_do"]:
        assert "eager" in {*rows.shown, *others}


@given(many_results)
def test_those_that_fit_are_sorted_by_time_and_a_lossy_one_is_never_first(results: dict[str, dict[str, Any]]) -> None:
    order = in_order(results)
    active = [results[name] for name in order if not results[name]["nothing_to_do"]]
    if active and any(not is_lossy(one) for one in active):
        assert not is_lossy(active[0])
    if any(makes_it_fit(one) and not is_lossy(one) for one in active):
        assert [one["fits"] for one in active] == sorted((one["fits"] for one in active), reverse=True)
        times = [float(f"{one['time_ms']:.3g}") for one in active if one["fits"] and not is_lossy(one)]
        assert times == sorted(times)
    allowed = [results[name] for name in in_order(results, allow_lossy=True)]
    times = [float(f"{one['time_ms']:.3g}") for one in allowed if one["fits"] and not one["nothing_to_do"]]
    assert times == sorted(times)


@given(many_results, st.booleans())
def test_the_sentence_names_a_scheme_that_fits_and_is_never_slower_than_another(
    results: dict[str, dict[str, Any]], allow_lossy: bool
) -> None:
    results = {**results, "eager": result(short=10)}
    said = fit_answer(results, simplicity(results), allow_lossy)
    candidates = [one for one in results.values() if makes_it_fit(one) and (allow_lossy or not is_lossy(one))]
    assert (" makes it fit, " in said) == bool(candidates)
    if candidates:
        name = said.rpartition(" makes it fit")[0].rpartition(": ")[2]
        assert results[name] in candidates
        assert float(f"{results[name]['time_ms']:.3g}") == min(float(f"{one['time_ms']:.3g}") for one in candidates)


def sentence(results: dict[str, dict[str, Any]], allow_lossy: bool = False) -> str:
    return fit_answer(results, simplicity(results), allow_lossy)


def test_the_sentence_of_a_network_that_fits_says_what_is_left() -> None:
    assert sentence({"eager": result()}) == "fits as is, 20.00 GiB left (largest: weights, 60.00 GiB)"
    assert sentence({"vdnn-dyn": result()}) == ""
    assert sentence({"baseline-p": result(), "vdnn-dyn": result()}).startswith("fits as is")


def test_the_sentence_names_the_cheapest_and_among_equals_the_simplest() -> None:
    short = "does not fit as is, 10.00 GiB short (largest: weights, 60.00 GiB)"
    plain = {"eager": result(short=10)}
    assert sentence(plain) == f"{short}: none of these schemes makes it fit"
    assert fit_answer(plain, simplicity(plain), complete=False) == f"{short}: looking for a scheme"
    recompute, offload = result(125.0), result(125.04, offload=4)
    several = {"offload-activations": offload, "activation-checkpointing": recompute, **plain}
    assert sentence(several) == f"{short}: activation-checkpointing makes it fit, 25 % slower, 20.00 GiB left"
    several["activation-checkpointing"] = result(126.0)
    named = f"{short}: offload-activations makes it fit, 25 % slower, 4.00 GiB to the host, 20.00 GiB left"
    assert sentence(several) == named
    several["gist-fp8"] = result(101.0, **LOSSY)
    assert sentence(several) == named
    assert sentence(several, allow_lossy=True) == f"{short}: gist-fp8 makes it fit, 1 % slower, 20.00 GiB left"
    only = {**plain, "gist-fp8": result(101.0, **LOSSY)}
    assert sentence(only) == f"{short}: only lossy schemes make it fit (--allow-lossy)"


def test_schemes_that_do_not_fit_are_sorted_by_what_is_missing_and_the_plain_one_stays() -> None:
    names = [name for name in NAMES if name not in ("eager", "baseline-p")]
    results = {name: result(100.0 + number, short=1 + number) for number, name in enumerate(names)}
    results["eager"] = result(100.0, short=90)
    rows = rows_of(results, cells(results))
    assert rows.shown == (*names[:11], "eager")
    assert rows.left_out == tuple(names[11:])


@pytest.mark.parametrize("n_fit", [8, 20])
def test_both_kinds_have_rows(n_fit: int) -> None:
    names = [name for name in NAMES if name not in ("eager", "baseline-p")][: n_fit + 6]
    results = {name: result(100.0 + n, short=max(0, n - n_fit + 1)) for n, name in enumerate(names)}
    assert rows_of(results, cells(results)).shown == (*names[:8], *names[n_fit : n_fit + 4])
