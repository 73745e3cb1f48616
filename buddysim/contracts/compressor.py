"""Contracts of compressors: lossless, sizes that are those of the payload, other payloads refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from buddysim.base.errors import BuddysimError
from buddysim.compress import ENTRY_BYTES, compress, compressed_bits, decompress
from buddysim.compress.compressors import entry_algorithms, profile_options, tensor_algorithms
from buddysim.contracts.contract import Contract, Subject
from buddysim.contracts.sample_data import entries, tensors

_WINDOWS = (128, 4096, 65536)
_WORD_BITS = 32
_THREADS = 4
_OPTION_TYPES = (bool, int, float, str, tuple)

Options = Mapping[str, Any]


class Trial(NamedTuple):
    """Data with the options they are compressed with.

    Attributes
    ----------
    what : the data, in words
    unit : bytes compressed on their own
    profiles : each call profiles its own data, and a payload carries that
    """

    what: str
    data: NDArray[np.uint8]
    options: Options
    unit: int
    profiles: bool = False

    @property
    def parts(self) -> list[NDArray[np.uint8]]:
        """The entries or windows."""
        return [self.data[first : first + self.unit] for first in range(0, len(self.data), self.unit)]


def _trials(subject: Subject) -> Iterator[Trial]:
    """Entries, then tensors in windows, as far as the compressor takes them."""
    if subject.name in entry_algorithms():
        data = entries()
        what, profile = f"{len(data) // ENTRY_BYTES} entries", profile_options(subject.member, [data])
        yield Trial(what, data, profile, ENTRY_BYTES)
        if profile:
            yield Trial(what, data, {}, ENTRY_BYTES, profiles=True)
    if subject.name in tensor_algorithms():
        for window in _WINDOWS:
            for tensor in tensors():
                yield Trial(f"{len(tensor)} B in windows of {window} B", tensor, {"window": window}, window)


def _odd_options(subject: Subject) -> Iterator[str]:
    options = subject.member.OPTIONS
    for name, default in options.items():
        if not str(name).isidentifier() or type(default) not in _OPTION_TYPES:
            yield f"option {name!r} = {default!r}: expected a name and a number, text, truth value or tuple"
    if subject.name not in (*entry_algorithms(), *tensor_algorithms()) and getattr(subject.member, "available", bool)():
        yield "it takes windows alone, but has no option window"


def _wrong_sizes(subject: Subject) -> Iterator[str]:
    for trial in _trials(subject):
        sizes = compressed_bits(trial.data, subject.name, **trial.options)
        if not isinstance(sizes, np.ndarray) or sizes.dtype != np.uint32 or sizes.shape != (len(trial.parts),):
            got = f"{sizes.dtype} of shape {sizes.shape}" if isinstance(sizes, np.ndarray) else type(sizes).__name__
            yield f"sizes of {trial.what}: {got}: expected {len(trial.parts)} of uint32"


def _by_neighbours(subject: Subject) -> Iterator[str]:
    for trial in _trials(subject):
        if trial.profiles:
            continue
        sizes = compressed_bits(trial.data, subject.name, **trial.options).tolist()
        for number, part in enumerate(trial.parts):
            (alone,) = compressed_bits(part, subject.name, **trial.options).tolist()
            if alone != sizes[number]:
                yield f"number {number} of {trial.what}: {alone} bits alone, {sizes[number]} among the others"


def _other_lengths(subject: Subject) -> Iterator[str]:
    extra = getattr(subject.member, "PAYLOAD_OPTIONS", {})
    for trial in _trials(subject):
        if trial.profiles:
            continue
        bits = int(compressed_bits(trial.data, subject.name, **{**trial.options, **extra}).sum(dtype=np.int64))
        payload = compress(trial.data, subject.name, **trial.options)
        if len(payload) != -(-bits // 8):
            yield f"{trial.what}: sizes of {bits} bits in all, a payload of {len(payload)} B"


def _lost(subject: Subject) -> Iterator[str]:
    for trial in _trials(subject):
        payload = compress(trial.data, subject.name, **trial.options)
        back = decompress(payload, subject.name, len(trial.data), **trial.options)
        if back != trial.data.tobytes():
            yield f"{trial.what}: {_difference(trial.data.tobytes(), back)}"


def _difference(data: bytes, back: Any) -> str:
    if not isinstance(back, bytes) or len(back) != len(data):
        return f"decompressed to {len(back)} B of {type(back).__name__}: expected {len(data)} B of bytes"
    at = next(at for at, (one, other) in enumerate(zip(data, back, strict=True)) if one != other)
    return f"byte {at} is {data[at]:#04x}, decompressed {back[at]:#04x}"


def _accepted(subject: Subject) -> Iterator[str]:
    draw = np.random.default_rng(1)
    for trial in _trials(subject):
        for part in trial.parts[:1] if "window" in trial.options else trial.parts[::7]:
            payload = compress(part, subject.name, **trial.options)
            cut = int(draw.integers(0, len(payload)))
            for wrong in (payload[:cut], payload + b"\0", payload + b"\1"):
                if _decoded(subject, wrong, len(part), trial.options) is not None:
                    yield f"{len(payload)} B of payload, and {len(wrong)} B made of it, decompress: expected an error"
            noise = draw.bytes(int(draw.integers(0, 160)))
            decoded = _decoded(subject, noise, len(part), trial.options)
            one_way = "window" not in trial.options and decoded is not None
            if one_way and compress(decoded or b"", subject.name, **trial.options) != noise:
                yield f"{len(noise)} B that `compress` can't return decompress: expected an error"


def _decoded(subject: Subject, payload: bytes, nbytes: int, options: Options) -> bytes | None:
    try:
        return decompress(payload, subject.name, nbytes, **options)
    except BuddysimError:
        return None


def _of_nothing(subject: Subject) -> Iterator[str]:
    if subject.name not in entry_algorithms():
        return
    sizes = compressed_bits(b"", subject.name)
    if sizes.shape != (0,):
        yield f"no entries have sizes of shape {sizes.shape}: expected (0,)"
    if decompress(compress(b"", subject.name), subject.name, 0) != b"":
        yield "no entries decompress to something"


def _by_threads(subject: Subject) -> Iterator[str]:
    trials = list(_trials(subject))[-_THREADS:] * 2

    def payload(trial: Trial) -> bytes:
        return compress(trial.data, subject.name, **trial.options)

    with ThreadPoolExecutor(_THREADS) as pool:
        for trial, threaded in zip(trials, pool.map(payload, trials), strict=True):
            if threaded != payload(trial):
                yield f"{trial.what}: another payload where {_THREADS} threads compress"


def _other_fractions(subject: Subject) -> Iterator[str]:
    if not hasattr(subject.member, "fraction_of_density"):
        return
    stated, mask_bits = subject.member.fraction_of_density, getattr(subject.member, "MASK_BITS_PER_WORD", 0)
    for trial in _trials(subject):
        words = trial.data.view("<u4")
        if "window" not in trial.options or not len(words):
            continue
        bits = int(compressed_bits(trial.data, subject.name, **trial.options).sum(dtype=np.int64))
        for masks, counted in ((True, bits), (False, bits - mask_bits * len(words))):
            said = stated(np.count_nonzero(words) / len(words), masks) * _WORD_BITS * len(words)
            if abs(said - counted) > 1e-9 * counted:
                yield f"{trial.what}: {counted} bits, by its density {said:.1f} (masks counted: {masks})"


CONTRACTS = {
    "compressor": (
        Contract("options have defaults of plain types", _odd_options, safe=True),
        Contract("each entry or window has one size, an integer", _wrong_sizes, safe=True),
        Contract("its size is the same alone and among others", _by_neighbours),
        Contract("a payload has as many bits as the sizes say", _other_lengths),
        Contract("decompress gives back what compress got", _lost),
        Contract("a payload that compress can't return is refused in one line", _accepted),
        Contract("no entries have no sizes and no payload", _of_nothing),
        Contract("compression in several threads gives the same payloads", _by_threads),
        Contract("the fraction stated for a density is that of the payload", _other_fractions),
    )
}
