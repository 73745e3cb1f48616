"""The base of every replay scheme."""


cdef class SchemeBase:
    """A memory configuration: what an L2 miss and a write-back do.

    A scheme is one file: a module with a class `Scheme` derived from this one, whose name is the module's (with ``-`` for ``_``).
    Its `__cinit__` sets `fill` and `writeback`, and, where lines may be in memory that can't be accessed at once, `on_access`,
    `may_cache`, `on_wake` and `on_written` (`MemorySystem` says what they are; `configure` may set them too); what it says of itself
    are the class attributes. Its state, its parameters and its counters are in the file too:

    - parameters: `SECTION`, the machine file's section of the scheme, which `configure` converts to picoseconds;
    - state: `prepare` takes it from the run's arena and keeps it in `m.scheme_state`, where `fill` and `writeback` find it;
    - counters: `COUNTERS`, whose values `counters` gives. What the scheme moves for reasons of its own is counted as
      `SCHEME_TRAFFIC`.

    An instance serves one run.
    """

    #: One line for lists.
    SUMMARY = ""
    #: Targets are applied: entries have a device part and a buddy part.
    uses_targets = False
    #: Entry sizes matter.
    uses_sizes = False
    #: Allocations must fit device memory, and what overflows targets the carve-out.
    checks_capacity = False
    #: Every allocation lives in host memory.
    allocations_in_host_memory = False
    #: What the scheme assumes that the other ones don't, for the result.
    assumptions: dict[str, str] = {}
    #: The scheme's section of the machine file (a class derived from `buddysim.machine.section.Section`); None without one.
    SECTION = None
    #: The section's name in machine files; None: the scheme's name, with ``_`` for ``-``.
    SECTION_NAME: str | None = None
    #: The scheme's counters: of each the unit and, after a colon, what it counts.
    COUNTERS: dict[str, str] = {}

    def configure(self, machine, allocated_entries, capacity_bytes):
        """Takes over what the scheme needs of the machine; called before the engine is built.

        Parameters
        ----------
        machine : Machine
        allocated_entries : peak of the entries allocated in device memory
        capacity_bytes : device memory that the scheme may use for them (`--equal-capacity`); None: as the machine's keys say

        Raises
        ------
        BuddysimError : a machine that the scheme can't run on
        """

    def device_bytes(self, occupied_bytes):
        """Returns the device memory that the scheme uses for the program's device allocations, in bytes.

        Parameters
        ----------
        occupied_bytes : what all of them occupy at their peak, under their targets and with metadata
        """
        return occupied_bytes

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Makes the scheme's state (`arena_zeroed`) and sets `m.scheme_state`; regions and entry sizes are there already."""
        return 0

    cdef dict counters(self, const MemorySystem* m):
        """The value of each of `COUNTERS` so far."""
        return {}
