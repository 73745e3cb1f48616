from buddysim.machine.section import Section
from buddysim.machine.units import Time
from buddysim.replay.engine.scheme import SchemeBase

ORDER: int

class Um(Section):
    oversubscription: float
    page: int
    prefetch: int
    fault_latency: Time
    fault_batch: int

class Scheme(SchemeBase): ...
