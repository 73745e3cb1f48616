"""Parts of engines by themselves, as classes of Python: no command uses them, only tests."""
