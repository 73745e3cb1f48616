# For other extensions only (l2.pxd): nothing here is visible from Python.
