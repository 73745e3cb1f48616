# For other extensions only (byte_windows.pxd): nothing here is visible from Python.
