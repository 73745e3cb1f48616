"""Which results a recomputed region keeps."""

from __future__ import annotations

from buddysim.training.options.checkpoint_rule import StoredOperators


def test_of_the_products_of_two_matrices_every_second_one_is_saved() -> None:
    keeps = StoredOperators(("mm", "attention"), every_second_product=True).policy()
    assert [keeps(name) for name in ("mm", "mul", "mm", "attention", "mm", "mm")] == [
        True,
        False,
        False,
        True,
        True,
        False,
    ]
    again = StoredOperators(("mm", "attention"), every_second_product=True).policy()
    assert again("mm")  # each region counts its own


def test_without_it_every_product_is_saved() -> None:
    keeps = StoredOperators(("mm",)).policy()
    assert [keeps(name) for name in ("mm", "mm", "add")] == [True, True, False]
