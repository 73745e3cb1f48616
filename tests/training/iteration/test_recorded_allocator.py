"""The caching allocator under a recorded step: two iterations, state made in the first update, memory outside of it."""

from __future__ import annotations

from buddysim.machine.training import TrainingMachine
from buddysim.training import simulate
from buddysim.training.autograd.records import AllocationEvent, FreeEvent
from buddysim.training.caching_allocator import replay_tape
from buddysim.training.iteration.recorded_allocator import two_iterations
from tests.training.networks.recorded.small_model import BATCH, recorded

MIB = 2**20


def machine(**figures: str) -> TrainingMachine:
    own = {"context_memory": "0 B", "cublas_workspace": "0 B", **figures}
    return TrainingMachine.load("h100-sxm").with_overrides({f"training.{key}": own[key] for key in own}, "test")


def test_the_state_is_allocated_in_the_first_update_and_every_free_has_its_allocation() -> None:
    tape = recorded(2, "adamw").tape
    events = two_iterations(tape)
    first_forward = next(n for n, one in enumerate(events) if getattr(one, "phase", "") == "forward")
    state = [n for n, one in enumerate(events) if isinstance(one, AllocationEvent) and _kind(tape, one) == "optimizer"]
    assert len(state) == sum(one.kind == "optimizer" for one in tape.storages)
    assert min(state) > first_forward
    live: set[int] = set()
    for one in events:
        if isinstance(one, AllocationEvent):
            assert one.storage not in live
            live.add(one.storage)
        elif isinstance(one, FreeEvent):
            live.remove(one.storage)


def _kind(tape, event: AllocationEvent) -> str:
    return str(tape.storages[event.storage].kind)


def test_workspaces_and_context_are_beside_the_tensors() -> None:
    network = recorded(2, "adamw")
    bare, full = (
        simulate(network, BATCH, one, "eager", optimizer="adamw").counters
        for one in (machine(), machine(context_memory="100 MiB", cublas_workspace="8 MiB"))
    )
    assert bare["memory.by_kind"]["library_workspace"] == bare["memory.by_kind"]["context"] == 0
    assert full["memory.by_kind"]["library_workspace"] == 2 * 8 * MIB  # forward's and backward's threads
    assert full["memory.by_kind"]["context"] == 100 * MIB
    assert full["memory.peak_bytes"] == bare["memory.peak_bytes"] == network.tape.peak_bytes()
    assert bare["memory.peak_allocated_bytes"] == replay_tape(network.tape).peak_allocated_bytes


def test_it_fits_if_what_is_reserved_and_the_context_do() -> None:
    network, gpu = recorded(2, "adamw"), machine(context_memory="100 MiB")
    counters = simulate(network, BATCH, gpu, "eager", optimizer="adamw").counters
    needed = counters["memory.peak_reserved_bytes"] + 100 * MIB

    def fits(size: int) -> bool:
        return bool(simulate(network, BATCH, gpu, "eager", optimizer="adamw", memory_bytes=size).counters["fits"])

    assert fits(needed)
    assert not fits(counters["memory.peak_bytes"] + 100 * MIB - 1)
    failed = simulate(network, BATCH, gpu, "eager", optimizer="adamw", memory_bytes=100 * MIB + 4 * MIB).counters
    assert failed["oom.message"]
    assert failed["oom.peak_excess_bytes"] == counters["memory.peak_bytes"] - 4 * MIB


def test_a_gpu_without_figures_counts_neither() -> None:
    known = TrainingMachine.load("h100-sxm")
    table = known.training.model_copy(update={"context_memory": None, "cublas_workspace": None})
    gpu = known.model_copy(update={"training": table})
    kinds = simulate(recorded(1), BATCH, gpu, "eager", optimizer="none").counters["memory.by_kind"]
    assert kinds["context"] == kinds["library_workspace"] == 0
