"""Contents of any network's feature maps, from feature maps observed in the training of another network.

A ReLU has the density observed behind ReLUs of its kind (CONV or FC) at its relative depth. Densities are interpolated
linearly between neighbouring depths. A pooling layer retains the fraction of its input's zeros that was observed at its
relative depth. The size under ZVC is exact, given the density. Sizes under another compressor keep the observed ratio
to the size under ZVC, by depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from buddysim.base.errors import BuddysimError
from buddysim.compress.zvc import fraction_of_density as zvc_fraction
from buddysim.training.contents.dense import dense
from buddysim.training.contents.interpolate import PiecewiseLinear
from buddysim.training.contents.maps import Codec, FeatureMapRole, MapContents, walk
from buddysim.training.networks.graph import Layer, Network


@dataclass(frozen=True)
class ObservedMap:
    """Observed feature map, at one point of the training or averaged over it.

    Attributes
    ----------
    kind, depth : as in `FeatureMapRole`
    density : fraction of nonzero elements
    compressed_fractions : compressed over uncompressed bytes, by codec
    """

    kind: str
    depth: float
    density: float
    compressed_fractions: Mapping[Codec, float] = field(default_factory=dict)


class DepthMappedContents:
    """Contents of a network's feature maps, by relative depth in another network.

    Parameters
    ----------
    observed : feature maps of one network, at least one of kind ``"relu"``
    description : origin of the observations

    Raises
    ------
    BuddysimError
        if no observation is of kind ``"relu"``
    """

    def __init__(self, observed: Iterable[ObservedMap], description: str) -> None:
        self.observed = tuple(observed)
        self.description = description
        if not any(o.kind == "relu" for o in self.observed):
            raise BuddysimError(
                f"{description}: has no feature map behind a CONV layer and a ReLU: expected at least one"
            )
        self._density = {
            kind: PiecewiseLinear.through((o.depth, o.density) for o in self._alike(kind))
            for kind in ("relu", "fc-relu", "pool")
        }
        self._retained_zero_fraction = PiecewiseLinear.through(
            (o.depth, _retained_zero_fraction(self._density["relu"].value_at(o.depth), o.density))
            for o in self._alike("pool")
        )

    def made_by(self, codec: Codec) -> str:
        """Return a phrase that says so: observations do not name their compressors."""
        return "unknown compressors"

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """Return the contents of every layer's output, by layer index; the batch has no effect on fractions.

        Raises
        ------
        BuddysimError
            if no observation has a compressed size under the codec
        """
        exact = codec.from_density
        relation = {} if exact else {kind: self._relation(kind, codec) for kind in ("relu", "fc-relu", "pool")}

        def sourced(role: FeatureMapRole, layer: Layer, before: MapContents) -> MapContents:
            if role.kind == "pool":
                assert before.density is not None
                density = 1 - (1 - before.density) * self._retained_zero_fraction.value_at(role.depth)
            else:
                density = self._density[role.kind].value_at(role.depth)
            compressed_fraction = (
                exact(density)
                if exact
                else relation[role.kind].value_at(role.depth) * zvc_fraction(density, codec.masks)
            )
            return MapContents(density, compressed_fraction, f"{role.kind} at depth {role.depth:.2f}")

        return walk(network, dense(codec), codec, sourced)

    def _alike(self, kind: str) -> tuple[ObservedMap, ...]:
        """Return the observations of a kind; if there are none, those of kind ``"relu"``."""
        same_kind = tuple(o for o in self.observed if o.kind == kind)
        return same_kind or tuple(o for o in self.observed if o.kind == "relu")

    def _relation(self, kind: str, codec: Codec) -> PiecewiseLinear:
        """Return the compressed size relative to ZVC's, as a function of depth."""
        sized = [o for o in self.observed if codec in o.compressed_fractions]
        alike = [o for o in sized if o.kind == kind] or [o for o in sized if o.kind == "relu"]
        references = [(o, zvc_fraction(o.density, codec.masks)) for o in alike]
        points = [(o.depth, o.compressed_fractions[codec] / reference) for o, reference in references if reference]
        if not points:
            codecs = sorted({str(key) for o in self.observed for key in o.compressed_fractions})
            raise BuddysimError(
                f"{self.description}: no sizes for {codec}: expected one of {'; '.join(codecs) or 'none'}"
            )
        return PiecewiseLinear.through(points)


def _retained_zero_fraction(before: float, after: float) -> float:
    """Return the fraction of zeros that pooling retains, from densities before and after; 1 without zeros."""
    return min((1 - after) / (1 - before), 1.0) if before < 1 else 1.0
