"""The SM: what a machine file chooses for it by name, one folder for each kind of policy."""
