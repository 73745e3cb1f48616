"""Access models of the kernels that PyTorch launches on a GPU; `operators` selects those of an operator."""
