# For other extensions only (horizon.pxd): nothing here is visible from Python.
