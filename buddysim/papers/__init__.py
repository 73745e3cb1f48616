"""Values that papers report, and the simulated value of each; one folder per paper.

`reported.toml` of a folder has an entry for each reported value. A function of any module of the folder, marked with
`buddysim.papers.simulated_values.simulates`, returns the simulated value of one or more of them. To add a value, add an
entry and its function; no list names them. `tools/validate_training.py` compares all of them.
"""
