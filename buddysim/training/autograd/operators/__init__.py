"""PyTorch's operators: what each returns, what autograd saves of it, and what its backward formula allocates.

Tensors have operators as methods, and operators make tensors: the tensors' module is read first.
"""

import buddysim.training.autograd.tensor  # noqa: F401
