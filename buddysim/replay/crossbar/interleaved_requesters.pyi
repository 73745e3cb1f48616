# For other extensions only (interleaved_requesters.pxd): nothing here is visible from Python.
