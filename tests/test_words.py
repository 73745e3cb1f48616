"""The project's words: no file uses a word that the glossary replaces (tests/words.toml), and one name has one meaning.

`python -m tests.test_words [PATH..]` prints every hit; `--update` writes the counts of tests/words_variables.toml.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from buddysim.base.kinds import HOMES, registry
from buddysim.cli import REGISTRY
from buddysim.machine.model import keys
from buddysim.machine.section import field_keys
from buddysim.machine.training_table import TrainingConfig
from buddysim.report.counter_texts import counter_texts

ROOT = Path(__file__).parents[1]
WORDS = ROOT / "tests" / "words.toml"
MEANINGS = ROOT / "tests" / "meanings.toml"
VARIABLES = ROOT / "tests" / "words_variables.toml"
#: All hits of scope ``variable`` together; only ever lowered.
MAX_VARIABLES = 500
MAX_MARKDOWN_LINE = 120
COLUMNS = ("name", "variable", "text")

PYTHON = (".py", ".pyi", ".pyx", ".pxd")
C = (".c", ".h", ".cpp", ".cl", ".cu", ".S", ".js", ".css")
HASH = (".toml", ".sh", ".yml")
PROSE = (".md", ".rst", ".ipynb")
FOLDERS = ("buddysim", "tests", "tools", "benchmarks", "docs", "examples", "plots", "traces")

#: Names that another API prescribes: identifier or text -> (API, files or folders).
FOREIGN: dict[str, tuple[str, tuple[str, ...]]] = {
    "given": ("hypothesis", ("tests/",)),
    "turns": ("module benchmarks.turns, a command that issues name", ("docs/developers/", "CHANGELOG.md")),
    "places": ("hypothesis.strategies.decimals", ("tests/machine/test_units.py",)),
    "MAP": ("Chromium, --host-resolver-rules", ("tests/report/test_web.py",)),
    "most_common": ("collections.Counter", ("buddysim/", "tests/", "tools/", "docs/", "benchmarks/")),
    "DEFAULT_GOAL": ("GNU make", ("Makefile",)),
    "MAPS": ("section of the activations file", ("buddysim/formats/", "tests/formats/", "docs/reference/")),
    "map": ("field of the activations file", ("buddysim/formats/", "tests/formats/", "docs/reference/")),
    "maps": (
        "field of the activations file; Linux: /proc/self/maps",
        (
            "buddysim/formats/",
            "tests/formats/",
            "docs/reference/",
            "buddysim/capture/memory/preload/",
            "traces/MANIFEST.toml",
        ),
    ),
    "gaps": ("subject of a trace file's provenance", ("buddysim/trace/model.py", "docs/reference/", "tests/")),
    "room": ("key of a trace file's provenance", ("buddysim/trace/writer.py",)),
    "listen": ("socket.socket", ("buddysim/capture/child_process.py",)),
    "claim": ("Clients of a service worker", ("buddysim/web/page/offline.js",)),
    "StraightLineStrengthReduce": ("LLVM", ("buddysim/capture/opencl/llvm_pass/",)),
    "StraightLineStrengthReducePass": ("LLVM", ("buddysim/capture/opencl/llvm_pass/",)),
}

#: Not searched: what was tried (dated notes), this list, and quotations from papers.
SKIPPED = re.compile(r"tests/words|tests/test_words\.py|papers/.*/(reported|stated)\.toml|__pycache__|/out/")

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_QUOTED = r"'(?:[^'\\\n]|\\.)*'"
_TEXT = {
    PYTHON: rf'\#[^\n]*|[rRbBuUfF]{{0,2}}(?:"""(?:[^\\]|\\.)*?"""|{_STRING}|{_QUOTED})',
    C: rf"//[^\n]*|/\*.*?\*/|{_STRING}|{_QUOTED}",
    HASH: rf'\#[^\n]*|"""(?:.*?)"""|{_STRING}|' + r"'[^'\n]*'",
}
_LEXERS = {
    suffix: re.compile(rf"(?P<text>{text})|(?P<name>[A-Za-z_]\w*)", re.S)
    for suffixes, text in _TEXT.items()
    for suffix in suffixes
}
_FIELDS = re.compile(r"(?<!\{)\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_]\w*")
_QUOTATION = re.compile(rf"{_STRING}|{_QUOTED}")
_TOKEN = re.compile(r"\w+")
#: What a token lacks, in a pattern; negative look-arounds and ranges of letters aside.
_BETWEEN_TOKENS = re.compile(r"[ .^-]|\\[sSWD]")
_LOOKS_AROUND = re.compile(r"\(\?<?!(?:[^()]|\([^()]*\))*\)|\[a-z\]")
#: Sections and fields of file formats, which keep their names: between two marks of a document.
_FILE_FIELDS = re.compile(r"<!-- field names -->.*?<!-- field names -->", re.S)


@dataclass(frozen=True)
class Word:
    """A word that must not appear."""

    pattern: re.Pattern[str]
    scope: str
    allow: re.Pattern[str] | None
    use: str

    @property
    def columns(self) -> tuple[str, ...]:
        return ("name", "text") if self.scope == "both" else (self.scope,)

    @property
    def may_span_tokens(self) -> bool:
        return bool(_BETWEEN_TOKENS.search(_LOOKS_AROUND.sub("", self.pattern.pattern)))

    def tokens(self, every: str) -> set[str]:
        """Return which tokens, of one in each line, the word matches, whatever stands around them."""
        matches = self.pattern.finditer(every)
        return {every[every.rfind("\n", 0, one.start()) + 1 : every.find("\n", one.end())] for one in matches}

    def hits(self, text: str) -> Iterator[re.Match[str]]:
        for match in self.pattern.finditer(text):
            around = " ".join(text[max(0, match.start() - 24) : match.end() + 24].split())
            if not (self.allow and self.allow.search(around)) and self._matches_on_one_line(text, match):
                yield match

    def _matches_on_one_line(self, text: str, match: re.Match[str]) -> bool:
        """Return whether a word matches where its line break is a space, as in ``feature`` / ``map``."""
        before = re.sub(r"\s[\s#*/]*", " ", text[max(0, match.start() - 60) : match.start()])
        line = before + text[match.start() : match.end() + 24]
        return self.pattern.match(line, len(before)) is not None


@dataclass(frozen=True)
class Hit:
    path: str
    line: int
    word: str
    scope: str
    use: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word!r}: use {self.use}"


def words() -> list[Word]:
    rows = tomllib.loads(WORDS.read_text(encoding="utf-8"))["word"]
    return [
        Word(
            re.compile(row["pattern"], re.I),
            row["scope"],
            re.compile(row["allow"], re.I) if "allow" in row else None,
            row["use"],
        )
        for row in rows
    ]


def searched_files() -> list[Path]:
    kinds = {*_LEXERS, *PROSE}
    found_in = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    top = [*ROOT.glob("*.md"), ROOT / "Makefile", ROOT / "setup.py", ROOT / "pyproject.toml"]
    return sorted(path for path in (*found_in, *top) if not SKIPPED.search(path.relative_to(ROOT).as_posix()))


@cache
def split(name: str) -> str:
    """Return an identifier's parts in lower case, joined by ``_``."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()


def content(path: Path) -> str:
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.name == "CHANGELOG.md":  # released sections are history
        return "## ".join(re.split(r"(?m)^## ", text)[:2])
    return _FILE_FIELDS.sub(lambda match: "\n" * match.group().count("\n"), text)


def parts(path: Path, source: str) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """Return names and texts of a file, each with its offset; all of a document is text."""
    lexer = _LEXERS.get(path.suffix) or (_LEXERS[".toml"] if path.name == "Makefile" else None)
    if lexer is None:
        return [], [(0, source)]
    names: list[tuple[int, str]] = []
    texts: list[tuple[int, str]] = []
    for match in lexer.finditer(source):
        token = match.group()
        if match.lastgroup == "name":
            names.append((match.start(), token))
            continue
        texts.append((match.start(), token))
        if path.suffix in PYTHON and token[:2].lower().startswith(("f", "rf")):
            for field in _FIELDS.finditer(token):
                names += [
                    (match.start() + field.start(1) + n.start(), n.group()) for n in _NAME.finditer(field.group(1))
                ]
    return names, texts


class Source:
    """A file's names and texts: columns of each kind, their offsets in the file, and the parts of words in them."""

    def __init__(self, path: Path) -> None:
        self.relative, self.text = path.relative_to(ROOT).as_posix(), content(path)
        names, self.texts = parts(path, self.text)
        in_parts = [split(name) for _, name in names]
        self.columns = {
            "name": "\n".join(in_parts),
            "variable": "\n".join("" if "_" in name.strip("_") else name for name in in_parts),
            "text": "\n".join(text for _, text in self.texts),
        }
        self.name_offsets = [at for at, _ in names]
        texts = self.columns["text"].lower()
        self.tokens = {"name": {*in_parts}, "variable": {*in_parts}, "text": {*_TOKEN.findall(texts)}}

    def offset(self, column: str, at: int) -> int:
        """Return the offset in the file of offset `at` of a column."""
        if column != "text":
            return self.name_offsets[self.columns[column].count("\n", 0, at)]
        for offset, part in self.texts:
            if at <= len(part):
                return offset + at
            at -= len(part) + 1
        raise AssertionError(at)


def hits_in(sources: Sequence[Source], listed: Sequence[Word]) -> Iterator[Hit]:
    """Return every hit. Only files with a token that a word matches are searched for it: each token is tried once."""
    every_token = {
        column: "\n".join(["", *sorted({token for source in sources for token in source.tokens[column]}), ""])
        for column in COLUMNS
    }
    for word in listed:
        for column in word.columns:
            own = word.tokens(every_token[column])
            for source in sources:
                if word.may_span_tokens or not own.isdisjoint(source.tokens[column]):
                    yield from hits_of(source, word, column)


def hits_of(source: Source, word: Word, column: str) -> Iterator[Hit]:
    for match in word.hits(source.columns[column]):
        at = source.offset(column, match.start())
        if not is_foreign(source.relative, source.text[at:], match.group()):
            line = source.text.count("\n", 0, at) + 1
            yield Hit(source.relative, line, match.group(), word.scope, word.use)


def is_foreign(relative: str, rest: str, word: str) -> bool:
    """Return whether another API prescribes the identifier, or the word of a text, that `rest` begins with."""
    name = _NAME.match(rest)
    return any(
        relative.startswith(places) and (word == own or (name is not None and name.group() == own))
        for own, (_, places) in FOREIGN.items()
    )


def _columns(names: Sequence[tuple[int, str]], texts: Sequence[tuple[int, str]]) -> dict[str, list[str]]:
    in_parts = [split(name) for _, name in names]
    return {
        "name": in_parts,
        "variable": ["" if "_" in name.strip("_") else name for name in in_parts],
        "text": [text for _, text in texts],
    }


def _offset(kind: str, text: str, at: int, offsets: dict[str, list[int]], texts: Sequence[tuple[int, str]]) -> int:
    """Return the offset in the source of offset `at` of the joined text."""
    if kind == "name":
        return offsets["name"][text.count("\n", 0, at)]
    for offset, part in texts:
        if at <= len(part):
            return offset + at
        at -= len(part) + 1
    raise AssertionError(at)


def all_hits(paths: Sequence[Path]) -> list[Hit]:
    return sorted(hits_in([Source(path) for path in paths], words()), key=lambda hit: (hit.path, hit.line))


def variable_counts(found_hits: Sequence[Hit]) -> Counter[str]:
    return Counter(hit.path for hit in found_hits if hit.scope == "variable")


@pytest.fixture(scope="module")
def every_hit() -> list[Hit]:
    return all_hits(searched_files())


def test_no_file_has_a_replaced_word(every_hit):
    rest = [str(hit) for hit in every_hit if hit.scope != "variable"]
    assert not rest, f"{len(rest)} hits:\n" + "\n".join(rest[:40])


def test_variables_without_meaning_become_fewer(every_hit):
    recorded = tomllib.loads(VARIABLES.read_text(encoding="utf-8"))["files"]
    counts = variable_counts(every_hit)
    more = {path: (count, recorded.get(path, 0)) for path, count in counts.items() if count > recorded.get(path, 0)}
    assert not more, "name the noun that the variable holds (now, recorded)"
    assert sum(counts.values()) <= MAX_VARIABLES


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.py", "room = 1  # a place\n", {"room", "place"}),
        ("a.py", 'x = f"{most_bytes} in turn"\n', {"most_b"}),
        ("a.py", "def in_place(): ...\n", set()),
        ("a.h", "int calendar; /* on its way */\n", {"calendar", "on its way"}),
        ("a.md", "The feature map, not the map.\n", {"map"}),
        ("a.py", "kept_bytes = found\n", {"kept", "found"}),
        ("a.py", "'kept bytes of the list'\n", set()),
        ("a.toml", 'key = "drawn" # goals\n', {"drawn", "goals"}),
    ],
)
def test_hits_are_of_names_and_texts(tmp_path, monkeypatch, name, source, expected):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / name).write_text(source)
    assert {hit.word for hit in all_hits([tmp_path / name])} == expected


PYTHON_CLASS = re.compile(r"^[ \t]*class (\w+)", re.MULTILINE)
CYTHON_CLASS = re.compile(r"^(?:(?:cdef )?class|[ \t]*cdef struct) (\w+)", re.MULTILINE)


def classes() -> dict[str, set[str]]:
    """Return the paths without suffix that define a class, by its name."""
    homes = defaultdict(set)
    for path in (ROOT / "buddysim").rglob("*"):
        if path.suffix in (".py", ".pyx", ".pxd") and "__pycache__" not in path.parts:
            text = path.read_text(encoding="utf-8")
            pattern = PYTHON_CLASS if path.suffix == ".py" else CYTHON_CLASS
            for name in pattern.findall(text):
                homes[name].add(path.relative_to(ROOT).with_suffix("").as_posix())
    return homes


#: First words of a description that has no subject of its own.
NO_SUBJECT = {"of", "these", "those", "this", "that", "likewise", "as", "how", "what", "when", "by", "same", "also"}

#: Contracts of plug-ins: one class of this name in each file of a kind.
CONTRACTS = {name for kind in HOMES for name in registry(kind).contract if not name.isupper()}


def test_a_class_name_is_used_once():
    repeated = {name: sorted(homes) for name, homes in classes().items() if len(homes) > 1 and name not in CONTRACTS}
    assert not repeated


def test_lines_of_markdown_are_short():
    long = [
        f"{path.relative_to(ROOT)}:{number}: {len(line)}"
        for path in searched_files()
        if path.suffix == ".md"
        for number, line in enumerate(content(path).splitlines(), 1)
        if len(line) > MAX_MARKDOWN_LINE and not line.lstrip().startswith("|")
    ]
    assert not long, f"{len(long)} lines:\n" + "\n".join(long[:40])


def shared_names() -> dict[str, set[str]]:
    """Return last parts that several counters or machine keys share, with their full names."""
    names = {f"{counter.engine}: {counter.name}" for counter in counter_texts()}
    names |= {key for key, _ in (*keys(), *field_keys(TrainingConfig, "training."))}
    return _shared((name.rpartition(".")[2].rpartition(": ")[2], name) for name in names)


def shared_options() -> dict[str, set[str]]:
    """Return the options that several commands have."""

    def options(parser: argparse.ArgumentParser, command: str) -> Iterator[tuple[str, str]]:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, part in action.choices.items():
                    yield from options(part, f"{command} {name}")
            for option in action.option_strings:
                if option.startswith("--") and option != "--help":
                    text = re.sub(r" \(default: [^)]*\)", "", action.help or "")
                    yield option.removeprefix("--"), f"{command}: {text}"

    pairs = []
    for name in REGISTRY.names():
        parser = argparse.ArgumentParser()
        REGISTRY.find(name).add_arguments(parser)
        pairs += list(options(parser, name))
    return {
        option: commands
        for option, commands in _shared(pairs).items()
        if len({command.partition(": ")[2] for command in commands}) > 1
    }


def _shared(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    grouped = defaultdict(set)
    for name, full in pairs:
        grouped[name].add(full)
    return {name: full for name, full in grouped.items() if len(full) > 1}


@pytest.mark.parametrize(("table", "shared"), [("names", shared_names), ("options", shared_options)])
def test_a_shared_name_has_one_meaning(table, shared) -> None:
    """The table lists every shared name, with the meaning that all of its uses have."""
    meanings = tomllib.loads(MEANINGS.read_text(encoding="utf-8"))[table]
    assert set(shared()) - set(meanings) == set()
    assert len(set(meanings.values())) == len(meanings), "two names with one meaning"


def main(arguments: Sequence[str]) -> None:
    given_paths = [ROOT / name for name in arguments if not name.startswith("-")]
    paths = [
        path for path in searched_files() if not given_paths or any(path.is_relative_to(given) for given in given_paths)
    ]
    every = all_hits(paths)
    if "--update" in arguments:
        counts = variable_counts(every)
        lines = [f'"{path}" = {count}' for path, count in sorted(counts.items())]
        head = "# Names without meaning (scope `variable`), by file: counts that may only fall.\n[files]\n"
        VARIABLES.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    for hit in every:
        print(hit)


if __name__ == "__main__":
    main(sys.argv[1:])
