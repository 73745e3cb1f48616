"""Networks as graphs of layers: files, PyTorch modules, captured operator graphs."""
