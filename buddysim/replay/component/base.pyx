"""The base of the policies of all kinds."""


cdef class Component:
    """What a machine file chooses by name: one module, whose name is the value of the key.

    Each kind has a class derived from this one, with its hooks. An instance serves one run, and its state lies in the run's arena.
    """

    #: Description for lists, one line.
    SUMMARY = ""
    #: The policy's section of machine files, `[KIND.NAME]` with underscores: a class derived from
    #: `buddysim.machine.section.Section` whose keys have defaults; None: it has no keys of its own.
    SECTION = None

    def configure(self, machine):
        """Takes what the policy needs of a machine (`Machine.section_of` has its keys), before the engine is created.

        Parameters
        ----------
        machine : Machine
        """

    @staticmethod
    def misfits(machine):
        """Yields a text for each key of a machine that the policy does not fit: the key, colon, what was expected.

        Parameters
        ----------
        machine : Machine
        """
        yield from ()
