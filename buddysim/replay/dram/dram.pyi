# For other extensions only (dram.pxd): nothing here is visible from Python.
