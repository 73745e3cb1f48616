"""Base class of link protocols, each a module of this folder: bytes that a transfer takes on the link."""
from buddysim.replay.component.base cimport Component
from buddysim.replay.link.link cimport Link
from buddysim.replay.primitives.arena cimport Arena


cdef class LinkProtocolBase(Component):
    cdef int prepare(self, Arena* arena, Link* link) except -1
