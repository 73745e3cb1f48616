"""Points of the training engine: `buddysim.training.simulate`."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from buddysim.base import plugins
from buddysim.base.errors import BuddysimError
from buddysim.base.hints import hint, shortened
from buddysim.base.option import field_options
from buddysim.machine.training import TrainingMachine
from buddysim.sweep import axis
from buddysim.sweep.axis import Axis, Value, canonical, file_value
from buddysim.sweep.contents import content_checksum, stamp_of
from buddysim.sweep.engine_protocol import Settings, plugin_checksums, require_file
from buddysim.sweep.engines import machines
from buddysim.training import schemes, zoo
from buddysim.training.driver import simulate_request
from buddysim.training.named_network import load_network
from buddysim.training.networks.graph import Network
from buddysim.training.options.config_options import ConfigOptions
from buddysim.training.request import DEFAULTS, TrainingRequest, no_machine, request_options
from buddysim.training.result import TrainingResult, network_checksum
from buddysim.training.schemes._codec_times import missing_codecs_text
from buddysim.training.search import LARGEST_BATCH
from buddysim.training.version import MODEL_VERSION

NAME = "training"
SUBJECT = "network"
TIME = "time_ms"
KEYS_READ = ("training.link", "training.conv_library")
BASELINE = None  # every result has `performance_vs_oracle`
AGAINST = None

#: Parameters of `simulate_outcome` and `CostModel.load` that others of them stand for.
WITHOUT_EFFECT = ("cost", "options", "keywords")
#: Kinds of plug-ins that a training depends on.
PLUGIN_KINDS = ("compressor", "training scheme", "network", "layer kind", "architecture", "recipe", "optimizer")

_PROCESS_BYTES = 300 * 2**20


def _network_name(explicit: object) -> str:
    name = axis.text(explicit)
    return (
        name if name in zoo.REGISTRY or not (os.sep in name or name.endswith((".toml", ".json"))) else file_value(name)
    )


#: Readers of the values of options that are more than their type.
_READERS: dict[str, axis.Reader] = {"network": _network_name, "machine": machines.machine_name}
#: Axes of networks from a configuration alone.
_OF_CONFIGS = tuple(field_options(ConfigOptions))
#: Axes whose default depends on the kind of network, as `DEFAULTS` has them.
_BY_NETWORK = ("batch", "machine", "scheme", "optimizer")
_AXES = {name: axis.option_axis(option, _READERS.get(name)) for name, option in request_options().items()}


def model_version() -> int:
    return MODEL_VERSION


@plugins.cached_by_plugins
def axes() -> dict[str, Axis]:
    """Axes of every training, and the options that schemes declare; not to be changed."""
    return _AXES | {name: axis.option_axis(option) for name, option in schemes.options().items() if name not in _AXES}


def checked(settings: Settings, names: Iterable[str]) -> None:
    """Refuse wrong values of these axes."""
    every = axes()
    for name in names:
        value = settings.get(name)
        if every[name].file and value is not None:
            require_file(str(value), name)
    full = normalised(settings)
    schemes.REGISTRY.find(str(full["scheme"]))
    named: dict[str, Any] = {
        name: settings[name] for name in ("precision", *_OF_CONFIGS) if settings.get(name) is not None
    }
    TrainingRequest.of(network=network(str(full["network"])), **named).load_network()
    batch = settings.get("batch", 1)
    if not isinstance(batch, int) or not 1 <= batch <= LARGEST_BATCH:
        raise BuddysimError(f"batch {batch}: expected 1 to {LARGEST_BATCH}")
    machine = _base_machine(settings)
    link = settings.get("link")
    if link is not None and link not in machine.links:
        raise BuddysimError(
            f"link {shortened(link)}: expected one of {', '.join(machine.links)}{hint(str(link), machine.links)}"
        )


def normalised(settings: Settings) -> dict[str, Value]:
    """Return the settings with all defaults, the machine's included, without options that the scheme lacks."""
    full: dict[str, Value] = {name: each.default for name, each in _AXES.items()}
    explicit = {name: value for name, value in settings.items() if value is not None and "." not in name}
    full |= {name: value for name, value in explicit.items() if name in _AXES}
    defaults = DEFAULTS[network(str(full["network"])).recorded]
    full |= {
        name: default if full[name] is None else full[name] for name, default in zip(_BY_NETWORK, defaults, strict=True)
    }
    if not network(str(full["network"])).recorded:
        full = {name: value for name, value in full.items() if name not in _OF_CONFIGS}
    full["machine"] = _machine_name(full)
    declared = getattr(schemes.REGISTRY.find(str(full["scheme"])), "OPTIONS", {})
    full |= {name: explicit.get(name, option.default) for name, option in declared.items()}
    machine = _base_machine(full)
    overridden = {key: value for key, value in settings.items() if key in KEYS_READ}
    full["link"] = full["link"] or overridden.get("training.link") or machine.link
    if full["calibration"] is None:
        full["conv_library"] = full["conv_library"] or overridden.get("training.conv_library") or machine.library
    return full


def machine_value(settings: Settings, key: str, value: object) -> Any:
    return machines.canonical_value(TrainingMachine, _machine_name(settings), key, value)


def identity(settings: Settings) -> dict[str, str]:
    """See `Engine.identity`."""
    full, every = normalised(settings), axes()
    texts = {
        name: canonical(content_checksum(str(value)) if every[name].file and value is not None else value)
        for name, value in full.items()
        if name not in ("machine", "network")
    }
    texts["machine_name"] = canonical(_base_machine(full).name)  # the calibration is that of the name
    texts["network"] = _network_identity(str(full["network"]), _stamp(str(full["network"])), plugins.modules())
    missing = missing_codecs_text({"codec": full["codec"]}) if "codec" in full else ""
    if missing:  # another result where the library is installed
        texts["codec"] = canonical(f"{full['codec']} {missing}")
    for file, checksum in plugin_checksums(PLUGIN_KINDS).items():
        texts[f"plugin:{file}"] = checksum
    return texts


def machine_identity(settings: Settings) -> str:
    return machines.checksum(TrainingMachine, _machine_name(settings), machines.overrides_of(settings))


def check_machine(settings: Settings) -> None:
    _machine(settings)


def columns(settings: Settings) -> dict[str, Value]:
    """See `Engine.columns`."""
    full, machine = normalised(settings), _machine(settings)
    texts: dict[str, Value] = {**full, "machine": machine.name, "network": network(str(full["network"])).name}
    for key, value in machines.in_base_units(machine, {}).items():
        if not key.startswith("training.links."):
            texts[key] = value
        elif key.startswith(f"training.links.{full['link']}."):
            texts[f"link.{key.rpartition('.')[2]}"] = value
    return texts


def result_columns(settings: Settings, result: Mapping[str, Any]) -> dict[str, Value]:
    """Return nothing: the counters say all."""
    return {}


def simulate(settings: Settings) -> TrainingResult:
    """See `Engine.simulate`."""
    full = normalised(settings)
    own = {name: full[name] for name in _AXES if name in full}
    explicit = {name: full[name] for name in full if name not in _AXES and settings.get(name) is not None}
    loaded: dict[str, Any] = {"network": network(str(full["network"])), "machine": _machine(settings)}
    request = TrainingRequest.of(**{**own, **explicit, **loaded})
    return TrainingResult.from_outcome(simulate_request(request))


def memory_bytes(settings: Settings) -> int:
    """A process with the engine, and the observed feature maps."""
    maps = settings.get("activations")
    return _PROCESS_BYTES + (2 * Path(str(maps)).stat().st_size if maps is not None else 0)


def network(name: str) -> Network:
    """The network of a name or of a file, loaded again when the file has changed."""
    return _network(name, _stamp(name), plugins.modules())


def _stamp(path: str) -> object:
    return stamp_of(path) if path.startswith(os.sep) else None


@lru_cache(64)
def _network(name: str, stamp: object, plugin_modules: tuple[ModuleType, ...]) -> Network:
    return load_network(name)


@lru_cache(1024)
def _network_identity(name: str, stamp: object, plugin_modules: tuple[ModuleType, ...]) -> str:
    loaded = _network(name, stamp, plugin_modules)
    if hasattr(loaded, "identity"):
        return hashlib.sha256(loaded.identity.encode()).hexdigest()
    names = "\n".join([loaded.name, *(layer.name for layer in loaded.layers)])
    return f"{network_checksum(loaded)}:{hashlib.sha256(names.encode()).hexdigest()}"


def _base_machine(settings: Settings) -> TrainingMachine:
    return machines.base_machine(TrainingMachine, _machine_name(settings))


def _machine_name(settings: Settings) -> str:
    named = settings.get("machine") or DEFAULTS[network(str(settings["network"])).recorded].machine
    if named is None:
        raise no_machine(str(settings["network"]))
    return str(named)


def _machine(settings: Settings) -> TrainingMachine:
    return machines.changed_machine(TrainingMachine, _machine_name(settings), machines.overrides_of(settings))
