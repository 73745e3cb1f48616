"""The base of every replay scheme."""


cdef class SchemeBase:
    """A memory configuration: defines what an L2 miss and a write-back do.

    A scheme is one module with a class `Scheme` derived from this one. The scheme's name is the module's, with ``-`` for ``_``.
    `__cinit__` sets `fill` and `writeback`. If lines may lie in memory that cannot be accessed immediately, `__cinit__` or
    `configure` also sets `on_access`, `may_cache`, `on_wake`, `on_due` and `on_written` (`MemorySystem` describes them). Class
    attributes describe the scheme. Its module also has its state, parameters and counters:

    - parameters: `SECTION`, the machine file's section of the scheme, which `configure` converts to picoseconds;
    - state: `prepare` allocates it in the run's arena and stores it in `m.scheme_state`, for `fill` and `writeback`;
    - counters: `COUNTERS`, whose values `counters` returns. Sectors that the scheme moves for its own reasons count as
      `SCHEME_TRAFFIC`.

    An instance serves one run.
    """

    #: Description for lists, one line.
    SUMMARY = ""
    #: The scheme uses target ratios: entries have device sectors and buddy sectors.
    uses_targets = False
    #: The scheme uses entry sizes.
    uses_sizes = False
    #: Allocations must fit device memory, and their buddy sectors the carve-out.
    checks_capacity = False
    #: All allocations lie in host memory.
    allocations_in_host_memory = False
    #: Assumptions of this scheme alone, for the result.
    assumptions: dict[str, str] = {}
    #: Section of machine files (a class derived from `buddysim.machine.section.Section`); None: no section.
    SECTION = None
    #: Name of the section in machine files; None: the scheme's name, with ``_`` for ``-``.
    SECTION_NAME: str | None = None
    #: Counters of the scheme: unit, colon, definition.
    COUNTERS: dict[str, str] = {}

    def configure(self, machine, allocated_entries, capacity_bytes):
        """Sets the scheme's parameters for a machine, before the engine is created.

        Parameters
        ----------
        machine : Machine
        allocated_entries : peak of the entries allocated in device memory
        capacity_bytes : device memory that the scheme may use for them (`--equal-capacity`); None: the machine's keys decide

        Raises
        ------
        BuddysimError : the scheme cannot run on the machine
        """

    def device_bytes(self, occupied_bytes):
        """Returns the device memory that the scheme uses for the program's device allocations, in bytes.

        Parameters
        ----------
        occupied_bytes : their size at its peak, under their targets and with metadata
        """
        return occupied_bytes

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Allocates the scheme's state (`arena_zeroed`) and sets `m.scheme_state`, after allocations and entry sizes are set up."""
        return 0

    cdef dict counters(self, const MemorySystem* m):
        """Values of `COUNTERS` so far."""
        return {}
