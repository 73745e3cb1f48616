"""HTML reports work in a real browser without a network: charts appear, a click sorts, names are no markup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from buddysim.base.errors import BuddysimError
from buddysim.cli import main
from buddysim.report.web import page as web_page
from buddysim.report.web import store_page
from buddysim.sweep.cached_results import SavedResults
from buddysim.sweep.store import Store
from buddysim.synthetic import make_trace

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed: make test-all")
HOSTILE = "<script>document.title = 'run'</script>"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a report of short replays, findings and a training."""
    folder = tmp_path_factory.mktemp("report")
    make_trace("stream", folder / "t.bin", {"footprint": "256 KiB", "op": "copy", "sizes": "32 B:3, 128 B:1"})
    results = SavedResults(Store.at(folder / "store"))
    for scheme in ("ideal", "buddy", "pinned-host"):
        for link in ("50 GB/s", "150 GB/s"):
            results.result_of("replay", {"trace": str(folder / "t.bin"), "scheme": scheme, "link.bandwidth": link})
    for analysis in ("ratio", "targets", "threshold"):
        results.result_of("analysis", {"analysis": analysis, "trace": str(folder / "t.bin")})
    results.result_of("training", {"network": "alexnet", "batch": 32, "scheme": "oracle"})
    return folder / "store"


@pytest.fixture(scope="module")
def report(store: Path) -> Path:
    pytest.importorskip("plotly", reason="Plotly is not installed: make test-all")
    target = store.parent / "report.html"
    assert main(["report", str(store), "-o", str(target)]) == 0
    return target


def opened(path: Path, script: str, folder: Path) -> str:
    """Return the document after the browser has run it and a further script."""
    assert BROWSER is not None
    copy = folder / "opened.html"
    text = path.read_text(encoding="utf-8")
    copy.write_text(text.replace("</body></html>", f"<script>{script}</script></body></html>"), encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=10000", "--dump-dom", copy.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@needs_browser
def test_a_browser_draws_the_charts_and_sorts_by_a_click(report: Path, tmp_path: Path) -> None:
    script = "document.querySelectorAll('details').forEach((part) => { part.open = true; });"
    charts_shown = opened(report, script, tmp_path)
    names = re.findall(r'<div id="(chart-\d+)"', report.read_text(encoding="utf-8"))
    assert len(names) == 5  # replays, three findings, the training
    assert charts_shown.count('class="main-svg"') >= 2 * len(names)
    assert charts_shown.count('class="point"') >= 6
    column = "document.querySelector('table').querySelectorAll('th')"
    click = f"[...{column}].find((head) => head.textContent === 'time_ps').click();"
    times = times_of(opened(report, click, tmp_path))
    assert len(times) == 6
    assert times == sorted(times)
    assert times_of(opened(report, click + click, tmp_path)) == times[::-1]
    assert times_of(charts_shown) not in (times, times[::-1])


def times_of(document: str) -> list[int]:
    """Return the column time_ps of the first table, in the order shown."""
    heads = re.findall(r"<th [^>]*>([^<]*)</th>", document[: document.index("</thead>")])
    body = document[document.index("<tbody>") : document.index("</tbody>")]
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.S)
    return [int(re.findall(r"<td[^>]*>([^<]*)</td>", row)[heads.index("time_ps")].replace(",", "")) for row in rows]


@pytest.mark.slow
@needs_browser
def test_names_in_results_are_no_markup(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    saved = tmp_path / "r.json"
    kernel = {"launch_index": 0, "name": HOSTILE, "time_ps": 3}
    about = {"trace": HOSTILE, "assumptions": {HOSTILE: HOSTILE}}
    saved.write_text(json.dumps({HOSTILE: {"time_ps": 5, HOSTILE: 3, "per_kernel": [kernel], "provenance": about}}))
    assert main(["report", str(saved), "-o", str(tmp_path / "r.html")]) == 0
    document = opened(tmp_path / "r.html", "", tmp_path)
    assert "<title>buddysim: r.json</title>" in document
    assert 'class="main-svg"' in document


def test_the_file_needs_nothing_else_and_is_the_same_twice(report: Path, store: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=", text[:2000] + text[text.rindex("<h1>") :])
    again = report.with_name("again.html")
    assert main(["report", str(store), "-o", str(again)]) == 0
    assert again.read_bytes() == report.read_bytes()
    for expected in (
        "Results: replay",
        "Results: training",
        "Results: analysis",
        "<summary>t.bin: 9 results</summary>",
    ):
        assert expected in text


def test_a_large_store_takes_several_files_with_links(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("plotly")
    monkeypatch.setattr(store_page, "RESULTS_PER_PAGE", 4)
    assert main(["report", str(store), "-o", str(tmp_path / "a b.html")]) == 0
    names = ["a b.html", "a b-2.html", "a b-3.html"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    texts = [(tmp_path / name).read_text(encoding="utf-8") for name in names]
    counts = [sum(map(int, re.findall(r"<summary>[^<]+: (\d+) results", text))) for text in texts]
    assert counts == [4, 4, 2]
    for number, text in enumerate(texts):
        linked = re.findall(r'<a href="([^"]+)">', text)
        assert linked == [name.replace(" ", "%20") for name in names if name != names[number]]


def test_a_result_has_its_schemes_and_kernels(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    make_trace("stream", tmp_path / "t.bin", {"footprint": "256 KiB", "op": "copy", "sizes": "32 B"})
    saved = tmp_path / "r.json"
    assert main(["run", str(tmp_path / "t.bin"), "--scheme", "ideal,buddy", "--json", str(saved)]) == 0
    assert main(["report", str(saved), "-o", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    results: dict[str, Any] = json.loads(saved.read_text())
    for scheme, result in results.items():
        assert f'data-value="{result["time_ps"]}"' in text
        assert f"<summary>{scheme}: {len(result['per_kernel'])} kernels</summary>" in text


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("[]", "not a result"),
        ('{"a": 3}', "not a result"),
        ("", "r.json"),
        ('{"a": {"time_ps": "x", "provenance": {}}}', "r.json: a: time_ps: expected a number, got 'x'"),
    ],
)
def test_what_is_no_result_is_one_line(
    content: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("plotly")
    (tmp_path / "r.json").write_text(content)
    code = main(["report", str(tmp_path / "r.json"), "-o", str(tmp_path / "r.html")])
    assert code == 2
    error = capsys.readouterr().err
    assert expected in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "r.html").exists()


def test_an_empty_store_and_another_suffix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("plotly")
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == 2
    assert "no results in the store" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.pdf")]) == 2
    assert "ends in .html" in capsys.readouterr().err


def test_without_plotly_the_install_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(BuddysimError, match=r"pip install 'buddysim\[report\]'"):
        web_page.graph_objects()
