# For other extensions only (dirty_limit.pxd): nothing here is visible from Python.
