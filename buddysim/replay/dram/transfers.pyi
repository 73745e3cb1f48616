# For other extensions only (transfers.pxd): nothing here is visible from Python.
