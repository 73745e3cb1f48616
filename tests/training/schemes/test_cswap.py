"""CSWAP's schemes: the advisor by hand, laws on random networks, decisions against simulated iterations."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.compress import lz4
from buddysim.gpu_codecs import REGISTRY
from buddysim.sweep.engines.training import identity
from buddysim.training import schemes, simulate
from buddysim.training.driver import simulate_plan
from buddysim.training.networks.graph import Layer, Network
from buddysim.training.outcome import IterationOutcome
from buddysim.training.request import make_options
from buddysim.training.schemes import _advisor, cswap
from buddysim.training.schemes._advisor import HidingTime
from tests.training.doubles import MS, Cost, Link, chain, machine
from tests.training.random_networks import costs, networks

GB = 10**9
needs_lz4 = pytest.mark.skipif(not lz4.available(), reason="the LZ4 library is not installed")
LINK: Any = Link(offload_bytes_per_s=10 * GB, prefetch_bytes_per_s=5 * GB)


def run(network: Network, cost: Any, scheme: str, link: Any = LINK, **extra: Any) -> IterationOutcome:
    options, on = make_options(**extra), machine(link=link)
    plan = schemes.REGISTRY.find(scheme).plan(network, 1, on, cost, scheme, options)  # type: ignore[arg-type]
    return simulate_plan(network, 1, on, cost, plan, options)  # type: ignore[arg-type]


def test_the_advisor_by_hand() -> None:
    # 10 MB, 60 % zeros: out 1 ms for 0.4, back 2 ms for 0.8; hidden are 0.5 out, 1.5 back.
    hidden = HidingTime(MS // 2, 3 * MS // 2)
    advice = _advisor.paper_advice(10_000_000, 0.6, 0.9 * MS, hidden, LINK)
    assert advice.plain_ps == MS  # 0.5 of the way out, 0.5 of the way back
    assert advice.compressed_ps == pytest.approx(0.9 * MS)  # nothing but the codec: both copies are hidden
    assert advice.compress
    assert not _advisor.paper_advice(10_000_000, 0.6, 1.1 * MS, hidden, LINK).compress
    # Stored bytes with a mask, and the link's latency.
    late: Any = replace(LINK, latency_ps=7)
    exact = _advisor.exact_advice(10_000_000, 4_312_500, 0, HidingTime(0, 0), late)
    assert exact.compressed_ps == 431_250_000 + 862_500_000 + 2 * 7
    assert exact.plain_ps == 3 * MS + 2 * 7


def test_hiding_times_are_those_of_the_uncompressed_iteration() -> None:
    network = chain("crcrcr", elements=2_500_000)
    times = {("conv3", "forward"): 3, ("conv5", "forward"): 5}
    times |= {(f"conv{n}", f"backward_{which}"): n * 10 for n in (3, 5) for which in ("data", "filter")}
    cost: Any = Cost(times, 1)
    on: Any = machine()
    plan = schemes.REGISTRY.find("vdnn-conv-p").plan(network, 1, on, cost, "vdnn-conv-p", make_options())
    hiding = _advisor.measure_hiding_times(network, 1, cost, plan, LINK)
    # X of conv3 (made by conv1 and relu2) is copied during conv3, and comes back during conv5, before it in backward
    # order; X of conv5 has relu6 before it.
    assert hiding[1] == HidingTime(3, 100)
    assert hiding[3] == HidingTime(5, 1)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), networks(), st.integers(0, 100))
def test_laws(data: st.DataObject, network: Network, percent: int) -> None:
    cost = data.draw(costs(network))
    link = Link(*data.draw(st.tuples(st.integers(10**5, 10**9), st.integers(10**5, 10**9))))
    given_density = {"synthetic_density": percent / 100}
    plain = run(network, cost, "vdnn-conv-p", link)
    free = run(network, cost, "cswap-oracle", link, **given_density)
    for scheme, outcome in (("cswap", run(network, cost, "cswap", link, **given_density)), ("free", free)):
        program = outcome.program
        coded = {owner for owner, stash in outcome.plan.stash.items() if stash.encoding is not None}
        stored = sum(stash.encoding.byte_count for stash in outcome.plan.stash.values() if stash.encoding is not None)
        moved = {task.layer: task for task in program.tasks if task.stream == "offload"}
        # Bytes over the link are the bytes stored.
        encoded_owners = {
            owner for owner in coded if any(s.layer == owner and s.pass_ == "encode" for s in program.steps)
        }
        sizes = {owner: outcome.plan.stash[owner].encoding.byte_count for owner in encoded_owners}  # type: ignore[union-attr]
        for owner, size in sizes.items():
            assert program.tasks[moved[network.last_consumer(owner)].number].moved_bytes == size
        assert stored >= sum(sizes.values())
        # No tensor is read before it is decoded.
        decoded = {s.layer: s.index for s in program.steps if s.pass_ == "decode"}
        assert set(decoded) == encoded_owners
        for step in program.steps[program.first_backward :]:
            for tensor in (program.tensors[number] for number in step.reads):
                if tensor.layer in encoded_owners and tensor.kind == "decoded_maps":
                    assert step.index > decoded[tensor.layer]
                assert not (tensor.layer in encoded_owners and tensor.kind == "feature_maps")
        if scheme == "cswap" and not coded:
            assert outcome.time_ps == plain.time_ps
            assert program == plain.program
    assert free.time_ps <= plain.time_ps


def flipped(network: Network, cost: Any, link: Any, options: Any) -> tuple[list[cswap.CodecDecision], list[int]]:
    """Return the decisions, and how much longer the iteration takes when each is flipped."""
    on: Any = machine(link=link)
    setting = cswap.AdvisorInputs(network, 1, on, cost, options)
    taken = cswap.decisions(setting, "cswap")

    def time_ps(selected: list[cswap.CodecDecision]) -> int:
        plan = cswap.plan_of(setting, "cswap", selected)
        return simulate_plan(network, 1, on, cost, plan, options).time_ps

    here = time_ps(taken)
    flips = [[replace(o, compress=o.compress != (o is one)) for o in taken] for one in taken]
    return taken, [time_ps(flip) - here for flip in flips]


@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from(["crcrcrcr", "crcrpcrcrp", "crpcrpcrpf", "crcrcff"]), st.integers(5, 95))
def test_on_serial_chains_every_exact_decision_is_that_of_the_simulation(
    data: st.DataObject, kinds: str, percent: int
) -> None:
    network = chain(kinds, elements=2_500_000)
    times = {
        (layer.name, pass_): data.draw(st.integers(0, 3 * MS // 2))
        for layer in network.layers[1:]
        for pass_ in ("forward", "backward", "backward_data", "backward_filter")
    }
    link = Link(5 * GB, 4 * GB, 10_000_000)
    grid = data.draw(st.sampled_from([16, 20, 24]))
    options = make_options(
        cswap_advisor="exact", synthetic_density=percent / 100, codec_kernels="chunked", codec_grid=grid
    )
    taken, worse = flipped(network, Cost(times), link, options)
    assert taken
    assert all(amount >= 0 for amount in worse), [(one.layer.name, one.compress) for one in taken]


def test_decisions_depend_on_what_is_hidden() -> None:
    network = chain("crcrcr", elements=25_000_000)
    on: Any = machine(link=LINK)
    for hidden_ps, compress in ((1, True), (10**12, False)):
        cost: Any = Cost({}, hidden_ps)
        taken = cswap.decisions(cswap.AdvisorInputs(network, 1, on, cost, make_options(synthetic_density=0.5)), "cswap")
        assert [one.compress for one in taken] == [compress] * len(taken)
        assert taken


def test_vdnnpp_keeps_the_link_busy_and_the_host_too() -> None:
    network, cost = chain("crcrcr", elements=25_000_000), Cost({}, 1)
    plain = run(network, cost, "vdnn-conv-p")
    sparse = run(network, cost, "vdnnpp", synthetic_density=0.3)
    dense = run(network, cost, "vdnnpp", synthetic_density=0.5)  # not above 60 % zeros
    assert dense.time_ps == plain.time_ps
    assert sparse.moved_bytes == plain.moved_bytes
    assert sparse.pinned_bytes < plain.pinned_bytes
    # Two feature maps of 100 MB, both ways, at 64 x 0.05 GB/s.
    assert sparse.host_ps == 4 * 31_250_000_000
    assert sparse.time_ps == plain.time_ps + sparse.host_ps
    assert run(network, cost, "vdnnpp", synthetic_density=0.3, host_codec_rate=0.1).host_ps == sparse.host_ps // 2


def test_codec_times_of_the_paper() -> None:
    settings: dict[str, Any] = {"machine": "v100", "link": "pcie3-measured", "codec_times": "paper"}
    simulated = simulate("vgg16", 32, scheme="cswap-static", **{**settings, "codec_times": "simulated"})
    slow = simulate("vgg16", 32, scheme="cswap-static", **settings)
    slower = simulate("vgg16", 32, scheme="cswap-static", codec_grid=1024, **settings)
    assert simulated.counters["time_ms"] < slow.counters["time_ms"] < slower.counters["time_ms"]
    assert "three points" in slow.provenance["assumptions"]["codec times"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"codec_grid": 0}, "grid 0: out of range: expected 1 to 4096 work-groups"),
        ({"codec_grid": 5000}, "grid 5000: out of range: expected 1 to 4096 work-groups"),
        ({"codec_block": 32}, "block 32: unknown: expected 64 or 128 work-items"),
        ({"codec_kernels": "colaesced"}, "codec_kernels 'colaesced': expected one of coalesced, chunked"),
        ({"codec": "zvv"}, "GPU codec 'zvv'"),
        ({"codec_times": "measured"}, "codec_times 'measured': expected simulated or paper"),
        ({"cswap_advisor": "perfect"}, "cswap_advisor 'perfect': expected paper or exact"),
        ({"synthetic_density": 1.2}, "density 1.2: expected a number from 0 to 1"),
    ],
)
def test_wrong_option_is_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BuddysimError, match=message):
        simulate("alexnet", 8, machine="v100", scheme="cswap", **options)


def test_density_table_of_another_network(tmp_path: Path) -> None:
    path = tmp_path / "densities.csv"
    path.write_text("layer,density\nrelu1_1,0.5\n")
    with pytest.raises(BuddysimError, match=r"line 2: layer 'relu1_1': alexnet has none \(nearest: relu1\)"):
        simulate("alexnet", 8, machine="v100", scheme="cswap", density_table=str(path))


def test_out_of_memory_for_an_encoding() -> None:
    """X of conv3 (10 MB, no zeros) leaves no free memory for its encoding during the forward pass."""
    layers = [
        Layer(0, "input", "input", (), (1,)),
        Layer(1, "conv1", "conv", (0,), (2_500_000,), backward_reads=frozenset({"x", "dy"})),
        Layer(2, "relu2", "relu", (1,), (2_500_000,), in_place=True, backward_reads=frozenset({"y", "dy"})),
        Layer(3, "conv3", "conv", (2,), (1,), backward_reads=frozenset({"x", "dy"})),
    ]
    options, on = make_options(synthetic_density=0.99), machine(memory_bytes=15_000_000, link=LINK)
    cost: Any = Cost({}, 1)
    plan = cswap.plan(Network("wide", layers), 1, on, cost, "cswap-static", options)  # type: ignore[arg-type]
    outcome = simulate_plan(Network("wide", layers), 1, on, cost, plan, options)  # type: ignore[arg-type]
    assert not outcome.fits
    assert outcome.out_of_memory.message.startswith(
        "conv1 encode: 9.7 MiB requested (encoded feature maps), largest free block 4.8 MiB"
    )


@needs_lz4
@pytest.mark.parametrize("rule", ["paper", "exact"])
def test_auto_selects_the_codec_with_the_lowest_cost(rule: str) -> None:
    network, on = chain("crcrpcrcr", elements=25_000_000), machine(link=LINK)
    cost: Any = Cost({}, 1)

    def decided(codec: str, **more: Any) -> list[cswap.CodecDecision]:
        options = make_options(synthetic_density=0.4, codec=codec, cswap_advisor=rule, **more)
        return cswap.decisions(cswap.AdvisorInputs(network, 1, on, cost, options), "cswap")  # type: ignore[arg-type]

    alone = {codec: decided(codec) for codec in REGISTRY.names()}
    selected = decided("auto")
    assert len(selected) == len(alone["zvc"]) > 2
    for number, one in enumerate(selected):
        costs = {codec: taken[number].advice.compressed_ps for codec, taken in alone.items()}
        assert one.advice.compressed_ps == min(costs.values())
        assert one.codec == min(costs, key=lambda codec: costs[codec])
        assert one == replace(alone[one.codec][number])
    # Codes of other windows are other codecs' business: LZ4's are its kernels' 64 KB.
    assert {one.codec for one in decided("auto", codec_kernels="chunked")} <= {"csr", "rle", "zvc"}


def test_auto_without_the_lz4_library_uses_the_other_codecs_and_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "lz4.block", None)
    result = simulate("alexnet", 8, machine="v100", scheme="cswap", codec="auto", synthetic_density=0.9)
    (note,) = [note for note in result.provenance["decisions"] if note.startswith("compressed: ")]
    assert "zvc (" in note
    assert "lz4" not in note
    times = result.provenance["assumptions"]["codec times"]
    assert times.endswith(" Without lz4 (not installed: pip install 'buddysim[lz4]').")
    with pytest.raises(BuddysimError, match=r"lz4: needs the LZ4 library: pip install 'buddysim\[lz4\]'"):
        simulate("alexnet", 8, machine="v100", scheme="cswap", codec="lz4", synthetic_density=0.9)


def test_stored_result_of_auto_depends_on_the_installed_codecs(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"network": "alexnet", "scheme": "cswap", "codec": "auto"}
    monkeypatch.setattr(lz4, "available", lambda: True)
    installed = identity(settings)
    monkeypatch.setattr(lz4, "available", lambda: False)
    assert identity(settings)["codec"] != installed["codec"]
    assert identity({**settings, "codec": "zvc"})["codec"] != installed["codec"]


@needs_lz4
def test_auto_reports_its_codecs() -> None:
    result = simulate("alexnet", 8, machine="v100", scheme="cswap-oracle", codec="auto", synthetic_density=0.9)
    (note,) = [note for note in result.provenance["decisions"] if note.startswith("compressed: ")]
    # Free of charge the smallest code is best: a mask costs 1 bit in 32, an index as much as the word.
    assert "csr (0)" in note
    assert note.endswith("relu3 zvc, relu4 zvc")
