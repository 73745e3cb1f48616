"""The version of what analyses count: raise it when any finding changes. Replays have a version of their own.

2: targets on another input; the sectors that each entry needs.
"""

MODEL_VERSION = 2
