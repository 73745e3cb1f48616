from collections.abc import Sequence

def carried_bytes(
    numbers: dict[str, object], policies: dict[str, object], payloads: Sequence[int]
) -> list[tuple[int, int, int]]: ...
