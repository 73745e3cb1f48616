from buddysim.machine.parts.dram import DramTimingConfig
from buddysim.machine.units import Time
from buddysim.replay.component.base import Component

class RefreshBase(Component):
    @staticmethod
    def duration(timing: DramTimingConfig) -> Time: ...
