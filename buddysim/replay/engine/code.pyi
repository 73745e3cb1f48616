# For other extensions only (code.pxd): nothing here is visible from Python.
