from typing import ClassVar

from buddysim.machine.section import Section

class SchemeBase:
    uses_targets: bool
    uses_sizes: bool
    assumptions: dict[str, str]
    SECTION: ClassVar[type[Section] | None]

def scheme_names() -> list[str]: ...
def load_scheme(name: str) -> SchemeBase: ...
