"""The base of the policies of all kinds."""


cdef class Component:
    """What a machine file chooses by name: one module, whose name is the value of the key.

    Each kind has a class derived from this one, with its hooks. An instance serves one run, and its state lies in the run's arena.
    """

    #: Description for lists, one line.
    SUMMARY = ""

    @staticmethod
    def misfits(machine):
        """Yields a text for each key of a machine that the policy does not fit: the key, colon, what was expected.

        Parameters
        ----------
        machine : Machine
        """
        yield from ()
