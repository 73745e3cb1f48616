"""Models whose forward pass is recorded from a class of PyTorch, and runs on a tape as the package's own models do."""
