"""The reference model of the whole replay engine, written from docs/reference/replay-rules.md, and of parts of it.

The machine's modules know nothing of the engine's sources; `tests/replay/test_reference_machine.py` compares the two.
`primitives/`, `memory/` and `schemes/` have reference models of single components.
"""
