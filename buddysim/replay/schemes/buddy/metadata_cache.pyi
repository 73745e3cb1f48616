COUNTERS: dict[str, str]
