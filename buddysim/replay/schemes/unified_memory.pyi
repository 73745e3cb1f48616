from buddysim.machine.section import Section
from buddysim.machine.units import Time
from buddysim.replay.engine.scheme import SchemeBase

ORDER: int

class UmConfig(Section):
    oversubscription: float
    page_size: int
    va_block_size: int
    fault_batch_latency: Time
    max_batch_faults: int

class Scheme(SchemeBase): ...
