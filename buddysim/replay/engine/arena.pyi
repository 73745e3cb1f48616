# For other extensions only (arena.pxd): nothing here is visible from Python.
