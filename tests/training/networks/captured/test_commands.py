"""The commands that take a network, on a captured graph: all schemes, the search of a plan, a sweep."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.cli.test_train_config import run

GRAPH = str(Path(__file__).parents[4] / "traces" / "fashion-cnn.graph.json")
BATCH = 65536  # eager needs 14 GiB


def test_all_schemes(capsys: pytest.CaptureFixture[str]) -> None:
    """Each that trains it needs no more than eager does with enough memory, and none is faster."""
    command = ["train", GRAPH, "--machine", "rtx-4090", "--batch", str(BATCH), "--scheme", "all", "--json", "-"]
    code, out, _ = run(capsys, *command)
    results = json.loads(out)
    assert code == 0
    eager = results["eager"]
    assert eager["fits"]
    trained = {name: one for name, one in results.items() if "memory.peak_bytes" in one and one["fits"]}
    assert {"activation-checkpointing", "offload-activations", "offload-optimizer", "save-on-cpu"} <= set(trained)
    for name, one in trained.items():
        assert one["memory.peak_bytes"] <= 1.01 * eager["memory.peak_bytes"], name
    assert trained["activation-checkpointing"]["memory.peak_bytes"] < 0.9 * eager["memory.peak_bytes"]
    assert trained["activation-checkpointing"]["time_ms"] > eager["time_ms"]


@pytest.mark.slow
def test_a_plan_is_found(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In the memory of eager's tensors, without that of the GPU's context; `train` reads the plan and says the same."""
    command = ["train", GRAPH, "--machine", "rtx-4090", "--batch", str(BATCH), "--json", "-"]
    _, out, _ = run(capsys, *command, "--scheme", "eager")
    eager = json.loads(out)["eager"]
    budget = f"{eager['memory.peak_bytes']}B"
    plan, answer = str(tmp_path / "plan.toml"), str(tmp_path / "answer.json")
    of_fit = ["fit", *command[1:-2], "--memory-budget", budget, "-o", plan, "--json", answer, "--tries", "1"]
    code, _, err = run(capsys, *of_fit)
    assert (code, err) == (0, "")
    written = json.loads(Path(answer).read_text(encoding="utf-8"))
    assert written["memory.peak_bytes"] < eager["memory.peak_bytes"]
    assert written["time_ms"] >= eager["time_ms"]
    _, out, _ = run(capsys, *command, "--scheme", "plan", "--plan", plan, "--memory-budget", budget)
    again = json.loads(out)["plan"]
    assert (again["time_ms"], again["memory.peak_bytes"]) == (written["time_ms"], written["memory.peak_bytes"])


def test_a_sweep(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("duckdb", reason="needs pip install 'buddysim[sweep]'")
    study, table = tmp_path / "study.toml", tmp_path / "table.csv"
    study.write_text(
        f'[set]\nnetwork = "{GRAPH}"\nmachine = "rtx-4090"\n'
        '[grid]\nbatch = [32, 64]\nscheme = ["eager", "activation-checkpointing"]\n'
    )
    store = ["--store", str(tmp_path / "store")]
    assert run(capsys, "sweep", str(study), *store, "--workers", "1")[0] == 0
    columns = "batch,scheme,memory.peak_bytes"
    assert run(capsys, "results", *store, "--columns", columns, "-o", str(table))[0] == 0
    with table.open(newline="") as file:
        rows = {(int(row["batch"]), row["scheme"]): int(row["memory.peak_bytes"]) for row in csv.DictReader(file)}
    assert len(rows) == 4
    command = ["train", GRAPH, "--machine", "rtx-4090", "--batch", "64", "--scheme", "eager", "--json", "-"]
    _, out, _ = run(capsys, *command)
    assert rows[64, "eager"] == json.loads(out)["eager"]["memory.peak_bytes"]
    assert rows[64, "activation-checkpointing"] < rows[64, "eager"]
