# For other extensions only (copies.pxd): nothing here is visible from Python.
