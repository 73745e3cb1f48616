from buddysim.replay.sm.scheduler.base import WarpSchedulerBase

ORDER: int

class WarpScheduler(WarpSchedulerBase): ...
