"""What all policies have in common: the machine's choices that a machine file makes by name, one file each."""
