# For other extensions only (partitions.pxd): nothing here is visible from Python.
