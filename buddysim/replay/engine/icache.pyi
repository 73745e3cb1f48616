# For other extensions only (icache.pxd): nothing here is visible from Python.
