"""Makes the shipped traces of a transformer's Triton kernels: ``python -m tools.transformer_traces -o traces``.

A tiny language model of bytes is trained on the help texts that Python ships (pydoc_data.topics), and its weights,
keys, values, activations and optimizer state are the data of four captured programs.
"""
