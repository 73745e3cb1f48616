# For other extensions only (hostmem.pxd): nothing here is visible from Python.
