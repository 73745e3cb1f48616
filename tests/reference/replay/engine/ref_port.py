"""The reference model of `port`: a port's buckets as a dictionary."""

from __future__ import annotations

BUCKET_BITS, FINE_BITS, BUCKETS = 16, 10, 512
BUCKET_FINE = 1 << (BUCKET_BITS + FINE_BITS)


class RefPortBuckets:
    """A port with a bandwidth. Costs are in 1/1024 ps, a bucket is 65.5 ns and holds as much cost."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.oldest = 0

    def request(self, now_ps: int, t_ps: int, cost: int) -> int:
        """Sends a request of `cost`, at least 1, that arrives at `t_ps`, from `now_ps` on; when it is granted (ps)."""
        self.oldest = max(self.oldest, now_ps >> BUCKET_BITS)
        bucket = max(self.oldest, t_ps >> BUCKET_BITS)
        rest = cost
        while True:
            self.oldest = max(self.oldest, bucket - BUCKETS + 1)
            left = BUCKET_FINE - self.used.get(bucket, 0)
            if rest <= left:
                break
            rest -= left
            self.used[bucket] = BUCKET_FINE
            bucket += 1
        taken = self.used.get(bucket, 0) + rest
        self.used[bucket] = taken
        return max(t_ps, (bucket << BUCKET_BITS) + ((taken - cost) >> FINE_BITS))
