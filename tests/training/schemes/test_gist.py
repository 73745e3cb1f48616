"""Gist's schemes: encodings of feature maps, their sizes, footprints and times by hand, and laws."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.gist import binarize, dpr, ssdc
from buddysim.gist.formats import FORMATS
from buddysim.papers.gist.transformer_accuracy import CONDITIONS
from buddysim.training import Network, NetworkBuilder, schemes, simulate
from buddysim.training.contents import MapContents
from buddysim.training.driver import simulate_outcome, simulate_plan
from buddysim.training.iteration import memory_usage
from buddysim.training.iteration.allocators import LiveSetCounter
from buddysim.training.iteration.program import ProgramTensor, Step
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Layer
from buddysim.training.outcome import IterationOutcome
from buddysim.training.request import make_options
from buddysim.training.schemes import gist
from buddysim.training.schemes._gist_accuracy import results
from buddysim.training.schemes._gist_maps import categories, views
from tests.training.doubles import Cost, Link, machine
from tests.training.networks.recorded.small_model import BATCH, recorded
from tests.training.random_networks import costs, networks


def small() -> Network:
    """Return a network: conv 8x16x16, relu, pool 2x2, conv, relu, conv, relu, pool 5x5 stride 3, conv."""
    net = NetworkBuilder("small", (3, 16, 16), "tests", "CONV, ReLU and pooling layers")
    net.add("conv", channels=8, kernel=3, pad=1)
    net.add("relu", name="relu-pool")
    net.add("maxpool", name="pool-conv", kernel=2)
    net.add("conv", channels=8, kernel=3, pad=1)
    net.add("relu", name="relu-conv")
    net.add("conv", channels=8, kernel=3, pad=1)
    net.add("relu", name="relu-large")
    net.add("maxpool", name="pool-large", kernel=5, stride=3)
    net.add("conv", channels=8, kernel=1)
    net.add("fc", features=10)
    net.add("softmax")
    return net.build()


def stashes(scheme: str, density: float = 0.25, batch: int = 4, **options: object) -> dict[str, tuple[int, bool]]:
    """Return the bytes of each encoded feature map by its layer's name, and whether it is decoded."""
    network, cost = small(), Cost()
    contents = {layer.index: MapContents(density, density, "") for layer in network.layers}
    plan = gist.encoded_plan(network, batch, machine(), cost, scheme, make_options(**options), contents)
    inside = network.in_place_only(plan.in_place)
    return {
        network.layers[inside.last_writer(owner)].name: (stash.encoding.byte_count, stash.decode_before_use)
        for owner, stash in plan.stash.items()
        if stash.encoding is not None
    }


def test_encoding_follows_from_the_layers_around_a_feature_map() -> None:
    large, middle = 4 * 8 * 256, 4 * 8 * 64  # elements
    sparse = 5 * middle // 4 + 4 * middle // 256
    assert stashes("gist-binarize") == {"relu-pool": (large // 8, False)}
    assert stashes("gist-ssdc") == {
        "pool-conv": (sparse, True), "relu-conv": (sparse, True), "pool-large": (5 * 32 + 4, True),
    }  # fmt: skip
    lossless = stashes("gist-lossless")
    assert lossless == {**stashes("gist-binarize"), **stashes("gist-ssdc")}
    lossy = stashes("gist-fp8")
    assert lossy["relu-pool"] == (large // 8, False)  # a bit is control, not data
    assert lossy["relu-conv"] == (2 * middle // 4 + 4 * middle // 256, True)
    assert lossy["relu-large"] == (middle, True)  # windows of 25 elements have no indices of 4 bits
    assert stashes("gist-fp8", density=0.6)["relu-conv"] == (middle, True)  # the dense code is smaller
    assert "relu-conv" not in stashes("gist-ssdc", density=0.9)  # larger than the feature map
    assert not any(decoded for _, decoded in stashes("gist-fp16", decoded_copies=False).values())
    assert stashes("gist-base") == stashes("gist-inplace") == {}


def test_pools_behind_binarized_maps_store_indices() -> None:
    network = small()
    plan = gist.encoded_plan(network, 4, machine(), Cost(), "gist-binarize", make_options(), {})
    (pool,) = plan.backward_reads
    assert network.layers[pool].name == "pool-conv"
    assert plan.backward_reads[pool] == {"mask", "dy"}
    assert plan.saved_bytes == {pool: 4 * 8 * 64 // 2}
    out = simulate_plan(network, 4, machine(), Cost(), plan, make_options())
    backward = {step.layer: step for step in out.program.steps if step.pass_ == "backward"}
    kinds = {out.program.tensors[tensor].part for tensor in backward[pool].reads}
    assert kinds == {"features"}
    assert sorted(out.program.tensors[tensor].byte_count for tensor in backward[pool].reads) == [1024, 4 * 4 * 8 * 64]


def test_categories_follow_the_layers_around_a_map() -> None:
    network = small()
    category_by_owner = categories(network.in_place_only(views(network)))
    by_name = {network.layers[owner].name: category for owner, category in category_by_owner.items()}
    assert {name: by_name[name] for name in ("relu-pool", "pool-conv", "relu-conv", "relu-large", "pool-large")} == {
        "relu-pool": "relu-pool", "pool-conv": "relu-conv", "relu-conv": "relu-conv",
        "relu-large": "others", "pool-large": "relu-conv",
    }  # fmt: skip
    assert category_by_owner[0] == "others"  # the image, without its mean
    assert 0 not in categories(load_network("gpt2"))  # tokens


@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([None, *FORMATS]))
@settings(max_examples=60, deadline=None)
def test_bytes_are_those_of_the_real_encodings(elements: int, density: float, name: str | None) -> None:
    """A CONV layer's ReLU output of one sample is encoded, and has the predicted size."""
    n_nonzero = round(density * elements)
    values = np.zeros(elements, np.float32)
    values[:n_nonzero] = 1
    np.random.default_rng(elements).shuffle(values)
    layers = [
        Layer(0, "input", "input", (), (1,)),
        Layer(1, "conv1", "conv", (0,), (elements,), backward_reads=frozenset({"x", "dy"})),
        Layer(2, "relu", "relu", (1,), (elements,), in_place=True, backward_reads=frozenset({"y", "dy"})),
        Layer(3, "conv2", "conv", (2,), (1,), backward_reads=frozenset({"x", "dy"})),
    ]
    network, scheme = Network("one", layers), "gist-lossless" if name is None else f"gist-{name}"
    contents = dict.fromkeys(range(4), MapContents(density, density, ""))
    plan = gist.encoded_plan(network, 1, machine(), Cost(), scheme, make_options(), contents)
    rows = ssdc.encode(values)
    sizes = [rows.nbytes]
    if name is not None:
        sizes = [len(dpr.encode(values, name)), rows.nbytes - rows.values.nbytes + len(dpr.encode(rows.values, name))]
    smallest = min(sizes)
    code = plan.stash[1].encoding.byte_count if 1 in plan.stash and plan.stash[1].encoding else None
    assert code == (smallest if smallest < values.nbytes else None)
    assert gist.mask_bytes(elements) == len(binarize.encode(values))


def test_kernels_take_the_time_of_their_bytes() -> None:
    """Times are bytes at 336 GB/s; Binarize writes bits alone, and SSDC reads the feature map twice."""
    network = small()
    contents = {layer.index: MapContents(0.25, 0.25, "") for layer in network.layers}
    plan = gist.encoded_plan(network, 4, machine(), Cost(), "gist-lossless", make_options(), contents)
    by_name = {network.layers[network.last_writer(owner)].name: stash.encoding for owner, stash in plan.stash.items()}
    raw, code = 4 * 4 * 8 * 64, by_name["relu-conv"]
    assert code is not None
    assert (code.encode_ps, code.decode_ps) == tuple(
        -(-moved * 10**12 // (336 * 10**9)) for moved in (2 * raw + code.byte_count, code.byte_count + raw)
    )
    bits = by_name["relu-pool"]
    assert bits is not None
    assert (bits.encode_ps, bits.decode_ps) == (-(-bits.byte_count * 10**12 // (336 * 10**9)), 0)


def test_binarize_is_faster_than_its_baseline_and_in_place_as_fast() -> None:
    names = ("gist-base", "gist-binarize", "gist-inplace", "gist-ssdc", "gist-ssdc-binarize")
    times = {name: simulate("vgg16", 16, "titan-x", name).counters["time_ms"] for name in names}
    assert times["gist-binarize"] < times["gist-base"]
    assert times["gist-inplace"] == times["gist-base"]
    assert times["gist-ssdc"] > times["gist-base"]
    assert times["gist-ssdc"] > times["gist-ssdc-binarize"]


def outcome(
    network: Network, scheme: str, batch: int = 1, cost: Cost | None = None, **options: object
) -> IterationOutcome:
    training_options, cost = make_options(**options), cost or Cost()
    plan = schemes.REGISTRY.find(scheme).plan(network, batch, machine(link=Link()), cost, scheme, training_options)
    return simulate_plan(network, batch, machine(link=Link()), cost, plan, training_options)


def pools_shrink(network: Network) -> bool:
    """Say whether no max pooling has more outputs than inputs: four bits of each output replace its whole input."""
    pools = [layer for layer in network.layers if layer.kind == "maxpool"]
    return all(network.output_bytes(pool.inputs[0], 1) >= network.output_bytes(pool.index, 1) for pool in pools)


def check_dynamic_footprint(data: st.DataObject) -> None:
    scheme = data.draw(st.sampled_from([name for name in gist.ENCODINGS if name != "gist-base"]))
    network = data.draw(networks().filter(pools_shrink))
    cost = data.draw(costs(network))
    density = data.draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    options = {"gist_allocator": "dynamic", "decoded_copies": False, "synthetic_density": density}
    base = outcome(network, "gist-base", cost=cost, gist_allocator="dynamic")
    encoded = outcome(network, scheme, cost=cost, **options)
    if encoded.footprint_bytes > base.footprint_bytes:
        step, excess = peak(encoded)
        assert step.pass_ == "encode"
        before = encoded.program.steps[: encoded.program.steps.index(step)]
        forward = next(done.layer for done in reversed(before) if done.pass_ == "forward")
        held = map_bytes(base)[[done.layer for done in base.program.steps].index(forward)]
        code = encoded.plan.stash[step.layer].encoding
        assert code is not None
        assert excess <= held + code.byte_count


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_without_decoded_copies_encodings_add_no_more_than_one_code(data: st.DataObject) -> None:
    check_dynamic_footprint(data)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=400, deadline=None)
def test_without_decoded_copies_encodings_of_many_add_no_more_than_one_code(data: st.DataObject) -> None:
    check_dynamic_footprint(data)


def map_bytes(out: IterationOutcome) -> Sequence[int]:
    """Return the bytes of the feature maps, encoded ones and gradients in each step."""
    held = memory_usage.levels(out.program)
    maps = {kind: held[kind] for kind in held if memory_usage.is_map_tensor(ProgramTensor(0, 0, kind, 0, "features"))}
    return memory_usage.totals(maps)


def peak(out: IterationOutcome) -> tuple[Step, int]:
    """Return the step at which feature maps take most, and what they take then.

    An encoding may increase the footprint in one way alone: while it is made, it lies next to the feature map that it
    replaces, and another feature map that is read later still is whole then.
    """
    in_step = map_bytes(out)
    return out.program.steps[in_step.index(max(in_step))], max(in_step)


@pytest.mark.parametrize(
    "name", ["alexnet", "nin", "overfeat", "vgg16", pytest.param("inception-v3", marks=pytest.mark.slow)]
)
def test_encodings_without_decoded_copies_never_increase_a_zoo_network(name: str) -> None:
    """The paper's networks never take more memory, with any encoding."""
    footprints = {
        scheme: outcome(
            load_network(name), scheme, gist_allocator="dynamic", decoded_copies=False, synthetic_density=0.62
        ).footprint_bytes
        for scheme in gist.ENCODINGS
    }
    assert max(footprints.values()) == footprints["gist-base"]
    assert footprints["gist-dpr-fp8"] < footprints["gist-dpr-fp16"] < footprints["gist-base"]


@given(st.data(), st.sampled_from(list(gist.ENCODINGS)))
@settings(max_examples=60, deadline=None)
def test_encodings_are_smaller_than_their_feature_maps_and_give_the_footprint_ratio(
    data: st.DataObject, scheme: str
) -> None:
    network = data.draw(networks())
    allocator = data.draw(st.sampled_from(list(gist.ALLOCATORS)))
    out = outcome(network, scheme, synthetic_density=0.4, gist_allocator=allocator)
    for owner, stash in out.plan.stash.items():
        assert stash.encoding is not None
        assert stash.encoding.byte_count < out.network.output_bytes(owner, 1)
    against = "investigation" if allocator == "investigation" else "static"
    base = outcome(network, "gist-base", gist_allocator=against)
    if out.footprint_bytes:
        assert out.footprint_ratio == base.footprint_bytes / out.footprint_bytes


def test_encodings_with_decoded_copies_may_increase_the_footprint() -> None:
    """For AlexNet with separate groups, SSDC saves less than the decoded copies add.

    The copies are consumed immediately. Without them, encodings never cost memory.
    """
    footprints = {
        decoded: simulate_outcome(
            "alexnet",
            16,
            "titan-x",
            "gist-ssdc",
            synthetic_density=0.38,
            gist_allocator="investigation",
            decoded_copies=decoded,
        ).footprint_bytes
        for decoded in (True, False)
    }
    base = simulate_outcome("alexnet", 16, "titan-x", "gist-base", gist_allocator="investigation").footprint_bytes
    assert footprints[False] < base < footprints[True]


def test_footprints_leave_out_weights_and_workspace() -> None:
    out = simulate_outcome("vgg16", 4, "titan-x", "gist-base", gist_allocator="dynamic")
    assert out.footprint_bytes == out.placement.high_water - 2 * out.network.parameter_bytes()
    assert out.plan.allocator == LiveSetCounter()


def test_formats_apply_to_the_image() -> None:
    """In a CONV layer of one channel, the image takes most memory, and lives until the backward step."""
    net = NetworkBuilder("one", (3, 64, 64), "tests", "one CONV layer")
    net.add("conv", channels=1, kernel=3, pad=1)
    net.add("fc", features=10)
    network, image = net.build(), 2 * 3 * 64 * 64
    base, coded = (
        outcome(network, name, batch=2, gist_allocator="investigation") for name in ("gist-base", "gist-dpr-fp8")
    )
    assert (base.stashed_bytes, coded.stashed_bytes) == (4 * image + 4 * image // 3, image + image // 3)
    assert outcome(network, "gist-lossless", batch=2, synthetic_density=0.5).plan.stash == {}  # it has no zeros


def test_out_of_memory_for_a_decoded_copy_names_it() -> None:
    """Memory has a decoded feature map for its own ReLU, and its gradient, when another one is decoded."""
    net = NetworkBuilder("branches", (1, 64, 64), "tests", "two branches of unlike lengths")
    net.add("conv", channels=16, kernel=3, pad=1)
    first = net.add("relu")
    net.add("conv", inputs=first, channels=16, kernel=3, pad=1)
    net.add("relu", name="second")
    long = net.add("conv", channels=1, kernel=3, pad=1)
    short = net.add("conv", inputs=first, channels=1, kernel=3, pad=1)
    net.add("add", inputs=[long, short])
    options = {"gist_allocator": "dynamic", "synthetic_density": 0.3}
    fits = simulate_outcome(net.build(), 64, "titan-x", "gist-lossless", **options)
    copy = 64 * 16 * 64 * 64 * 4
    short_of = simulate_outcome(
        net.build(), 64, "titan-x", "gist-lossless", memory_bytes=fits.placement.high_water - copy, **options
    )
    assert fits.fits
    assert short_of.failure is not None
    assert (short_of.failure.kind, short_of.failure.requested_bytes) == ("decoded_maps", copy)
    assert short_of.out_of_memory.message.startswith(
        "conv3 decode: 16.0 MiB requested (decoded feature maps), largest free block "
    )


def test_wrong_option_is_an_error() -> None:
    with pytest.raises(BuddysimError, match="gist_allocator 'dinamic': expected one of static, dynamic, investigation"):
        simulate("alexnet", 4, "titan-x", "gist-fp8", gist_allocator="dinamic")
    with pytest.raises(BuddysimError, match=r"training scheme 'gist-fp9'.*gist-fp8"):
        simulate("alexnet", 4, "titan-x", "gist-fp9")


def test_schemes_report_their_effect_on_accuracy() -> None:
    """Only formats change the accuracy, by a measured amount; a plug-in without a statement counts as unknown."""
    changing = {name for name in schemes.REGISTRY.names() if schemes.accuracy(name) != schemes.UNCHANGED}
    formats = {name for name, encodings in gist.ENCODINGS.items() if encodings.format is not None}
    assert changing == formats | {"offload-optimizer-delayed", "plan"}  # not measured
    assert re.fullmatch(r"[+-]\d\.\d \+- \d\.\d points, small network", schemes.accuracy("gist-fp8"))
    assert simulate("alexnet-cifar10", 4, "titan-x", "vdnn-dyn").provenance["accuracy"] == "unchanged (lossless)"


def test_formats_on_models_have_the_accuracy_of_a_transformer() -> None:
    """Five paired seeds for each format; what a CNN lost is said of the papers' networks alone."""
    assert re.fullmatch(r"[+-]\d\.\d \+- \d\.\d points, small transformer", schemes.accuracy("gist-fp8", recorded=True))
    assert schemes.accuracy("gist-lossless", recorded=True) == schemes.UNCHANGED
    made = results("transformer")
    assert {name: len(runs) for name, runs in made["runs"].items()} == dict.fromkeys(CONDITIONS, 5)
    assert all(run["rounded"] > 0.9 for name, runs in made["runs"].items() if name != "fp32" for run in runs.values())
    result = simulate(recorded(2), BATCH, "h100-sxm", "gist-fp8", optimizer="none")
    assert result.provenance["accuracy"].endswith("small transformer")
    assert made["network"] in result.provenance["assumptions"]["accuracy"]


def test_half_precision_feature_maps_are_encoded() -> None:
    result = simulate("alexnet", 4, "v100", "gist-fp16", precision="fp16")
    assert result.counters["memory.footprint_ratio"] > 1
