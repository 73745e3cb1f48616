"""docs/reference/machine-keys.md names every key, its default, its range and its meaning.

tools/reference writes the page; this test reads it in another way.
"""

from __future__ import annotations

import re
from pathlib import Path

from buddysim.machine.model import keys
from buddysim.machine.training_table import HostLinkConfig, TrainingConfig
from buddysim.machine.units import format_size

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "machine-keys.md"
ROW = re.compile(
    r"^\| `(?P<key>[\w.]+)` \| (?P<kind>[a-z ]+) \| (?P<default>[^|]*) \| (?P<range>[^|]*) \| (?P<meaning>.*) \|$",
    re.MULTILINE,
)


def test_every_key_is_documented_as_it_is() -> None:
    rows = {row["key"]: row for row in ROW.finditer(DOCUMENT.read_text(encoding="utf-8"))}
    fields = dict(keys())
    fields |= {f"training.{name}": field for name, field in TrainingConfig.model_fields.items() if name != "links"}
    fields |= {f"training.links.NAME.{name}": field for name, field in HostLinkConfig.model_fields.items()}
    assert list(rows) == list(fields)
    for key, field in fields.items():
        assert rows[key]["meaning"] == field.description, key
        if field.is_required():
            expected = "-"
        elif field.default is None:
            expected = "none"
        elif rows[key]["kind"] == "size":
            expected = f"`{format_size(field.default)}`"
        else:
            expected = f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"
        assert rows[key]["default"] == expected, key
        assert rows[key]["range"], key
