"""The lowest layer: errors, reading and writing of files, nearest-name hints, registries, plug-ins, base of results.

Nothing here knows what is simulated; every other folder may import it.
"""
