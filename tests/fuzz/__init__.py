"""Fuzzing: files of every type that the package reads, generated from grammars and passed to the commands.

- ``grammar.py``: changed trees (TOML, JSON), changed lines (CSV, lists), changed bytes, as hypothesis strategies
- ``near.py``: changes that keep a file's structure, so that readers accept half of the files
- ``schemas.py``, ``wrong_types.py``: every field of every schema with values of every other type
- ``good_files.py``: a valid file of each type
- ``traces.py``: complete trace files from a grammar, with recomputed checksums
- ``file_types.py``: the types: changes of the valid file, and the commands that read it
- ``readers.py``: the functions that read each type, without the command around them
- ``promise.py``: the guarantees of every command for any input (docs/reference/untrusted-files.md)
- ``test_fuzz.py``: some files of each type (slow); ``make fuzz`` generates as many as requested, and keeps a log
- ``corpus/``: for each way in which a file of a type ends, the smallest file found; ``make fuzz FUZZ_ARGS=--corpus``
- ``saved_cases/``: files that once violated a guarantee; the default tests read them all
"""
