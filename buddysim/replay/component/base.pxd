"""Base class of the policies of all kinds."""


cdef class Component:
    pass
