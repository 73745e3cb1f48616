"""Networks in training as workloads.

PyTorch trains them on the CPU. Addresses are those of its GPU allocator; `buddysim.capture.torch.access` models the
kernels."""
