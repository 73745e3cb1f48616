"""vDNN's policies: offloaded feature maps, passes of the dynamic policy, and the memory that the paper reports."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.training import schemes
from buddysim.training.driver import simulate_outcome, simulate_plan
from buddysim.training.iteration.plan import TrainingOptions
from buddysim.training.named_network import load_network
from buddysim.training.networks.builder import NetworkBuilder
from buddysim.training.networks.graph import Network
from buddysim.training.outcome import IterationOutcome
from buddysim.training.schemes.vdnn import moved_inputs, offloaded
from tests.training.doubles import Cost, chain, machine
from tests.training.random_networks import costs, networks

MB = 1_000_000
GIB = 2**30
TITAN_X = 12 * GIB


def run(network: Network, scheme: str, cost: Cost, memory_bytes: int | None = None, **options) -> IterationOutcome:
    training_options = TrainingOptions(memory_bytes=memory_bytes, **options)
    plan = schemes.REGISTRY.find(scheme).plan(network, 1, machine(), cost, scheme, training_options)
    return simulate_plan(network, 1, machine(), cost, plan, training_options)


def vgg(batch: int, scheme: str, **options) -> IterationOutcome:
    """Simulate VGG on 12 GiB without workspace, so that memory needs no cost model."""
    network, cost, training_options = load_network("vgg19"), Cost(), TrainingOptions(memory_bytes=TITAN_X, **options)
    plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine(), cost, scheme, training_options)
    return simulate_plan(network, batch, machine(), cost, plan, training_options)


def test_policies_choose_layers_of_the_feature_extraction_part_that_do_not_run_in_place():
    network = chain("crpcrpf")
    assert offloaded(network, "none") == frozenset()
    assert offloaded(network, "conv") == {1, 4}
    assert offloaded(network, "all") == {1, 3, 4, 6}


@pytest.mark.parametrize(("residual", "by_conv"), [(False, True), (True, False)])
def test_a_map_is_offloaded_by_the_last_layer_that_reads_it(residual: bool, by_conv: bool):
    """The second CONV reads the feature map last; with a residual the sum does, which is no CONV."""
    net = NetworkBuilder("residual", (1, 8, 8), "tests", "a feature map that two layers read")
    net.add("conv", channels=4, kernel=3, pad=1)
    first = net.add("relu")
    second = net.add("conv", inputs=first, channels=4, kernel=3, pad=1)
    net.add("add", inputs=[second, first if residual else second])
    network = net.build()
    owner = network.buffer_of(1)
    assert (owner in moved_inputs(network, offloaded(network, "conv"))) == by_conv
    assert owner in moved_inputs(network, offloaded(network, "all"))


def test_vgg_128_peaks_where_the_paper_says():
    """The peak is 4.8 GB (Section V-A) if the prefetch doesn't overlap with the pooling layer; else 5.5."""
    published = vgg(128, "vdnn-all-m").feature_layers.usage
    assert published.peak_bytes / GIB == pytest.approx(5.45, abs=0.07)
    lean = vgg(128, "vdnn-all-m", prefetch="just-in-time").feature_layers.usage
    assert lean.peak_bytes / GIB == pytest.approx(4.8, rel=0.01)


@pytest.mark.parametrize("prefetch", ["vdnn", "just-in-time", "on-demand"])
def test_vgg_256_trains_with_all_and_offloads_16_gb(prefetch: str):
    out = vgg(256, "vdnn-all-m", prefetch=prefetch)
    assert out.fits
    assert out.offload_bytes / GIB == pytest.approx(16, rel=0.03)
    assert not vgg(256, "baseline-m").fits


def test_vgg_64_is_the_largest_batch_of_the_baseline_that_the_paper_trains():
    assert vgg(64, "baseline-m").fits
    short = vgg(128, "baseline-m")
    assert not short.fits
    assert short.failure is not None
    assert 0 < short.failure.shortfall_bytes < 0.03 * GIB  # at the edge


def hungry() -> tuple[Network, Cost]:
    network = chain("ccccc")
    return network, Cost(workspaces={f"conv{i}": 6 * MB for i in range(1, 6)})


def test_dyn_takes_the_first_configuration_that_fits():
    network, cost = hungry()
    taken = {}
    for megabytes in range(1, 16):
        out = run(network, "vdnn-dyn", cost, megabytes * 1_048_576)
        taken[megabytes] = (out.plan.notes[-1].partition(":")[0], out.fits)
        assert out.fits == run(network, "vdnn-all-m", cost, megabytes * 1_048_576).fits
    order = ["all(m)", "greedy all", "greedy conv", "all(p)", "conv(p)", "none(p)"]
    ranks = [order.index(what) for what, _ in taken.values()]
    assert ranks == sorted(ranks), taken
    assert taken[1] == ("all(m)", False)
    assert taken[15] == ("none(p)", True)
    assert {"greedy conv", "conv(p)"} <= {what for what, _ in taken.values()}


def test_dyn_downgrades_only_layers_that_exceed_the_pool():
    network, cost = hungry()
    cost.workspaces["conv3"] = 600 * MB
    out = run(network, "vdnn-dyn", cost, 20 * MB)
    assert out.plan.notes[-1] == "greedy conv: fits, 3 of 15 algorithms downgraded"
    algorithms = {layer: {a.name for a in of.values()} for layer, of in out.plan.algorithms.items()}
    assert algorithms == {i: {"implicit_gemm"} if i == 3 else {"fft"} for i in range(1, 6)}


def test_dyn_reports_a_network_that_cannot_be_trained():
    network, cost = hungry()
    out = run(network, "vdnn-dyn", cost, 2 * MB)
    assert not out.fits
    assert len(out.plan.notes) == 1
    assert out.plan.notes[0].startswith("all(m): out of GPU memory at conv1 forward by 896 B")


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_dyn_fits_wherever_all_m_does(data: st.DataObject):
    network = data.draw(networks())
    cost = data.draw(costs(network))
    memory_bytes = data.draw(st.integers(1, 120)) * 1024
    fits = run(network, "vdnn-all-m", cost, memory_bytes).fits
    assert run(network, "vdnn-dyn", cost, memory_bytes).fits == fits


def test_every_policy_runs_on_a_real_machine():
    for scheme in ("baseline-p", "oracle", "vdnn-none-p", "vdnn-all-p", "vdnn-conv-m", "vdnn-dyn"):
        out = simulate_outcome("alexnet", 64, "titan-x", scheme)
        assert out.fits
        assert 0 < out.all_layers.performance_vs_oracle <= 1
        assert out.feature_layers.time_ps < out.all_layers.time_ps
    assert simulate_outcome("alexnet", 64, "titan-x", "oracle").all_layers.performance_vs_oracle == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme": "vdnn-al-m"}, "training scheme 'vdnn-al-m': unknown, expected one of the "),
        ({"link": "pcie33"}, "link 'pcie33': expected one of pcie3"),
        ({"link": "pcie33", "scheme": "vdnn-dyn"}, "link 'pcie33': expected one of pcie3"),
        ({"prefetch": "later"}, "prefetch 'later': expected one of vdnn, just-in-time, on-demand"),
        ({"pool_policy": "worst-fit"}, "pool_policy 'worst-fit': expected one of best-fit, first-fit"),
        ({"prefech": "vdnn"}, "option 'prefech': expected one of"),
        ({"batch": 0}, "batch 0: expected 1 to 1048576"),
        ({"batch": 10**12}, "batch 1000000000000: expected 1 to 1048576"),
        ({"memory_bytes": 0}, "memory of 0 bytes: expected 1 or more"),
    ],
)
def test_wrong_input_is_an_error_of_one_line(options: dict, message: str):
    batch, scheme = options.pop("batch", 8), options.pop("scheme", "vdnn-all-m")
    with pytest.raises(BuddysimError) as refused:
        simulate_outcome("alexnet", batch, "titan-x", scheme, **options)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
