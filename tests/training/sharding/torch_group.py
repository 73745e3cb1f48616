"""A step of a sharded model in PyTorch, in several processes on the CPU: what the first one allocates and frees.

Run as a script, once for each process: rank, processes, a folder, and the setup as JSON. The first process writes its
allocations and frees into the folder: sizes in bytes, below 0 for frees.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = "LlamaForCausalLM"
EVENTS, BUCKETS = "events.json", "buckets.json"
#: Numbers that a script makes tensors of: a GPU has them on its host.
BYTES_ON_HOST = 8
_OF_THE_CPU = ("c10d::", "fsdp::chunk_cat", "torch::distributed::reducer::mul_out")


def run_group(folder: Path, processes: int, **setup: Any) -> list[int]:
    """Run the processes; return the first one's allocations and frees.

    Parameters
    ----------
    setup : see `_sharded`
    """
    command = [sys.executable, "-W", "ignore", "-m", __name__]
    running = [
        subprocess.Popen(
            [*command, str(rank), str(processes), str(folder), json.dumps(setup)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    errors = [one.communicate(timeout=280)[1] for one in running]
    assert all(one.returncode == 0 for one in running), "\n".join(errors)
    events: list[int] = json.loads((folder / EVENTS).read_text(encoding="utf-8"))
    return events


def _main(rank: int, processes: int, folder: Path, setup: dict[str, Any]) -> None:
    import torch

    from buddysim.training.networks.from_torch.below_autograd import below_autograd, handlers_installed
    from buddysim.training.networks.from_torch.cuda_rules import cuda_rules
    from tests.training.transformers import configs

    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'store'}", rank=rank, world_size=processes
    )
    configs.CONFIGS[NAME]["vocab_size"] = setup.get("words", configs.WORDS)
    dtype = getattr(torch, setup.get("dtype", "float32"))
    model = _sharded(configs.build(NAME, "eager", dtype), processes, setup)
    batch = configs.inputs(NAME)
    micro_steps = setup.get("accumulation", 1)

    def mark(func: Any, args: Any, kwargs: Any, proceed: Any) -> Any:
        with torch.profiler.record_function("#"):
            return proceed(func, args, kwargs)

    def step() -> None:
        for _ in range(micro_steps):
            loss = model(**batch).loss
            loss.backward()
            del loss

    for _ in range(2):  # what is made lazily, and DDP's buckets, which are made anew behind the first step
        step()
        model.zero_grad()
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True)
    with handlers_installed(), cuda_rules("flash"), profiler as profile, below_autograd(mark):
        step()
    if rank == 0:
        (folder / EVENTS).write_text(json.dumps(list(_events(profile))), encoding="utf-8")
        if setup["kind"] == "ddp":
            sizes = [one.buffer().nbytes for one in model.reducer._get_zeros_like_grad_buckets()]
            (folder / BUCKETS).write_text(json.dumps(sizes), encoding="utf-8")
    torch.distributed.destroy_process_group()


def _sharded(model: Any, processes: int, setup: dict[str, Any]) -> Any:
    """Shard a model as the setup says: ``kind`` fsdp or ddp; their options by PyTorch's names."""
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    if setup["kind"] == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False, **setup.get("options", {}))
    mesh = init_device_mesh("cpu", (processes,))
    policy = MixedPrecisionPolicy(**{key: getattr(torch, value) for key, value in setup.get("policy", {}).items()})
    layers = list(model.model.layers)
    for layer in layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy, **setup.get("options", {}))
    fully_shard(model, mesh=mesh, mp_policy=policy)
    if depth := setup.get("gather_ahead"):
        for index, layer in enumerate(layers):
            layer.set_modules_to_forward_prefetch(layers[index + 1 : index + 1 + depth])
            layer.set_modules_to_backward_prefetch(layers[max(0, index - depth) : index][::-1])
    return model


def _events(profile: Any) -> Iterator[int]:
    """Sizes in order, without what operators free themselves, the host's numbers, and what gloo does in its own way.

    ``chunk_cat`` is one kernel on a GPU; on the CPU it casts and pads one gradient after the other. DDP multiplies a
    gradient by a number of the host, which the CPU converts; on a GPU it is an argument of the kernel.
    """
    reports: list[tuple[int, int, int, int | None, bool]] = []
    markers = 0
    waiting: list[tuple[Any, int | None, bool]] = [
        (event, None, False) for event in profile.profiler.kineto_results.experimental_event_tree()
    ]
    while waiting:
        event, marker, of_gloo = waiting.pop()
        if "Allocation" in str(event.tag):
            fields = event.extra_fields
            reports.append((event.start_time_ns, fields.alloc_size, fields.ptr, marker, of_gloo))
        if event.name == "#":
            markers += 1
            marker = markers
        of_gloo = of_gloo or "gloo" in event.name or event.name.startswith(_OF_THE_CPU)
        waiting += [(child, marker, of_gloo) for child in event.children]
    live: dict[int, tuple[int, int | None]] = {}
    sizes: dict[int, int] = {}
    for number, (_, size, address, marker, of_gloo) in enumerate(sorted(reports, key=lambda one: one[0])):
        if size > 0:
            if not of_gloo and (marker is not None or size > BYTES_ON_HOST):
                live[address] = number, marker
                sizes[number] = size
        elif address in live:
            begin, its_marker = live.pop(address)
            if marker is not None and marker == its_marker:
                del sizes[begin]
            else:
                sizes[number] = size
    yield from (sizes[number] for number in sorted(sizes))


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), json.loads(sys.argv[4]))
