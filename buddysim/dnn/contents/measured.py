"""Contents of maps from a file of activations that were captured, or measured, while a network was trained.

Densities and sizes of codes are means over the training: straight lines between the points of the file, by iteration;
or those of one point, the nearest to an epoch. A layout, window or algorithm whose sizes the file doesn't have is
computed from the maps that it holds itself. `buddysim.dnn.contents.observed` carries them over to other networks.
"""

from __future__ import annotations

from buddysim.compress.tensors import tensor_ratios
from buddysim.dnn.activations import Activations, MapInfo, load
from buddysim.dnn.contents.interpolate import mean_over
from buddysim.dnn.contents.maps import Codec, MapContents
from buddysim.dnn.contents.observed import Observed, ObservedContents
from buddysim.dnn.graph import Network
from buddysim.errors import BuddysimError

_POOLS = ("maxpool", "avgpool")


class MeasuredContents:
    """What a file of activations says of a network's maps.

    Parameters
    ----------
    activations : the file, read
    epoch : of the point to take; None: the mean of all
    """

    def __init__(self, activations: Activations, epoch: float | None = None) -> None:
        self.activations = activations
        self.points = list(range(len(activations.points)))
        if not self.points:
            raise BuddysimError(f"{activations.path}: has no point of the training: expected at least one")
        if epoch is not None:
            if epoch < 0:
                raise BuddysimError(f"epoch {epoch!r}: expected a number from 0")
            self.points = [min(self.points, key=lambda i: abs(activations.points[i].epoch - epoch))]
        self.description = self._description(epoch)

    def contents(self, network: Network, batch: int, codec: Codec) -> dict[int, MapContents]:
        """The contents of every layer's output; the batch plays no part, since a share has no size."""
        return ObservedContents(self.observed(codec), self.description).contents(network, batch, codec)

    def observed(self, codec: Codec) -> list[Observed]:
        """The file's maps behind ReLU and pooling layers, in the order of the file."""
        found = []
        for number, info in enumerate(self.activations.maps):
            kind = _kind(info)
            if kind is None:
                continue
            densities, shares = [], []
            for point in self.points:
                statistics = self.activations.points[point].statistics(number)
                if statistics is not None:
                    iteration = float(self.activations.points[point].iteration)
                    densities.append((iteration, statistics.density))
                    share = None if codec.algorithm == "zvc" else self._share(point, number, codec)
                    if share is not None:
                        shares.append((iteration, share))
            if densities:
                by_codec = {codec: mean_over(shares)} if shares else {}
                found.append(Observed(kind, info.depth, mean_over(densities), by_codec))
        return found

    def _share(self, point: int, number: int, codec: Codec) -> float | None:
        """Bytes of a map's code over the map's, if the file tells."""
        statistics = self.activations.points[point].statistics(number)
        assert statistics is not None
        for ratio in statistics.ratios():
            if (ratio.algorithm, ratio.layout, ratio.window) == (codec.algorithm, codec.layout, codec.window):
                return ratio.bits / (8 * ratio.raw_bytes)
        if (point, number) in self.activations.stored_values:
            values = self.activations.values(point, number)
            if values.dtype.itemsize == 4 and values.ndim in (2, 4):
                (ratio,) = tensor_ratios(values, [codec.layout], [codec.window], [codec.algorithm])
                return ratio.bits / (8 * ratio.raw_bytes)
        return None

    def _description(self, epoch: float | None) -> str:
        made = self.activations.provenance
        what = " on ".join(made[key] for key in ("network", "data") if key in made)
        points = [self.activations.points[i] for i in self.points]
        when = (
            f"mean of {len(points)} points, iterations {points[0].iteration} to {points[-1].iteration}"
            if epoch is None
            else f"iteration {points[0].iteration}, epoch {points[0].epoch:g}"
        )
        return f"measured: {self.activations.path.name}{f' ({what})' if what else ''}, {when}"


def measured(path: str | None, epoch: float | None = None) -> MeasuredContents:
    """From an activations file; None: the one that ships with the package."""
    return MeasuredContents(load(path), epoch)


def _kind(info: MapInfo) -> str | None:
    """What it is to `buddysim.dnn.contents.maps`; None for maps that aren't asked for."""
    if info.kind == "relu":
        return "relu" if info.part == "features" else "fc-relu"
    return "pool" if info.kind in _POOLS and info.part == "features" else None
