"""Training schemes: how one training iteration uses the memory of the GPU, one file of this folder per family.

A scheme's file has:

- ``SUMMARY``: for each name of a scheme, a phrase that describes it;
- ``plan(network, batch, machine, cost, name, options) -> Plan``;
- ``FACTS`` (optional, but for shipped schemes): a `buddysim.training.scheme_facts.SchemeFacts`, for their page;
- ``OPTIONS`` (optional): the scheme's options by name (`buddysim.base.option`);
- ``FAMILY`` (optional): the heading of its schemes in lists;
- ``ORDER`` (optional): its position in lists; positions of one family are adjacent;
- ``ACCURACY`` (optional): the effect on the accuracy of the trained network, a text or a function of the name;
- ``MODEL_ACCURACY`` (optional): the same on models of a configuration, where it differs;
- ``UNLIMITED = True`` (optional): the GPU has as much memory as the scheme takes;
- ``PAPERS_ONLY = True`` (optional): no scheme for networks from a configuration, a `transformers` model or a capture;
- ``REQUIRES_ONE_OF`` (optional): names of options of which at least one must be given;
- ``FITS_AS`` (optional, for searches): by name, a scheme that is planned faster and fits whenever this one does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType

from buddysim.base.errors import BuddysimError
from buddysim.base.option import Option
from buddysim.base.plugin_modules import source_of
from buddysim.base.plugins import cached_by_plugins
from buddysim.base.registry import Registry

CONTRACT = ("SUMMARY", "plan")
OTHER_FAMILY = "other"
#: `ACCURACY` of a scheme that changes no value of the training.
UNCHANGED = "unchanged (lossless)"


def _adopt(module: ModuleType) -> Mapping[str, ModuleType]:
    summary = getattr(module, "SUMMARY", None)
    return dict.fromkeys(summary, module) if isinstance(summary, Mapping) and hasattr(module, "plan") else {}


#: The file of each scheme, by the name that it answers to.
REGISTRY: Registry[ModuleType] = Registry("training scheme", __name__, CONTRACT, _adopt)


def accuracy(name: str, recorded: bool = False) -> str:
    """The effect of a scheme on the accuracy: `UNCHANGED`, a measured difference, or ``"not measured"``.

    Parameters
    ----------
    recorded : of a model of a configuration, `Network.recorded`
    """
    module = REGISTRY.find(name)
    stated = getattr(module, "ACCURACY", "not measured")
    if recorded:
        stated = getattr(module, "MODEL_ACCURACY", stated)
    return str(stated(name) if callable(stated) else stated)


def family(name: str) -> str:
    """The family of a scheme: ``"baselines"``, ``"vdnn"``, .. ; ``"other"`` for a plug-in without ``FAMILY``."""
    return str(getattr(REGISTRY.find(name), "FAMILY", OTHER_FAMILY))


def by_family() -> dict[str, list[str]]:
    """The names of all schemes by family, both in the order of the registry."""
    names: dict[str, list[str]] = {}
    for name in REGISTRY.names():
        names.setdefault(family(name), []).append(name)
    return names


def required_options(name: str) -> tuple[str, ...]:
    """Options of a scheme of which at least one must be given; none for most schemes."""
    return tuple(getattr(REGISTRY.find(name), "REQUIRES_ONE_OF", ()))


def runnable_schemes(options: Iterable[str] = (), recorded: bool = False) -> list[str]:
    """Names of the schemes that can run with the given options alone; `recorded`: on recorded networks."""
    known = set(options)
    return [
        name
        for name in REGISTRY.names()
        if (not required_options(name) or known & set(required_options(name)))
        and not (recorded and getattr(REGISTRY.find(name), "PAPERS_ONLY", False))
    ]


@cached_by_plugins
def options() -> dict[str, Option]:
    """The options of all schemes, by name, in the order of the schemes; not to be changed.

    Raises
    ------
    BuddysimError
        where a scheme declares something else, or two schemes declare an option of the same name differently
    """
    by_name: dict[str, Option] = {}
    for _, module in REGISTRY.items():
        for name, option in getattr(module, "OPTIONS", {}).items():
            if not isinstance(option, Option) or not name.isidentifier():
                raise BuddysimError(f"{source_of(module)}: option {name!r}: expected an identifier and an Option")
            if by_name.setdefault(name, option) != option:
                raise BuddysimError(f"{source_of(module)}: option {name!r}: another scheme declares it differently")
    return by_name


def schemes_with(option: str) -> list[str]:
    """The names of the schemes that have an option of that name."""
    return [name for name, module in REGISTRY.items() if option in getattr(module, "OPTIONS", {})]
