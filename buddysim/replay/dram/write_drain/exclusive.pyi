from buddysim.replay.dram.write_drain.base import WriteDrainBase

ORDER: int

class WriteDrain(WriteDrainBase): ...
