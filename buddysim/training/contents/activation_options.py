"""Options of schemes that compress feature maps: the source of their contents, and the compressor."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from buddysim.base.errors import BuddysimError
from buddysim.base.hints import shortened
from buddysim.base.option import Option, values
from buddysim.compress.layouts import LAYOUTS
from buddysim.training.contents import ActivationSource, Codec
from buddysim.training.not_simulated import NotSimulatedError

if TYPE_CHECKING:
    from buddysim.training.networks.graph import Network

_GROUP = "feature maps, for schemes that compress them (default: the bundled observation of a small training)"

OPTIONS = {
    "activations": Option(str, "activations file with feature maps observed in a training", "FILE", group=_GROUP),
    "epoch": Option(float, "epoch whose observations are used (default: the mean over all epochs)", "N", group=_GROUP),
    "repeated_values": Option(
        bool, "keep the values of observed feature maps (without them, noise replaces every nonzero value)",
        default=True, group=_GROUP,
    ),
    "density_table": Option(str, "TOML or CSV table of densities or compression ratios by layer", "FILE", group=_GROUP),
    "synthetic_density": Option(float, "density of synthetic feature maps, 0 to 1", "FRACTION", group=_GROUP),
    "synthetic_cluster": Option(
        int, "edge of the squares of zeros in synthetic feature maps, in elements", "N", 1, _GROUP
    ),
    "seed": Option(int, "seed of the synthetic feature maps", "N", 0, _GROUP),
    "map_layout": Option(
        str, f"order of the feature maps' axes in memory: {', '.join(LAYOUTS)}", "NAME", LAYOUTS[0], _GROUP
    ),
    "codec_window": Option(int, "bytes that are compressed at a time", "BYTES", 4096, _GROUP),
    "mask_bytes": Option(
        bool, "count mask bytes in compressed sizes (the cDMA paper's ratios do not)", default=True, group=_GROUP
    ),
}  # fmt: skip

#: Rules that assign observed feature maps to those of a network: one to one, or by relative depth.
LAYER, DEPTH = MAPPINGS = ("layer", "depth")
#: Options of schemes that decide about each feature map separately.
MAPPING_OPTION = {
    "activation_mapping": Option(
        str,
        f"rule that assigns observed feature maps to layers: {LAYER}, one to one; {DEPTH}, by relative depth",
        "RULE", LAYER, _GROUP,
    ),
}  # fmt: skip

#: Options that each select a source of contents.
SOURCES = ("activations", "density_table", "synthetic_density")
#: Options that are valid with one source only: option, source.
_BELONGS = {
    "synthetic_cluster": "synthetic_density",
    "seed": "synthetic_density",
    "epoch": "activations",
    "repeated_values": "activations",
    "activation_mapping": "activations",
}


def make_source(network: Network, options: Mapping[str, Any]) -> ActivationSource:
    """Make the source that the options select: observed activations, a table, or synthetic activations.

    Without one, it is the bundled observation of a small training; of a recorded network, that of small transformers.

    Parameters
    ----------
    options : options by name; None: not given

    Raises
    ------
    BuddysimError
        if two sources are selected, or an option belongs to another source
    """
    check_arrays()
    from buddysim.training.contents.observed_activations import observed_activations
    from buddysim.training.contents.recorded_densities import RecordedDensities

    selected = _selected_options(options)
    if network.recorded and all(selected[name] is None for name in SOURCES):
        return RecordedDensities()
    return _other_source(selected) or observed_activations(
        selected["activations"], selected["epoch"], selected["repeated_values"]
    )


def make_mapped_source(network: Network, options: Mapping[str, Any]) -> ActivationSource:
    """Make a source whose feature maps correspond to the network's own, layer by layer.

    An activations file must be of the same layers, unless ``activation_mapping`` is ``depth``. If no source is
    selected, it is the bundled reduced training of this network; without one, the bundled training of another network,
    by depth.

    Parameters
    ----------
    options : options by name; None: not given

    Raises
    ------
    BuddysimError
        if the mapping is unknown, two sources are selected, or the activations file is of other layers
    """
    check_arrays()
    from buddysim.training.contents.observed_activations import ObservedActivations, observed_activations
    from buddysim.training.contents.one_to_one import OneToOneContents
    from buddysim.training.contents.reduced_trainings import training_of

    selected = _selected_options(options) | values(MAPPING_OPTION, options)
    if selected["activation_mapping"] not in MAPPINGS:
        mapping = shortened(selected["activation_mapping"])
        raise BuddysimError(f"activation_mapping {mapping}: expected one of {', '.join(MAPPINGS)}")
    other = _other_source(selected)
    if other is not None:
        return other
    path, epoch, repeated_values = selected["activations"], selected["epoch"], selected["repeated_values"]
    if path is None and (training := training_of(network)) is not None:
        return OneToOneContents(ObservedActivations(training, epoch, repeated_values), network)
    observed = observed_activations(path, epoch, repeated_values)
    return observed if path is None or selected["activation_mapping"] == DEPTH else OneToOneContents(observed, network)


def check_arrays() -> None:
    """Refuse schemes that compress values where neither arrays nor compressors are installed, as in a browser."""
    if find_spec("numpy") is None:
        raise NotSimulatedError(
            "schemes that compress feature maps",
            "no NumPy and no compiled compressors here",
            "buddysim from its source",
        )


def _selected_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every option; at most one of them selects a source."""
    selected = values(OPTIONS, options)
    named = [name for name in SOURCES if selected[name] is not None]
    if len(named) > 1:
        raise BuddysimError(f"{' and '.join(named)}: expected one source of activations")
    source = named[0] if named else "activations"
    for name, owner in _BELONGS.items():
        if options.get(name) is not None and owner != source:
            raise BuddysimError(f"{name}: goes with {owner}, not with {source}")
    return selected


def _other_source(selected: Mapping[str, Any]) -> ActivationSource | None:
    """Return the table or the synthetic activations that an option selects; None: neither."""
    from buddysim.training.contents.density_table import TableContents
    from buddysim.training.contents.generated import GeneratedContents

    if selected["density_table"] is not None:
        return TableContents.read(selected["density_table"])
    if selected["synthetic_density"] is not None:
        return GeneratedContents(selected["synthetic_density"], selected["synthetic_cluster"], selected["seed"])
    return None


def contents_assumption(description: str) -> str:
    """Return the assumption about the contents of feature maps, as a sentence.

    Parameters
    ----------
    description : the source's `ActivationSource.description`
    """
    return f"Feature maps compress as in {description}; those of another training compress more or less."


def make_codec(compressor: str, options: Mapping[str, Any]) -> Codec:
    """Make the codec that the options describe.

    Parameters
    ----------
    compressor : a name of `buddysim.compress`
    options : options by name; None: not given

    Raises
    ------
    BuddysimError
        if the layout is unknown, or the window is invalid for the compressor
    """
    check_arrays()
    from buddysim.compress.compressors import find
    from buddysim.compress.size_classes import ENTRY_BYTES
    from buddysim.compress.windows import check_window

    selected = values(OPTIONS, options)
    if selected["map_layout"] not in LAYOUTS:
        raise BuddysimError(f"map_layout {shortened(selected['map_layout'])}: expected one of {', '.join(LAYOUTS)}")
    module = find(compressor)
    window = selected["codec_window"]
    if "window" not in module.OPTIONS:
        if options.get("codec_window") not in (None, ENTRY_BYTES):
            raise BuddysimError(f"codec_window {window}: {compressor} has no windows, but entries of {ENTRY_BYTES} B")
        window = ENTRY_BYTES
    check_window(compressor, window, 4)
    masks = selected["mask_bytes"] or not getattr(module, "MASK_BITS_PER_WORD", 0)
    return Codec(compressor, selected["map_layout"], window, masks)
