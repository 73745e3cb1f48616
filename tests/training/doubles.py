"""Stand-ins for tests of the substrate: a cost model with round numbers, a machine with a simple link."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from types import SimpleNamespace

from buddysim.training.cost.precision import PRECISIONS, Precision
from buddysim.training.networks.graph import Layer, Network

MS = 10**9  # picoseconds


@dataclass(frozen=True)
class Algorithm:
    """Stand-in for ConvAlgorithm."""

    name: str
    workspace_bytes: int
    time_ps: int


@dataclass
class Cost:
    """A cost model with times by layer name and pass; other steps take `default_ps`.

    `workspaces` gives CONV layers a faster algorithm with that workspace: it takes half the time.
    """

    described = None

    times: dict[tuple[str, str], int] = field(default_factory=dict)
    default_ps: int = 10 * MS
    workspaces: dict[str, int] = field(default_factory=dict)
    calibrated: bool = True
    library: str = "double"
    source: str = "tests"
    assumptions: dict[str, str] = field(default_factory=dict)
    precision: Precision = PRECISIONS["fp32"]

    def conv_algorithms(self, layer: Layer, batch: int, pass_: str) -> tuple[Algorithm, ...]:
        slow = Algorithm("implicit_gemm", 0, self.times.get((layer.name, pass_), self.default_ps))
        if layer.name not in self.workspaces:
            return (slow,)
        return (Algorithm("fft", self.workspaces[layer.name], slow.time_ps // 2), slow)

    def time_ps(self, layer: Layer, batch: int, pass_: str) -> int:
        return self.times.get((layer.name, pass_), self.default_ps)

    def derived_times(self, algorithms: object) -> None:
        return None

    @property
    def machine(self) -> SimpleNamespace:
        return machine()

    def bandwidth_fraction(self, kind: str, pass_: str) -> float:
        return 0.5

    def dram_bytes(self, layer: Layer, batch: int, pass_: str) -> int:
        return 0


@dataclass(frozen=True)
class Link:
    """Stand-in for HostLinkConfig."""

    offload_bytes_per_s: int = 10**9
    prefetch_bytes_per_s: int = 10**9
    latency_ps: int = 0
    shared_fractions: tuple[Fraction, Fraction] = (Fraction(1), Fraction(1))


def machine(memory_bytes: int = 12 << 30, pinned: int = 62 << 30, link: Link | None = None) -> SimpleNamespace:
    """Stand-in for TrainingMachine, with the attributes that iterations read."""
    return SimpleNamespace(
        name="double",
        memory_bytes=memory_bytes,
        max_pinned_bytes=pinned,
        host_bytes_per_s=10**10,
        nvme_read_bytes_per_s=10**9,
        nvme_write_bytes_per_s=10**9,
        link="wire",
        links={"wire": link or Link()},
        dram_bytes_per_s=336 * 10**9,
        training=SimpleNamespace(fp32=7 * 10**12, host_cores=4),
    )


def chain(kinds: str, *, elements: int = 250_000, name: str = "chain") -> Network:
    """Return a chain of layers with equal outputs: c CONV, r ReLU in place, p max pool, f fc."""
    layers = [Layer(0, "input", "input", (), (elements,))]
    kind_of = {
        "c": ("conv", {"x", "dy"}),
        "r": ("relu", {"y", "dy"}),
        "p": ("maxpool", {"x", "y", "dy"}),
        "f": ("fc", {"x", "dy"}),
    }
    for index, letter in enumerate(kinds, 1):
        kind, reads = kind_of[letter]
        layers.append(
            Layer(
                index,
                f"{kind}{index}",
                kind,
                (index - 1,),
                (elements,),
                parameters=0,
                in_place=letter == "r",
                part="classifier" if letter == "f" else "features",
                backward_reads=frozenset(reads),
            )
        )
    return Network(name, layers)
