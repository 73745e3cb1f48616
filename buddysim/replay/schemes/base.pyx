"""The base of every replay scheme."""


cdef class SchemeBase:
    """A memory configuration: defines what an L2 miss and a write-back do.

    A scheme is one module with a class `Scheme` derived from this one. The scheme's name is the module's, with ``-`` for ``_``.
    `__cinit__` sets `fill` and `writeback`. If lines may lie in memory that cannot be accessed immediately, `__cinit__` or
    `configure` also sets `on_access`, `may_cache`, `on_wake`, `on_due` and `on_written` (`MemorySystem` describes them). Class
    attributes describe the scheme. Its module also has its state, parameters and counters:

    - parameters: `SECTIONS`, the machine file's sections of the scheme, which `configure` converts to picoseconds;
    - state: `prepare` allocates it in the run's arena and stores it in `m.scheme_state`, for `fill` and `writeback`;
    - counters: `COUNTERS`, whose values `counters` returns. Sectors that the scheme moves for its own reasons count as
      kinds of traffic from `SCHEME_TRAFFIC` on, waits for its own resources in queues from `SCHEME_QUEUE` on.

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
    #: Sections of machine files by name (classes derived from `buddysim.machine.section.Section`).
    SECTIONS: dict[str, type] = {}
    #: Names of the scheme's own kinds of traffic in device memory, by pseudo-channel in results: `SCHEME_TRAFFIC` and the next.
    TRAFFIC: tuple[str, ...] = ()
    #: Names of the scheme's own queues, whose waits results list: `SCHEME_QUEUE` and the next.
    QUEUES: tuple[str, ...] = ()
    #: Kinds of bytes that entries take in addition to `device`, and the memory in which each lies: `device memory`, or one that
    #: `capacities` names.
    FOOTPRINT: dict[str, str] = {}
    #: Counters of the scheme: unit, colon, definition.
    COUNTERS: dict[str, str] = {}
    #: Counters that the engine counts for the scheme, by their names in results: of `TRAFFIC`, `QUEUES` and `FOOTPRINT`, of its
    #: allocations, utilization of what `COUNTERS` ending in `_busy_ps` count.
    ENGINE_COUNTERS: dict[str, str] = {}
    #: Rows that the scheme adds to the screen of `run` (`buddysim.replay.component.shown.ShownRow`).
    SHOWN: tuple = ()
    #: Equations between counters that hold in every result, with the counters' names in backticks.
    LAWS: tuple[str, ...] = ()

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

    @staticmethod
    def placement(machine, target):
        """Returns the memory of an allocation with a target ratio (`Placement`), and the device sectors of each of its entries."""
        raise NotImplementedError

    @staticmethod
    def entry_bytes(machine, target):
        """Returns the bytes that an entry with a target ratio takes: of `device` and the kinds of `FOOTPRINT`."""
        raise NotImplementedError

    @staticmethod
    def capacities(machine):
        """Returns the size of each memory that the scheme adds, in bytes."""
        return {}

    @staticmethod
    def allocation_counters(fills, writebacks, overflow_accesses):
        """Returns the scheme's counters of an allocation.

        Parameters
        ----------
        fills, writebacks : of its entries
        overflow_accesses : those that also reached memory behind the link
        """
        return {}

    @staticmethod
    def profile_options(options, machine):
        """Returns the options of a profile that gives the targets on a machine."""
        return options

    @property
    def has_faults(self):
        """Whether an access may have to wait until its page is in memory; decided by `configure`."""
        return self.on_access != NULL

    def device_bytes(self, occupied_bytes):
        """Returns the device memory that the scheme uses for the program's device allocations, in bytes.

        Parameters
        ----------
        occupied_bytes : their size at its peak, under their targets and with metadata
        """
        return occupied_bytes

    cdef int64_t requests(self, const MemorySystem* m, int queue):
        """Requests so far of the scheme's own queue number `queue`, with those that did not wait."""
        return 0

    cdef int prepare(self, MemorySystem* m, Arena* arena) except -1:
        """Allocates the scheme's state (`arena_zeroed`) and sets `m.scheme_state`, after allocations and entry sizes are set up."""
        return 0

    cdef dict counters(self, const MemorySystem* m):
        """Values of `COUNTERS` so far."""
        return {}
