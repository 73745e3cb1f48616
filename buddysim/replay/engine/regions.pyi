# For other extensions only (regions.pxd): nothing here is visible from Python.
