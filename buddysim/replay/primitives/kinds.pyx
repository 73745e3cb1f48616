"""Raises ImportError if the engine's compiled sizes differ from those of `buddysim.compress`."""
from buddysim import compress

_ENGINE_SIZES = (ENTRY_BYTES, SECTOR_BYTES, tuple([sectors_needed(number) for number in range(8)]))
if _ENGINE_SIZES != (compress.ENTRY_BYTES, compress.SECTOR_BYTES, compress.SECTORS_OF_CLASS):
    raise ImportError(f"entry, sector and class sizes of the engine {_ENGINE_SIZES} are not those of buddysim.compress")
