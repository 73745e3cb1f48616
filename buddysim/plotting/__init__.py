"""How pictures look, and how they are written."""
