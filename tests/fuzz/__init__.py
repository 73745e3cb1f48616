"""Fuzzing: files of every type that the package reads, generated from grammars and passed to the commands.

- ``grammar.py``: changed trees (TOML, JSON), changed lines (CSV, lists), changed bytes, as hypothesis strategies
- ``wrong_types.py``: every field of a file with values of every other type
- ``traces.py``: complete trace files from a grammar, with recomputed checksums
- ``file_types.py``: the types: a valid file of each, its changes, and the commands that read it
- ``promise.py``: the guarantees of every command for any input (docs/reference/untrusted-files.md)
- ``test_fuzz.py``: 1,000 files of each type (slow); ``make fuzz MINUTES=60`` generates as many as the time allows
- ``saved_cases/``: files that once violated a guarantee; the default tests read them all
"""
