"""Base class of link protocols, each a module of this folder: bytes that a transfer takes on the link."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.engine.arena cimport Arena
from buddysim.replay.link.link cimport Link


cdef class LinkProtocolBase(Component):
    cdef int prepare(self, Arena* arena, Link* link) except -1
