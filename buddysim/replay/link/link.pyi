# For other extensions only (link.pxd): nothing here is visible from Python.
