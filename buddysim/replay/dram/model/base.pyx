"""The base of every model of device memory."""


cdef class DramModelBase(Component):
    """How long reads and writes of device memory take.

    A model is one module with a class `DramModel` derived from this one. The engine keeps addresses and counts bursts.
    """

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        """Allocates the model's state (`arena_zeroed`); sets `dram.model` and `dram.model_state`."""
        return 0
