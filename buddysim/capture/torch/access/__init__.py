"""What the kernels that PyTorch launches on a GPU access, as models: `operators` finds those of an operator."""
