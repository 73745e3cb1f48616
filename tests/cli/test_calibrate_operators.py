"""`buddysim calibrate` with rows of operators, and `train` with its result."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.training.cost.model import CostModel
from buddysim.training.cost.operators.attention import attention_seconds
from buddysim.training.cost.operators.host import HOST
from buddysim.training.cost.operators.rows import parse_rows
from buddysim.training.networks.recorded.work import AttentionWork
from tests.docs.shell import ROOT

EXAMPLES = ROOT / "docs" / "examples" / "operators"
FILES = [str(EXAMPLES / f"{name}.csv") for name in ("products", "attention", "launches")]


@pytest.fixture(scope="module")
def fitted_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The file that the command writes of the examples, and what it prints."""
    output, printed = tmp_path_factory.mktemp("calibrate") / "mine.toml", io.StringIO()
    with redirect_stdout(printed):
        assert main(["calibrate", *FILES, "--machine", "gh200", "-o", str(output)]) == 0
    return output, printed.getvalue()


@pytest.fixture
def calibrated(fitted_file: tuple[Path, str]) -> CostModel:
    return CostModel.load("gh200", precision="bf16", calibration=fitted_file[0])


def test_own_rows_go_before_the_shipped_constants(calibrated: CostModel, fitted_file: tuple[Path, str]) -> None:
    model, shipped, shown = calibrated, CostModel.load("gh200", precision="bf16"), fitted_file[1]
    assert "products   bf16" in shown
    assert "attention  flash" in shown
    assert (shipped.source, model.calibrated) == ("predicted from h200", True)
    assert model.source == "timings of its operators, fitted by buddysim calibrate"
    own = model.operators
    assert own.product_constants("bf16") != shipped.operators.product_constants("bf16")
    assert (
        own.attention_constants("flash").peak_fraction != shipped.operators.attention_constants("flash").peak_fraction
    )
    assert own.memory_constants == shipped.operators.memory_constants
    assert (own.host.forward_us, own.host.backward_us, own.host.optimizer_us) == (9.5, 7.0, 0.6)
    assert (own.host.compiled_us, shipped.operators.host) == (HOST.compiled_us, HOST)


def test_the_fit_finds_the_rows_again(calibrated: CostModel) -> None:
    """The rows are of an H200, whose shipped constants were fitted to a hundred times as many."""
    own = calibrated.operators.product_constants("bf16")
    known = CostModel.load("h200", precision="bf16").operators.product_constants("bf16")
    assert own.peak_fraction == pytest.approx(known.peak_fraction, rel=0.15)


def test_training_says_what_its_times_come_from(
    capsys: pytest.CaptureFixture[str], fitted_file: tuple[Path, str]
) -> None:
    arguments = ["train", "alexnet", "--machine", "gh200", "--precision", "bf16", "--scheme", "eager"]
    assert main([*arguments, "--calibration", str(fitted_file[0])]) == 0
    assert "times of operators fitted by buddysim calibrate" in " ".join(capsys.readouterr().out.split())


def test_attention_backward_gives_a_rate(calibrated: CostModel, tmp_path: Path) -> None:
    """Rows that the model itself predicts at a rate of 0.6 give this rate."""
    forward = calibrated.operators
    rows = parse_rows((EXAMPLES / "attention.csv").read_text(encoding="utf-8"), "attention", "attention.csv")
    lines = ["gpu,kernel,batch,tokens,heads,kv_heads,head_size,window,us"]
    for row in rows[:6]:
        batch, tokens, heads, kv_heads, size, window = row.extents
        work = AttentionWork(batch, tokens, tokens, heads, kv_heads, size, window=window)
        us = 1e6 * attention_seconds(forward.attention_constants("flash"), forward.gpu, work, "bf16", 0.6)
        lines.append(",".join(map(str, ("mine", "flash", *row.extents, us))))
    path = tmp_path / "attention_backward.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    output = tmp_path / "both.toml"
    assert main(["calibrate", *FILES, str(path), "--machine", "gh200", "-o", str(output)]) == 0
    model = CostModel.load("gh200", precision="bf16", calibration=output)
    assert model.operators.attention_backward == pytest.approx(0.6, abs=0.002)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["products", "products"], "products: expected one file of each of attention, memory, experts"),
        (["products", "few"], "attention: flash: 1 rows: expected at least 8"),
        (["products", "other"], "column gpu: mine, yours: expected rows of one GPU"),
        (["experts"], "experts: no products in bf16"),
        (["products", "unknown"], "launches: sideways: expected one of forward, backward, optimizer"),
        (["products", "broken"], "broken.csv: row 2: expected gpu,launcher,operators,us"),
    ],
)
def test_errors_are_one_line(
    names: list[str], problem: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    texts = {
        "few": "gpu,kernel,batch,tokens,heads,kv_heads,head_size,window,us\nmine,flash,1,1024,8,8,128,0,9\n",
        "other": "gpu,launcher,operators,us\nyours,forward,200,5\n",
        "experts": "gpu,kernel,tokens,hidden,inner,per_token,experts,ranks,us\nmine,triton,64,512,512,2,8,1,90\n",
        "unknown": "gpu,launcher,operators,us\nmine,sideways,200,5\n",
        "broken": "gpu,launcher,operators,us\nmine,forward,200,never\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    paths = [FILES[0] if name == "products" else str(tmp_path / f"{name}.csv") for name in names]
    assert main(["calibrate", *paths, "--machine", "gh200", "-o", str(tmp_path / "mine.toml")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert problem in err


def test_a_file_with_other_keys_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('format = 1\nmachine = "gh200"\n\n[products.bf16]\nfloor = 1.0\n', encoding="utf-8")
    arguments = ["train", "alexnet", "--machine", "gh200", "--precision", "bf16", "--calibration", str(path)]
    assert main(arguments) == 2
    assert f"{path}: products.bf16.floor_us is missing" in capsys.readouterr().err
