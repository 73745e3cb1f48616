from buddysim.replay.l1.banking.base import L1BankingBase

ORDER: int

class L1Banking(L1BankingBase): ...
