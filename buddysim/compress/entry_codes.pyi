# For other extensions only (entry_codes.pxd): nothing here is visible from Python.
