from buddysim.replay.l2.slice_hash.base import SliceHashBase

ORDER: int
POLYNOMIALS: dict[int, int]

class SliceHash(SliceHashBase): ...
