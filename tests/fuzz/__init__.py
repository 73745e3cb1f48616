"""Fuzzing: files of every type that the package reads, made from grammars, given to the commands that read them.

- ``grammar.py``: changed trees (TOML, JSON), changed lines (CSV, lists), changed bytes, as hypothesis strategies
- ``traces.py``: whole trace files from a grammar, their checksums computed anew
- ``file_types.py``: the types: what a good file of each is, how it is changed, which commands read it
- ``promise.py``: what every command keeps for any input (docs/robustness.md)
- ``test_fuzz.py``: 1,000 files of each type (slow); ``make fuzz MINUTES=60`` makes as many as there is time for
- ``kept/``: files that once broke the promise; the default tests read them all
"""
