# For other extensions only (port.pxd): nothing here is visible from Python.
