"""Published models, from their configurations (`architectures.published`): recorded networks.

GPT-2 and GPT-2 medium are described layer by layer (`transformers`), with settings of their own; their configurations
are files to give.
"""

from __future__ import annotations

from functools import partial

from buddysim.training.architectures import published
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.recorded_step.from_config import ConfigNetwork
from buddysim.training.zoo import transformers

RECORDED = True


def _published(name: str) -> ConfigNetwork:
    return ConfigNetwork(published.published_config(name), ConfigOptions())


NETWORKS = {name: partial(_published, name) for name in published.names() if name not in transformers.NETWORKS}
