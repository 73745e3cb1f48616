# For other extensions only (instruction_cache.pxd): nothing here is visible from Python.
