"""The page in a real browser: its numbers are the command line's; keyboard, small screens, bad input, no network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from buddysim.cli import main
from buddysim.web.server import open_server
from tools.archive import folder_with

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-all")
ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SHOTS = ROOT / "out" / "web-shots"
#: Two layers, so that a question takes no second.
CONFIG = {
    "model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 512,
}  # fmt: skip
MINUTE = 60_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: make test-all"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed: make test-all"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site and serve it."""
    folder = tmp_path_factory.mktemp("web") / "site"
    done = subprocess.run(
        [sys.executable, "tools/make_web.py", "-o", str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == 2 and "registries" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    unread = {*folder.glob("pyodide/*"), *folder.glob("licences/*"), folder / "bom.cdx.json"}
    own = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path not in unread)
    assert own <= 6_100_000
    with open_server(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def page(browser: Any, address: str) -> Any:
    """Open the page once, at a small model; errors of its scripts fail the tests."""
    opened = browser.new_page(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    opened.problems = []
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.goto(f"{address}#{urlencode({'model': 'resnet18', 'machine': 'gtx-1080-ti'})}")
    finished(opened)
    return opened


def finished(page: Any) -> None:
    """Wait for the end of an answer: it may be downloaded, or the page says why there is none."""
    playwright.expect(page.locator("[data-download=json]:enabled, .error:not(:empty)").first).to_be_visible(
        timeout=3 * MINUTE
    )
    assert [line for line in page.locator(".error").all_text_contents() if line] == []


def ask(page: Any, **fields: str) -> None:
    """Fill fields as a person does: by the mouse and the keyboard; ask once, at the end."""
    for name, value in fields.items():
        field = page.locator(f"#{name}")
        if name in ("model", "machine", "recipe", "optimizer", "link"):
            field.select_option(value)
        elif name == "qlora":
            field.set_checked(bool(value))
        else:
            field.fill(value)
    page.locator("#ask").click()


def downloaded(page: Any, kind: str, folder: Path) -> Path:
    with page.expect_download() as waiting:
        page.locator(f"[data-download={kind}]").click()
    target = folder / f"download.{kind}"
    waiting.value.save_as(target)
    return target


def without_python(results: dict[str, Any]) -> dict[str, Any]:
    for one in results.values():
        for name in ("python", "numpy"):
            del one["provenance"][name]
    return results


def assert_as_the_command(page: Any, arguments: list[str], tmp_path: Path) -> None:
    """Compare the page with the command that it shows, to the last digit."""
    command = page.text_content("#command")
    assert command == f"python -m buddysim {' '.join(arguments)}"
    of_page = without_python(json.loads(downloaded(page, "json", tmp_path).read_text()))
    saved = tmp_path / "of_command.json"
    assert main([*arguments, "--json", str(saved)]) == 0
    of_command = without_python(json.loads(saved.read_text()))
    assert len(of_page) > 5
    assert of_page == {name: of_command[name] for name in of_page}
    missing = set(of_command) - set(of_page)
    assert all(name in page.text_content("#doing") for name in missing)
    assert page.problems == []


QUESTIONS = [
    {"model": "qwen3-0.6b", "machine": "rtx-4090", "lora": "16", "link": "pcie3", "qlora": "1"},
    {"model": "resnet18", "machine": "gtx-1080-ti", "batch": "64", "optimizer": "momentum"},
    {"model": "alexnet", "machine": "rtx-4090", "batch": "1024"},
    {"model": "vit-b16", "machine": "rtx-4090", "memory": "2GB", "batch": "8"},
    {"model": "bert-base", "machine": "h100-sxm", "batch": "2"},
]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: one["model"])
def test_every_number_is_the_command_lines(question: dict[str, str], page: Any, tmp_path: Path) -> None:
    empty = dict.fromkeys(("memory", "batch", "sequence", "recipe", "optimizer", "lora", "fsdp", "link", "qlora"), "")
    ask(page, **{**empty, **question})
    finished(page)
    flags = {"memory": "--memory-budget"}
    given = [
        part
        for name in ("machine", "memory", "recipe", "optimizer", "batch", "sequence", "lora", "fsdp", "link")
        if question.get(name)
        for part in (flags.get(name, f"--{name}"), question[name])
    ]
    given += ["--qlora"] if question.get("qlora") else []
    assert_as_the_command(page, ["train", question["model"], *given, "--scheme", "all"], tmp_path)
    sentence = page.text_content("#sentence")
    assert sentence.startswith(("fits as is", "does not fit as is"))
    assert "off by" in page.text_content("#error-time")
    assert "measured trainings are off by" in page.text_content("#error-memory")
    for link in page.locator("#errors a").all():
        assert page.request.get(f"{page.url.partition('#')[0]}{link.get_attribute('href')}").ok


def test_the_plan_is_that_of_fit(page: Any, tmp_path: Path) -> None:
    ask(page, model="vit-b16", machine="rtx-4090", memory="1.6GB", batch="8", sequence="", recipe="", optimizer="")
    playwright.expect(page.locator("#plan table")).to_be_visible(timeout=3 * MINUTE)
    saved = tmp_path / "fit.json"
    arguments = ["fit", "vit-b16", "--machine", "rtx-4090", "--memory-budget", "1.6GB", "--batch", "8"]
    assert main([*arguments, "--json", str(saved)]) == 0
    of_command = json.loads(saved.read_text())
    assert f"python -m buddysim {' '.join(arguments)}" in page.text_content("#plan")
    assert ": a plan makes it fit, " in page.text_content("#sentence")
    rows = [row.locator("td").all_text_contents() for row in page.locator("#plan tr").all()[1:]]
    numbers = [
        f"{one['first']}-{one['last']}" if one["first"] < one["last"] else str(one["first"])
        for one in of_command["plan"]
    ]
    assert [row[:2] for row in rows] == [
        [number, one["choice"]] for number, one in zip(numbers, of_command["plan"], strict=True)
    ]
    assert page.problems == []


def test_a_pasted_config(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "question").mkdir()
    monkeypatch.chdir(tmp_path / "question")  # a config.json is named by its folder
    Path("config.json").write_text(json.dumps(CONFIG))
    page.fill("#config", json.dumps(CONFIG))
    ask(page, machine="rtx-4090", memory="", batch="2", sequence="128", recipe="amp-bf16", optimizer="adamw")
    finished(page)
    arguments = [
        "train", "config.json", "--machine", "rtx-4090", "--recipe", "amp-bf16", "--optimizer", "adamw", "--batch", "2",
        "--sequence", "128", "--scheme", "all",
    ]  # fmt: skip
    assert_as_the_command(page, arguments, tmp_path)


def test_a_dropped_graph(page: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "traces")
    page.set_input_files("#file", ROOT / "traces" / "fashion-cnn.graph.json")
    ask(page, machine="rtx-4090", memory="", batch="", sequence="", recipe="", optimizer="")
    finished(page)
    arguments = ["train", "fashion-cnn.graph.json", "--machine", "rtx-4090", "--scheme", "all"]
    assert_as_the_command(page, arguments, tmp_path)


def test_bad_input_has_the_commands_line_next_to_its_field(page: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page.locator("#model").select_option("resnet18")
    finished(page)
    ask(page, batch="0", sequence="", memory="", recipe="", optimizer="")
    shown = page.locator("#batch-error")
    playwright.expect(shown).not_to_be_empty(timeout=MINUTE)
    assert main(["train", "resnet18", "--machine", "rtx-4090", "--batch", "0", "--scheme", "all"]) == 2
    assert capsys.readouterr().err == f"buddysim: error: {shown.text_content()}\n"
    assert page.evaluate("document.activeElement.id") == "batch"
    # Nothing of the answer before is left next to it.
    assert [page.text_content(f"#{name}") for name in ("sentence", "command", "legend", "caveats", "plan")] == [""] * 5
    assert page.locator("figure svg").count() == 0


@pytest.mark.parametrize(
    "config",
    ['{"hidden_size": }', "[1]", json.dumps({**CONFIG, "num_hidden_layers": 10**6}), "x" * (5 * 2**20 + 1)],
    ids=["no JSON", "no config", "a million layers", "over 5 MB"],
)
def test_a_bad_config_ends_with_a_line(config: str, page: Any) -> None:
    page.fill("#batch", "1")
    page.evaluate("text => { document.getElementById('config').value = text; }", config)
    page.locator("#ask").click()
    playwright.expect(page.locator("#model-error")).not_to_be_empty(timeout=MINUTE)
    page.fill("#config", "")


def test_a_link_brings_the_question_back(browser: Any, page: Any, address: str) -> None:
    ask(page, model="alexnet", machine="titan-x", batch="16")
    finished(page)
    link = page.url
    assert link.startswith(f"{address}#")
    page.goto(f"{address}#model=resnet18")
    finished(page)
    page.goto(link)
    playwright.expect(page.locator("#command")).to_have_text(
        "python -m buddysim train alexnet --machine titan-x --batch 16 --scheme all", timeout=MINUTE
    )
    finished(page)


def test_a_link_that_names_no_model_has_no_answer(page: Any, address: str) -> None:
    page.goto(f"{address}#model=nosuchmodel&machine=rtx-4090")
    playwright.expect(page.locator("#model-error")).to_have_text("nosuchmodel: unknown: choose one of the list")
    assert page.url == f"{address}#model=nosuchmodel&machine=rtx-4090"
    assert page.text_content("#sentence") == page.text_content("#command") == ""
    ask(page, model="alexnet")
    finished(page)
    assert "alexnet --machine rtx-4090" in page.text_content("#command")


def test_what_a_link_lacks_is_said_on_both_sides(page: Any, address: str) -> None:
    text = json.dumps({**CONFIG, "comment": "x" * 20_000})
    page.evaluate("text => { document.getElementById('config').value = text; }", text)
    page.locator("#ask").click()
    finished(page)
    assert page.text_content("#omitted") == "The link is without config.json: it has more than 20000 characters."
    link = page.url
    page.goto(f"{address}#model=alexnet")
    finished(page)
    assert page.text_content("#omitted") == ""
    page.goto(link)
    line = "config.json: the link is without it: paste or choose it"
    playwright.expect(page.locator("#model-error")).to_have_text(line)
    assert page.text_content("#command") == ""


def test_back_returns_to_the_question_before(page: Any, address: str) -> None:
    page.goto(f"{address}#model=alexnet&machine=titan-x")
    finished(page)
    ask(page, batch="2")
    finished(page)
    page.go_back()
    playwright.expect(page.locator("#command")).to_contain_text("titan-x --batch 1", timeout=MINUTE)
    finished(page)
    assert page.input_value("#batch") == "1"


def test_a_solver_that_is_not_loaded_is_said_and_loaded_later(browser: Any, address: str) -> None:
    """The search ends with a line, the schemes' answer stays, and the next search has its solver."""
    opened = browser.new_page(service_workers="block")  # whose requests no test sees
    opened.context.route("**/highs.mjs", lambda route: route.abort())
    question = {"model": "vit-b16", "machine": "rtx-4090", "memory": "1.6GB", "batch": "8"}
    opened.goto(f"{address}#{urlencode(question)}")
    playwright.expect(opened.locator("#plan")).to_contain_text("no plan: the solver is not loaded", timeout=3 * MINUTE)
    assert opened.text_content("#sentence").startswith("does not fit as is")
    opened.context.unroute("**/highs.mjs")
    ask(opened, batch="9")
    playwright.expect(opened.locator("#plan p").first).to_contain_text("fits: GPU memory", timeout=3 * MINUTE)
    opened.close()


def test_the_keyboard_reads_every_value(page: Any) -> None:
    page.locator("#schemes-chart").focus()
    seen = set()
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        seen.add(page.text_content("#value"))
    assert len(seen) == 4
    assert all(" ms" in text and "GiB" in text for text in seen)


def test_a_cancelled_simulation_leaves_the_page_alive(page: Any) -> None:
    ask(page, model="llama-3.1-8b", machine="h100-sxm", batch="4")
    playwright.expect(page.locator("#doing")).to_contain_text("of", timeout=MINUTE)
    page.locator("#cancel").click()
    assert "cancelled" in page.text_content("#doing")
    ask(page, model="alexnet", machine="titan-x", batch="16")
    finished(page)
    assert page.problems == []


def test_without_a_network_after_the_first_load(page: Any) -> None:
    """Not for a search, whose solver no search has loaded yet, nor for the new worker after a cancelled one."""
    page.wait_for_function("navigator.serviceWorker.controller !== null", timeout=MINUTE)
    page.context.set_offline(True)
    ask(page, model="vit-b16", machine="rtx-4090", memory="1.6GB", batch="8")
    playwright.expect(page.locator("#plan table")).to_be_visible(timeout=3 * MINUTE)
    ask(page, batch="9")
    page.locator("#cancel").click()
    ask(page, model="alexnet", memory="", batch="32")
    finished(page)
    page.reload()
    finished(page)
    page.context.set_offline(False)


def test_screens_of_all_sizes(page: Any) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    for width, height in ((360, 740), (768, 1024), (1280, 800), (1600, 900)):
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(300)
            wide, tall = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
            assert wide <= width
            if width == 1280:
                bottom = page.locator("#time-chart").bounding_box()
                assert bottom["y"] + bottom["height"] <= height
            assert tall < 4000
            cut = "node => node.scrollWidth > node.clientWidth + 1"
            assert not any(page.evaluate(f"[...document.querySelectorAll('#legend, #command')].map({cut})"))
            if width == 360:  # no plan is needed: no empty box
                assert page.locator("#plan").bounding_box()["height"] < 60
            page.screenshot(path=SHOTS / f"{width}-{scheme}.png", full_page=True)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 640, "height": 400})  # 1280 x 800 at 200 %
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    page.set_viewport_size({"width": 1280, "height": 800})


def test_axe_finds_nothing_in_any_state(page: Any, tmp_path: Path) -> None:
    npm = shutil.which("npm")
    assert npm is not None
    done = subprocess.run([npm, "pack", "--silent", "axe-core@4.14.1"], cwd=tmp_path, capture_output=True, check=False)
    if done.returncode:
        pytest.skip("npm brings no axe-core")
    with folder_with(next(tmp_path.glob("*.tgz")), "axe.min.js") as package:
        page.evaluate((package / "axe.min.js").read_text(encoding="utf-8"))
    ask(page, model="vit-b16", machine="rtx-4090", memory="1.6GB", batch="8")
    playwright.expect(page.locator("#plan table")).to_be_visible(timeout=3 * MINUTE)
    assert findings_of_axe(page) == []
    ask(page, batch="-3")
    playwright.expect(page.locator("#batch-error")).not_to_be_empty(timeout=MINUTE)
    assert findings_of_axe(page) == []
    page.context.set_offline(True)
    ask(page, model="alexnet", memory="", batch="32")
    finished(page)
    assert findings_of_axe(page) == []
    page.context.set_offline(False)


def findings_of_axe(page: Any) -> list[tuple[str, list[str]]]:
    """Return what axe finds in the page as it is, in its light and its dark colours."""
    findings = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(300)
        result = page.evaluate("axe.run()")
        findings += [(one["id"], [node["html"][:120] for node in one["nodes"]]) for one in result["violations"]]
    page.emulate_media(color_scheme="light")
    return findings
