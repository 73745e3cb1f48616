"""The base of every write drain."""


cdef class WriteDrainBase(Component):
    """When a pseudo-channel drains its write queue, and which slots of its bus a read may take.

    A policy is one module with a class `WriteDrain` derived from this one. `write_queued` is called after each write that joined
    the queue, and drains with `drain_if_due` or `drain_writes`. `read_slot` gets the first slot in which a read's data could be on
    the bus and returns one that is not before it.
    """

    cdef int prepare(self, Arena* arena, Dram* dram) except -1:
        """Allocates the policy's state (`arena_zeroed`); sets `dram.write_queued`, `dram.read_slot` and `dram.drain_state`."""
        return 0
