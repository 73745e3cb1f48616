"""Networks in training as workloads: trained in PyTorch, their memory kept as its allocator for GPUs would keep it,
their kernels modelled (`buddysim.capture.torch.access`)."""
