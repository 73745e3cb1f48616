# For other extensions only (sm.pxd): nothing here is visible from Python.
