# For other extensions only (allocations.pxd): nothing here is visible from Python.
