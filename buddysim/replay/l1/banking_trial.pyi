from collections.abc import Sequence

from buddysim.replay.l1.banking.base import L1BankingBase

def entry_times(
    numbers: dict[str, object], banking: L1BankingBase, instructions: Sequence[tuple[int, Sequence[int]]]
) -> list[tuple[list[int], int]]: ...
