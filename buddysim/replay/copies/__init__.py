"""Memcpys and memsets of a run: what they cover, what they change, and the engines that take time for them."""
