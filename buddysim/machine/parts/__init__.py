"""The sections of a machine file that every replay depends on, one file each.

Each section is a class and each key a field. `docs/reference/machine-keys.md` repeats the fields' descriptions.
Validators check the rules between the keys of one section.
"""
