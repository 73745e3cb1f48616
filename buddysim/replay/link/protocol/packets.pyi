from buddysim.replay.link.protocol.base import LinkProtocolBase

ORDER: int

class LinkProtocol(LinkProtocolBase): ...
