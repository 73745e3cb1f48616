# For other extensions only (crossbar.pxd): nothing here is visible from Python.
