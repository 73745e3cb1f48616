"""The lowest layer: errors, text files, atomic writing, nearest-name hints, registries, plug-ins, the base of results.

Nothing here knows what is simulated; every other folder may import it.
"""
