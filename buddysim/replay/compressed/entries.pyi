COUNTERS: dict[str, str]
LAWS: tuple[str, ...]
