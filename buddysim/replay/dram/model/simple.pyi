from buddysim.replay.dram.model.base import DramModelBase

ORDER: int

class DramModel(DramModelBase): ...
