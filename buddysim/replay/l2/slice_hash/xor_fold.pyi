from buddysim.replay.l2.slice_hash.base import SliceHashBase

ORDER: int

class SliceHash(SliceHashBase): ...
