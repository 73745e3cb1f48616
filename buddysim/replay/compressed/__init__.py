"""Compressed entries: sectors in device and buddy memory, fills and write-backs, for the schemes that compress."""
