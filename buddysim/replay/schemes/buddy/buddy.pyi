from buddysim.replay.engine.scheme import SchemeBase

ORDER: int

class Scheme(SchemeBase): ...
