# For other extensions only (host_prefetch.pxd): nothing here is visible from Python.
