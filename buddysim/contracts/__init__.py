"""What members of each kind promise: `held` finds the file whose ``CONTRACTS`` are those of a kind.

`python -m buddysim check-plugin FILE` holds a plug-in to them, and tests hold everything that ships.
"""
