from buddysim.replay.schemes.base import SchemeBase

ORDER: int

class Scheme(SchemeBase): ...
