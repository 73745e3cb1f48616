"""The event loop, and what memcpys do to the L2. ../README.md says why so much of the replay is in ``.pxd`` files."""
