"""Version of the results of analyses: raise it when any result changes. Replays have a version of their own.

2: targets on another input; the sectors that each entry needs.
"""

MODEL_VERSION = 3
