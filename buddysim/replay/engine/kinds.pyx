"""Refuses to load where the engine's compiled sizes are not those of `buddysim.compress`."""
from buddysim import compress

_HERE = (ENTRY_BYTES, SECTOR_BYTES, tuple([sectors_needed(number) for number in range(8)]))
if _HERE != (compress.ENTRY_BYTES, compress.SECTOR_BYTES, compress.SECTORS_OF_CLASS):
    raise ImportError(f"entry, sector and class sizes of the engine {_HERE} are not those of buddysim.compress")
