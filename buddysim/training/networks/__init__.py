"""Networks as graphs of layers: the zoo, files, PyTorch modules, captured operator graphs."""
