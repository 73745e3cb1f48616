"""What a capture of an OpenCL program assumes about a GPU, for the trace's provenance."""

from typing import Final

ASSUMED: Final = {
    "gaps": (
        "instructions counted in LLVM's optimised intermediate code, along the path that each warp took; what has no "
        "instruction of its own on a GPU (division, built-in functions) as sequences of assumed length; latencies of "
        "Accel-Sim's sm_70 configuration (docs/capture-opencl.md)"
    ),
    "dependencies": ("first uses and dependent chains from the same code; a chain begins anew in each basic block"),
    "warps": (
        "32 consecutive work-items (x fastest) that diverge at branches and reconverge at the immediate post-dominator"
    ),
    "allocations": (
        "the program's buffers, named by the first kernel argument that they are; addresses as a GPU's allocator "
        "might choose: below 1 MiB at multiples of 512 B in shared pages of 2 MiB, larger ones at multiples of 2 MiB"
    ),
    "copies": (
        "what the program reads, writes, copies, fills and maps; a buffer that is made with the program's memory is "
        "copied when it is made; a mapping is a copy from the device when it begins and to it when it ends, as it is "
        "read or written"
    ),
    "registers": "not captured: only thread-block size and local memory limit how many warps are resident",
}

DEVICES: Final = {
    False: "the program saw PoCL's own device: a CPU",
    True: "the program saw PoCL's device as a GPU: 48 KiB of local memory, 1024 work-items, 56 compute units",
}
