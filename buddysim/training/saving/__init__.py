"""What a training step does with what autograd saves, block by block: keep, recompute, offload."""
