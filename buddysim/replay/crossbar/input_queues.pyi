# For other extensions only (input_queues.pxd): nothing here is visible from Python.
