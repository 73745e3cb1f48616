# For other extensions only (memory.pxd): nothing here is visible from Python.
