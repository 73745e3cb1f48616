# For other extensions only (warp.pxd): nothing here is visible from Python.
