"""Saved tensors in fewer bits, by hand."""

from __future__ import annotations

import pytest

from buddysim.training.autograd import Parameter, Tape, functional
from buddysim.training.autograd.compressed import CompressedTensors, code_bytes
from buddysim.training.autograd.dtypes import bfloat16
from buddysim.training.autograd.saved_hooks import saving_with


@pytest.mark.parametrize(("bits", "size"), [(16, 20), (10, 16), (8, 10)])
def test_codes_of_ten_values(bits: int, size: int):
    assert code_bytes(10, bits) == size


def recorded(bits: int) -> Tape:
    """Two products of one input of 4 x 8 values of two bytes; both save it, and their weights."""
    with Tape(bfloat16) as tape:
        weights = [Parameter((8, 8)), Parameter((8, 8))]
        leaf = Parameter((4, 8))
        with tape.in_phase("forward"), saving_with(tape, CompressedTensors(tape, bits)):
            x = leaf * 2.0
            loss = (functional.linear(x, weights[0]) * functional.linear(x, weights[1])).sum()
            del x
        loss.backward()
    return tape


def test_a_tensor_is_encoded_once_and_decoded_for_each_reader():
    tape = recorded(8)
    encoded = [one for one in tape.operations if one.name == "encode"]
    decoded = [one for one in tape.operations if one.name == "decode"]
    # the input of both products, and both results, of 32 values each; weights stay
    assert [(one.bytes_read, one.bytes_written) for one in encoded] == [(64, 32)] * 3
    assert [(one.bytes_read, one.bytes_written) for one in decoded] == [(32, 64)] * 4
    assert all(one.phase == "backward" for one in decoded)


def test_what_is_no_wider_than_its_code_stays():
    assert not [one for one in recorded(16).operations if one.name == "encode"]
