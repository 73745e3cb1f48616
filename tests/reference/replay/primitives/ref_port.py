"""The reference model of `port`: a port's buckets as a dictionary."""

from __future__ import annotations

BUCKET_BITS, FINE_BITS = 16, 10
BUCKET_FINE = 1 << (BUCKET_BITS + FINE_BITS)


class RefPortBuckets:
    """A port with a bandwidth. Costs are in 1/1024 ps, a bucket is 65.5 ns and holds as much cost."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}

    def request(self, t_ps: int, cost: int) -> int:
        """Sends a request of `cost`, at least 1, that arrives at `t_ps`; when it is granted (ps)."""
        bucket, rest = t_ps >> BUCKET_BITS, cost
        while rest > BUCKET_FINE - self.used.get(bucket, 0):
            rest -= BUCKET_FINE - self.used.get(bucket, 0)
            self.used[bucket] = BUCKET_FINE
            bucket += 1
        taken = self.used.get(bucket, 0) + rest
        self.used[bucket] = taken
        return max(t_ps, (bucket << BUCKET_BITS) + ((taken - cost) >> FINE_BITS))
