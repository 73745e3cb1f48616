# For other extensions only (l1.pxd): nothing here is visible from Python.
