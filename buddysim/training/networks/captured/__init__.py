"""Networks of captured scripts: the operators of one iteration, with the storages, lifetimes and saved tensors that
PyTorch had, as the record of a training step.
"""
