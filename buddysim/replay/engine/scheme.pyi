class SchemeBase:
    uses_targets: bool
    uses_sizes: bool
    assumptions: dict[str, str]

def scheme_names() -> list[str]: ...
def load_scheme(name: str) -> SchemeBase: ...
