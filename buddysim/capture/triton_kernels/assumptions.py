"""Assumptions of a Triton capture for the trace's provenance: sentences with the direction of their effect."""

from typing import Final

#: What `info` says first.
NOT_A_GPU: Final = (
    "the order of warps (programs ran one after the other), times (from the machine code, without contention at the "
    "capture), and how floats are rounded (as on the CPU)"
)
NOT_A_GPU_COMPILED: Final = f"{NOT_A_GPU}, and Inductor's fusions and block sizes (those for a CPU)"

ASSUMED: Final = {
    "compute_gaps": (
        "Instructions are those of the machine code that Triton makes for the GPU, along each program's path: loops "
        "as often as the interpreter ran them. Latencies are those of Accel-Sim's configurations "
        "(docs/how-to/import-accelsim.md), and nothing contends during the capture. Shared memory has no bank "
        "conflicts. Compute times err in either direction."
    ),
    "dependencies": (
        "First uses and critical paths come from the machine code's registers. Predicates delay nothing, and code "
        "that all lanes leave is counted: times err in either direction."
    ),
    "values": (
        "Values are those of Triton's interpreter on the CPU: integers are exact, floats are rounded as NumPy rounds "
        "them. Programs run one after the other, x fastest: the order of floating-point atomics is not a GPU's."
    ),
    "warps": (
        "A program instance is a thread block. Which lane accesses which element follows the layouts of the compiled "
        "kernel; warps of a block run as far as barriers let them, in no recorded order."
    ),
    "allocations": (
        "Allocations are the storages of the launches' tensors, named by the first argument that uses them, from "
        "their first launch on. Addresses are those of a model of PyTorch's caching allocator for CUDA."
    ),
    "copies": "Operations of PyTorch between launches are not events: their effects are in the snapshots.",
    "autotuning": "Of several configurations, the first one that isn't pruned runs; a GPU would take the fastest.",
}

TORCH_COMPILE: Final = {
    "torch_compile": (
        "Kernels are those that PyTorch's Inductor makes for tensors on the CPU: fusions and block sizes may differ "
        "from a GPU's. Of several configurations, the first one runs. Products that it leaves to ATen are kernels as "
        "capture torch models them: tiles of single precision for matrices, one pass over the operands in batches, all "
        "thread blocks. Other operators that it doesn't fuse are not launches: their effects are in the snapshots."
    )
}
