"""The networks that the Gist paper trains, and the choices for them (reported.toml).

Three choices follow the sources of CNTK (`microsoft/CNTK`, examples and ``Source/ComputationNetworkLib`` of 2016 to
2018):

- The input image counts as a feature map and is encoded as one (`buddysim.training.schemes._gist_maps`): networks
  subtract a mean in a layer of their own, whose output CNTK's allocator holds throughout.
- "Inception" is Inception v3. The paper cites GoogLeNet alone, but has it among networks of "hundreds of convolution
  layers" (II), and trains it in CNTK, whose examples have v3; v3 is also what its authors' benchmark suite (TBD, its
  reference 51) trains in CNTK. `bn-inception`, which was selected first, takes less than half of v3's memory and fits
  256 samples, where the paper's fits 64: that number chose the network, and is no test.
- What fits is decided as CNTK would: its learner keeps a momentum for every weight (``SGD.cpp``, smoothedGradients),
  the reader's copy of the images is stored next to the one without its mean, and CUDA offers less than 12 GiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from buddysim.machine.training import TrainingMachine
from buddysim.sweep.cached_results import SavedResults
from buddysim.training import Network, schemes
from buddysim.training.contents import MapContents
from buddysim.training.cost import CostModel
from buddysim.training.driver import simulate_plan
from buddysim.training.named_network import load_network
from buddysim.training.outcome import IterationOutcome
from buddysim.training.request import make_options
from buddysim.training.schemes import gist

#: Network of the zoo by the paper's name (Sec. V-A); ResNet is in Fig. 16 only.
NETWORKS = {
    "AlexNet": "alexnet",
    "NiN": "nin",
    "OverFeat": "overfeat",
    "VGG16": "vgg16",
    "Inception": "inception-v3",
}
#: The smallest formats without a loss of accuracy (Fig. 12); NiN's isn't reported.
FORMATS = {"AlexNet": "fp8", "NiN": "fp8", "OverFeat": "fp8", "VGG16": "fp16", "Inception": "fp10"}
MACHINE, LIBRARY, BATCH, OPTIMIZER = "titan-x", "cudnn5", 64, "momentum"
#: What CUDA reports of a GTX Titan X as its memory (totalGlobalMem, e.g. in issue 1294 of NVIDIA/DIGITS), in bytes; an
#: empty context leaves 11.81 GiB of these 11.92 (TensorFlow's logs).
OFFERED = 12_799_574_016
#: Density of every ReLU and pooled feature map that SSDC encodes: 62 % zeros, the
#: average of the cDMA paper's networks (cDMA IV-B).
DENSITY = 0.38
SWEPT = (0.28, 0.48)
GIB = 2**30


def lossy(label: str) -> str:
    """The scheme with the network's smallest format."""
    return f"gist-{FORMATS[label]}"


@cache
def network(label: str) -> Network:
    """The network of that name."""
    return load_network(NETWORKS[label])


@cache
def run(
    label: str, scheme: str, allocator: str = "static", decoded: bool = True, density: float = DENSITY
) -> IterationOutcome:
    """One iteration of a network of the paper.

    Parameters
    ----------
    allocator, decoded : of Gist's schemes (`buddysim.training.schemes.gist`)
    density : density of every feature map that SSDC encodes
    """
    machine, cost = setting()
    zoo_network = network(label)
    if scheme not in gist.ENCODINGS:
        options = make_options(conv_library=LIBRARY)
        plan = schemes.REGISTRY.find(scheme).plan(zoo_network, BATCH, machine, cost, scheme, options)
    else:
        options = make_options(conv_library=LIBRARY, gist_allocator=allocator, decoded_copies=decoded)
        plan = gist.encoded_plan(zoo_network, BATCH, machine, cost, scheme, options, contents(zoo_network, density))
    return simulate_plan(zoo_network, BATCH, machine, cost, plan, options)


@cache
def setting() -> tuple[TrainingMachine, CostModel]:
    """The machine and its layer times."""
    machine = TrainingMachine.load(MACHINE)
    return machine, CostModel.load(machine, LIBRARY)


def contents(network: Network, density: float) -> Mapping[int, MapContents]:
    """Return one density for every feature map."""
    return dict.fromkeys(range(len(network.layers)), MapContents(density, density, "reported"))


def needed_bytes(training: SavedResults, label: str, batch: int) -> int:
    """Return the bytes of CNTK's baseline, without contexts of CUDA and its libraries."""
    result = training.result(NETWORKS[label], batch, "gist-base", MACHINE, conv_library=LIBRARY, optimizer=OPTIMIZER)
    return int(result["memory.peak_bytes"]) + network(label).output_bytes(0, batch)  # the reader's images


def mfr(label: str, scheme: str, allocator: str = "static", decoded: bool = True, density: float = DENSITY) -> float:
    """Memory footprint ratio (Eq. 1): over CNTK's baseline; with the allocator ``"investigation"``, over its own."""
    ratio = run(label, scheme, allocator, decoded, density).footprint_ratio
    assert ratio is not None
    return ratio


def slowdown_percent(label: str, scheme: str, baseline: str = "gist-base") -> float:
    """Return the slowdown of an iteration, per cent."""
    return 100 * (run(label, scheme).time_ps / run(label, baseline).time_ps - 1)
