# For other extensions only (thread_blocks.pxd): nothing here is visible from Python.
