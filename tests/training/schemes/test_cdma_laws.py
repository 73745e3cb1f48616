"""Laws of compressed copies, over whole iterations."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from buddysim.training.driver import simulate_outcome
from buddysim.training.named_network import load_network
from buddysim.training.outcome import IterationOutcome

NETWORKS = ("alexnet", "squeezenet-cifar10", "nin-cifar10")


@cache
def iteration(name: str, scheme: str, link: str, table: str | None = None) -> IterationOutcome:
    extra = {"density_table": table} if table else {}
    return simulate_outcome(load_network(name), 64, "titan-xp", scheme, link=link, **extra)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def table(folder: Path, percent: int) -> str:
    """Write a density table of ReLU with this density in per cent; return its path."""
    path = folder / f"{percent}.csv"
    if not path.exists():
        rows = "".join(f"{kind},{percent / 100}\n" for kind in ("relu", "fc-relu", "pool"))
        path.write_text(f"kind,density\n{rows}")
    return str(path)


names = st.sampled_from(NETWORKS)
links = st.sampled_from(["pcie3-shared", "pcie3", "pcie3-peak", "pcie5", "nvlink1", "nvlink2"])
percents = st.integers(0, 100)


@given(names, links, percents, percents)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_more_zeros_never_take_longer(tables: Path, name: str, link: str, one: int, other: int) -> None:
    fewer, more = sorted((one, other))
    sparse, dense = (iteration(name, "cdma-zv", link, table(tables, percent)) for percent in (fewer, more))
    assert sparse.time_ps <= dense.time_ps
    assert sparse.moved_bytes <= dense.moved_bytes


@pytest.mark.slow
@given(names, links, percents)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_cdma_is_between_the_oracle_and_expanded_copies(tables: Path, name: str, link: str, percent: int) -> None:
    plain, oracle = iteration(name, "vdnn-all-p", link), iteration(name, "oracle", link)
    zv, bw = (iteration(name, scheme, link, table(tables, percent)) for scheme in ("cdma-zv", "cdma-bw"))
    assert oracle.time_ps <= zv.time_ps <= bw.time_ps
    # A mask for each 32 words is all that a copy can grow by.
    assert zv.time_ps <= plain.time_ps * 33 / 32 + 1000
    assert zv.moved_bytes <= plain.moved_bytes * 33 / 32 + 1000
    assert zv.moved_bytes == bw.moved_bytes
    # Compressing changes what crosses the link, not what is offloaded, when it is needed, or what the GPU holds.
    assert zv.offload_bytes == zv.prefetch_bytes == plain.offload_bytes == plain.prefetch_bytes
    assert zv.all_layers.usage.peak_bytes == plain.all_layers.usage.peak_bytes
    assert zv.pinned_bytes == plain.pinned_bytes
