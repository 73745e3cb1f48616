"""What papers state, and what the simulator gives for it; a folder for each paper.

`stated.toml` of a paper's folder has an entry for each number. A function in any module of the folder, marked with
`buddysim.papers.measured.measures`, gives the simulator's value of one or more of them. Adding a number is adding an
entry and its function; nothing lists them. `tools/validate_training.py` compares all of them.
"""
