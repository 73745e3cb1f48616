class BusReservations:
    pages: int
    pushed: int

    def __init__(
        self,
        burst_ps: int,
        ccd_slots: int,
        refresh_ps: int = ...,
        refresh_interval_ps: int = ...,
        max_pages: int = ...,
    ) -> None: ...
    def reserve(self, now_ps: int, slot: int, bursts: int) -> tuple[int, int]: ...
    def release(self, now_ps: int, slot: int) -> None: ...
