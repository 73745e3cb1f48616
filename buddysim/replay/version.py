"""The version of the replay model: stored results of another one are simulated again.

Whoever changes what any result holds (a counter's value, its key, what is in `per_kernel`) raises it in the same commit
and writes the golden results anew: ``python -m tests.sweep.golden``. `tests/sweep/test_golden.py` fails otherwise.
"""

MODEL_VERSION = 10
