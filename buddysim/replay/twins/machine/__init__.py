"""A naive twin of the whole engine, written from docs/model-rules.md: the machine in plain Python, to be read.

It knows nothing of the engine's sources; `tests/replay/test_whole_twin.py` holds the two against each other.
"""

from __future__ import annotations

from buddysim.replay.twins.machine.replay import replay

__all__ = ["replay"]
