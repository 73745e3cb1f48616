"""Target ratios and the targets file."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.base.errors import BuddysimError
from buddysim.buddy import ALL_TARGETS, TARGET, Targets
from buddysim.buddy.keys_by_allocation import allocation_keys
from buddysim.trace import Allocation


def allocations(*names: str, host: tuple[str, ...] = ()) -> list[Allocation]:
    return [
        Allocation(i, name, 0x1000 * (i + 1), 256, "host" if name in host else "device") for i, name in enumerate(names)
    ]


def test_what_targets_keep() -> None:
    assert [(t.name, t.device_sectors, t.device_bytes_per_entry) for t in ALL_TARGETS] == [
        ("1x", 4, 128),
        ("1.33x", 3, 96),
        ("2x", 2, 64),
        ("4x", 1, 32),
        ("16x", 0, 8),
    ]


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    some = allocations("a", "b c", "d.e", 'ü\n"\\\x7f\t', "", "h", "a", host=("h",))
    targets = Targets(some, {i: ALL_TARGETS[i % 5] for i in range(7) if i != 5})
    targets.save(tmp_path / "t.toml", "how\nit was made")
    assert (tmp_path / "t.toml").read_text().startswith("# how\n# it was made\n")
    loaded = Targets.load(tmp_path / "t.toml", some)
    assert loaded == targets
    assert set(tomllib.loads((tmp_path / "t.toml").read_text())["targets"]) == {
        "a#1",
        "b c",
        "d.e",
        'ü\n"\\\x7f\t',
        "",
        "a#2",
    }
    assert [path.name for path in tmp_path.iterdir()] == ["t.toml"]


names = st.lists(
    st.one_of(st.sampled_from(["a", "a#1", "a#2", "a#1#3", "a 0x1000", "b"]), st.text(max_size=5)), max_size=8
)


@given(names, st.data())
def test_every_allocation_has_a_key_of_its_own(some: list[str], data: st.DataObject) -> None:
    bases = data.draw(st.lists(st.sampled_from([0x1000, 0x2000]), min_size=len(some), max_size=len(some)))
    made = [Allocation(i, name, base, 128) for i, (name, base) in enumerate(zip(some, bases, strict=True))]
    keys = allocation_keys(made)
    assert sorted(keys) == list(range(len(some)))
    assert len(set(keys.values())) == len(some)


def test_unlisted_allocation_is_uncompressed(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[targets]\nb = "4x"\n')
    loaded = Targets.load(tmp_path / "t.toml", allocations("a", "b"))
    assert [loaded.of(0), loaded.of(1)] == [TARGET["1x"], TARGET["4x"]]


def test_uniform_leaves_host_memory_out() -> None:
    targets = Targets.uniform(allocations("a", "h", host=("h",)), "2x")
    assert [targets.of(0).name, targets.of(1).name] == ["2x", "1x"]
    with pytest.raises(BuddysimError, match=r"ratio: '3x': expected one of 1x, 1.33x, 2x, 4x, 16x"):
        Targets.uniform(allocations("a"), "3x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[targets]\nalpah = "2x"', "'alpah': the trace has no such allocation (nearest: 'alpha')"),
        ('[targets]\nzzz = "2x"', "'zzz': the trace has no such allocation"),
        ('[targets]\nalpha = "3x"', "targets.alpha: expected one of 1x, 1.33x, 2x, 4x, 16x (nearest: 1.33x), got '3x'"),
        ("[targets]\nalpha = 2", "targets.alpha: expected one of 1x, 1.33x, 2x, 4x, 16x, got 2"),
        ("[targets.alpha]\nb = 1", "targets.alpha: expected one of 1x, 1.33x, 2x, 4x, 16x, got {'b': 1}"),
        ('[targets]\nhost = "2x"', "'host' lies in host memory: expected device allocations only"),
        ('[targets]\ndouble = "2x"', "'double': several allocations have this name, expected double#1, double#2"),
        ("", "targets is missing"),
        ("targets = 3", "targets: expected a table of names and values, got 3"),
        ("[target]", "targets is missing"),
        ("[targets", "not valid TOML"),
        ("a = " + "[" * 100000, "not valid TOML"),
        ('[targets]\n"' + "x" * 1000 + '" = "2x"', "the trace has no such allocation"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "t.toml"
    path.write_text(text)
    with pytest.raises(BuddysimError) as refused:
        Targets.load(path, allocations("alpha", "host", "double", "double", host=("host",)))
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_a_file_that_isn_t_text_or_isn_t_there(tmp_path: Path) -> None:
    with pytest.raises(BuddysimError, match="can't read the targets file: No such file"):
        Targets.load(tmp_path / "none.toml", [])
    with pytest.raises(BuddysimError, match="can't read the targets file: Is a directory"):
        Targets.load(tmp_path, [])
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BuddysimError, match="byte 0 is not UTF-8"):
        Targets.load(tmp_path / "b.toml", [])


def test_what_can_t_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    targets = Targets.uniform(allocations("a"), "2x")
    with pytest.raises(BuddysimError, match="can't be written"):
        targets.save(tmp_path / "none" / "t.toml")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BuddysimError, match="is a folder"):
        targets.save(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
