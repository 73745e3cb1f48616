"""What members of kinds promise: a file for each part of the replayed machine, whose ``CONTRACTS`` says of which kinds.

`python -m buddysim check-plugin FILE` holds a plug-in to them, and tests hold everything that ships.
"""
