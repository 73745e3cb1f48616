"""Style and file output of figures."""
