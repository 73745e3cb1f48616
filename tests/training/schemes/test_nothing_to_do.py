"""A scheme that changes nothing on a network says so: in its row, in JSON and in the results of sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import buddysim
from buddysim.cli import main
from buddysim.training import NetworkBuilder, schemes, simulate
from buddysim.training.named_network import load_network

NO_CONV = "nothing to offload: no CONV layers"


@pytest.mark.parametrize("scheme", ["vdnn-conv-m", "vdnn-conv-p", "cswap", "cswap-static", "cswap-oracle", "vdnnpp"])
def test_schemes_of_conv_layers_have_nothing_to_do_on_a_transformer(scheme: str) -> None:
    result = simulate("gpt2", 1, "a100-40", scheme, synthetic_density=0.5)
    assert result.counters["nothing_to_do"] == NO_CONV
    assert result.counters["offload.bytes"] == 0
    assert simulate("alexnet", 4, "a100-40", scheme, synthetic_density=0.5).counters["nothing_to_do"] is None


@pytest.mark.parametrize("scheme", schemes.REGISTRY.names())
def test_what_changes_nothing_says_so(scheme: str) -> None:
    """A scheme without a reason differs from vdnn-none-m in what it moves, encodes, recomputes or frees."""
    if schemes.required_options(scheme):
        return
    result = simulate("gpt2", 1, "a100-40", scheme, synthetic_density=0.5)
    plan = result.outcome.plan
    does = plan.stash or plan.segments or plan.offload_saved_tensors or not plan.layerwise
    neutral = scheme.startswith(("vdnn-none", "vdnn-dyn")) or scheme in ("eager", "gist-base")
    assert bool(result.counters["nothing_to_do"]) == (not does and not neutral)


def test_a_network_that_nothing_divides_is_not_recomputed() -> None:
    net = NetworkBuilder("one", (8,))
    net.add("fc", features=8)
    result = simulate(net.build(), 1, "a100-40", "activation-checkpointing")
    assert str(result.counters["nothing_to_do"]).startswith("nothing to recompute: ")


def test_the_row_says_it_in_place_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "gpt2", "--batch", "1", "--machine", "a100-40", "--scheme", "vdnn-conv-p,baseline-p"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("vdnn-conv-p"))
    assert row.split(maxsplit=1)[1] == NO_CONV
    assert lines.index(row) > next(n for n, line in enumerate(lines) if line.startswith("baseline-p"))
    assert max(map(len, lines)) <= 80


def test_json_and_the_search_for_the_fastest_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "gpt2", "--batch", "1", "--machine", "a100-40", "--scheme", "vdnn-conv-p,vdnn-all-p"]
    assert main([*arguments, "--json", "-"]) == 0
    content: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {name: one["nothing_to_do"] for name, one in content.items()} == {"vdnn-conv-p": NO_CONV, "vdnn-all-p": None}
    assert main([*arguments, "--memory-budget", "30GiB"]) == 0
    assert "fastest scheme that fits in 30GiB: vdnn-all-p" in capsys.readouterr().out


def test_a_sweep_has_it_as_a_column(tmp_path: Path) -> None:
    grid = {"network": ["gpt2"], "scheme": ["vdnn-conv-p"], "batch": [1], "machine": ["a100-40"]}
    [row] = buddysim.run_sweep(grid=grid, store=tmp_path, workers=1).rows()
    assert row["nothing_to_do"] == NO_CONV


def test_later_readers_are_a_reason_too() -> None:
    from buddysim.training.schemes.vdnn import nothing_to_offload

    reason = nothing_to_offload(load_network("alexnet"), "conv")
    assert reason == "nothing to offload: later layers read the inputs of all CONV layers"
