from buddysim.replay.dram.refresh.base import RefreshBase

ORDER: int

class Refresh(RefreshBase): ...
