"""Snapshots of PyTorch's CUDA memory (``torch.cuda.memory._snapshot``): read, replayed and compared event by event."""
