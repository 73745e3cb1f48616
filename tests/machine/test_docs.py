"""docs/reference/machine-keys.md names every key, its default, its range and its meaning.

tools/reference writes the page; this test reads it in another way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.machine import Machine
from buddysim.machine.model import keys
from buddysim.machine.scheme_sections import scheme_sections
from buddysim.machine.section import Section
from buddysim.machine.training import TrainingMachine
from buddysim.machine.training_table import HostLinkConfig, TrainingConfig
from buddysim.machine.units import format_size
from buddysim.replay.parameters import engine_numbers
from tests.docs.generated import page

PAGE = "reference/machine-keys.md"
ROW = re.compile(
    r"^\| `(?P<key>[\w.]+)` \| (?P<kind>[a-z ]+) \| (?P<default>[^|]*) \| (?P<range>[^|]*) \| (?P<meaning>.*) \|$",
    re.MULTILINE,
)


def test_every_key_is_documented_as_it_is() -> None:
    rows = {row["key"]: row for row in ROW.finditer(page(PAGE))}
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


#: For each rule between keys, by its first words: keys that break it on p100-nvlink2.
BROKEN: dict[str, dict[str, object]] = {
    "`sm.threads` is at least": {"sm.threads": 32},
    "`l1.size` is a multiple": {"l1.size": "600 B"},
    "`l2.size` is a multiple": {"l2.size": "1000 KiB"},
    "`l2.slices` is a multiple": {"l2.slices": 24, "l2.size": "3 MiB", "l2.partitions": 5},
    "`l2.fetch_granularity` is 32 B": {"l2.fetch_granularity": "48 B"},
    "`l2.max_dirty` is 0 B": {"l2.max_dirty": "32 B"},
    "`metadata_cache.line` is 32 B": {"metadata_cache.line": "48 B"},
    "`metadata_cache.size` is a multiple": {"metadata_cache.size": "5 KiB"},
    "`dram.banks` is a power": {"dram.banks": 12},
    "`dram.channels` x": {"dram.channels": 64, "dram.banks": 1024, "dram.bank_groups": 4},
    "`dram.row_bytes` is a multiple": {"dram.row_bytes": "1000 B"},
    "`dram.write_low_watermark` is below": {"dram.write_low_watermark": 60, "dram.write_high_watermark": 50},
    "`l2.load_to_use` includes": {"l2.load_to_use": "1 ns"},
    "`dram.load_to_use` also includes": {"dram.load_to_use": "190 ns", "l2.load_to_use": "189 ns"},
    "One of `l2.slices`": {"dram.channels": 3},
    "`l2.partitions` is 1": {"l2.partitions": 2, "crossbar.input_queued": True},
    "`dram.timing.tREFI` is 0": {"dram.timing.tREFI": "1 ns"},
    "`dram.timing.tCCD_L` is at most": {"dram.timing.tCCD_L": "10 us"},
    "Every time in `[dram.timing]`": {"dram.timing.tFAW": "11 us"},
    "All L1 caches together": {"l1.size": "16 MiB", "sm.count": 128},
    "`um.page_size`, `um.va_block_size`": {"um.page_size": "12 KiB"},
    "`um.va_block_size` is at least": {"um.va_block_size": "16 KiB"},
    "`um.eviction_granularity` is 0 B": {"um.eviction_granularity": "128 KiB"},
    '`um.fault_replay_scope = "sm"` needs': {"um.fault_replay_scope": "sm"},
    "`training.gpu_link` is a link": {"training.gpu_link": "nvlink9"},
    "`training.link` is a link": {"training.link": "pcie9"},
    "`training.max_pinned_memory` is": {"training.max_pinned_memory": "65 GiB", "training.host_memory": "64 GiB"},
}


def rules() -> set[str]:
    of_machine = [Machine, *sections_in(Machine), *scheme_sections().values()]
    return {rule for section in [*of_machine, TrainingConfig] for rule in section.RULES}


def sections_in(section: type[Section]) -> Iterator[type[Section]]:
    for field in section.model_fields.values():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield field.annotation
            yield from sections_in(field.annotation)


def test_the_page_has_every_rule() -> None:
    text = " ".join(page(PAGE).split())
    assert not [rule for rule in rules() if f"- {rule}" not in text]
    assert len(rules()) == len(BROKEN)


@pytest.mark.parametrize("first_words", BROKEN)
def test_a_machine_that_breaks_a_rule_is_refused(first_words: str) -> None:
    (rule,) = [rule for rule in rules() if rule.startswith(first_words)]
    overrides = BROKEN[first_words]
    key = next(iter(overrides)).rpartition(".")[2]
    assert key in rule or "[dram.timing]" in rule or "L1 caches" in rule
    use = use_in_training if rule.startswith("`training.") else use_in_replay
    with pytest.raises(BuddysimError, match=key):
        use(overrides)


def use_in_training(overrides: dict[str, object]) -> None:
    TrainingMachine.load("rtx-4090").with_overrides(overrides)


def use_in_replay(overrides: dict[str, object]) -> None:
    engine_numbers(Machine.load("p100-nvlink2").with_overrides(overrides), Fraction(1))
