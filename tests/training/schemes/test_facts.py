"""Facts of the shipped schemes: each file has them, and the checks that they name exist."""

from __future__ import annotations

import re
from pathlib import Path

from buddysim.training import schemes
from buddysim.training.scheme_facts import SchemeFacts
from tests.docs.generated import exists

ROOT = Path(__file__).parents[3]


def test_every_shipped_scheme_has_facts_and_checks_that_exist():
    for name, module in schemes.REGISTRY.items():
        if module.__name__.startswith("buddysim."):
            facts = module.FACTS
            assert isinstance(facts, SchemeFacts), name
            assert all(facts), name
            named = re.findall(r"`((?:tests|docs)/[^`]+)`", facts.check)
            assert named, name
            assert all(exists(ROOT / path) for path in named), (name, named)
