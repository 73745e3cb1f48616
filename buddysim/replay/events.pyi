# For other extensions only (events.pxd): nothing here is visible from Python.
