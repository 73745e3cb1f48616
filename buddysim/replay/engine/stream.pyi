# For other extensions only (stream.pxd): nothing here is visible from Python.
