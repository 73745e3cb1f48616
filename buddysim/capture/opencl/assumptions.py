"""Assumptions of an OpenCL capture for the trace's provenance: sentences with the direction of their effect."""

from typing import Final

ASSUMED: Final = {
    "compute_gaps": (
        "Instructions are counted in LLVM's optimised intermediate code, along the path of each warp. Division and "
        "built-in functions count as sequences of assumed length, and latencies are those of Accel-Sim's sm_70 "
        "configuration (docs/how-to/capture-opencl.md). Compute times err in either direction."
    ),
    "dependencies": (
        "First uses and critical paths come from the same code. A critical path starts anew in each basic block: "
        "dependences between blocks are ignored, so compute gaps are optimistic."
    ),
    "warps": (
        "A warp is 32 consecutive work-items (x fastest). Lanes that diverge at a branch reconverge at its immediate "
        "post-dominator; a GPU may interleave diverged lanes differently."
    ),
    "allocations": (
        "Allocations are the program's buffers, named by the first kernel argument that uses them. Addresses follow an "
        "assumed GPU allocator: buffers below 1 MiB lie at multiples of 512 B in shared pages of 2 MiB, larger ones at "
        "multiples of 2 MiB. Conflicts in cache sets and DRAM banks depend on these addresses."
    ),
    "copies": (
        "Memcpys and memsets are the program's reads, writes, copies, fills and mappings of buffers. A buffer that is "
        "made with the program's memory is copied when it is made. A mapping is a copy from the device when it begins "
        "and to the device when it ends, as it is read or written. Copies take no simulated time."
    ),
    "registers": (
        "Registers are not captured: only thread-block size and local memory limit the resident warps. Latency hiding "
        "is optimistic."
    ),
}

DEVICES: Final = {
    False: "The program saw PoCL's own device, a CPU: its work-groups may be larger or smaller than on a GPU.",
    True: (
        "The program saw PoCL's device reported as a GPU: 48 KiB of local memory, 1024 work-items, 56 compute units. "
        "Programs that tune to another GPU would choose other sizes."
    ),
}
