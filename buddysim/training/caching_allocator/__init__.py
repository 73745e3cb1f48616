"""The CUDA caching allocator of PyTorch, byte by byte: what a run reserves, not only what its tensors need."""

from buddysim.training.caching_allocator.allocator import AllocationFailure, CudaAllocator
from buddysim.training.caching_allocator.tape_replay import AllocatorReplay, replay_tape
from buddysim.training.options.allocator_settings import AllocatorSettings

__all__ = ["AllocationFailure", "AllocatorReplay", "AllocatorSettings", "CudaAllocator", "replay_tape"]
