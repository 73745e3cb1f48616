"""Saved results of training simulations: what `train` writes, and only of this version of the simulator."""

from __future__ import annotations

import json
from pathlib import Path

from buddysim.cli import main
from buddysim.papers.saved import SavedResults, file_name


def test_what_is_saved_is_what_train_writes(tmp_path: Path) -> None:
    result = SavedResults(tmp_path).result("alexnet-cifar10", 4, "vdnn-all-m", link="pcie4")
    path = tmp_path / file_name("alexnet-cifar10", 4, "titan-x", {"link": "pcie4"})
    own = tmp_path / "own.json"
    arguments = ["alexnet-cifar10", "--batch", "4", "--scheme", "vdnn-all-m", "--link", "pcie4", "--json", str(own)]
    assert main(["train", *arguments]) == 0
    assert json.loads(path.read_text()) == json.loads(own.read_text()) == {"vdnn-all-m": result}


def test_results_of_another_simulator_are_not_used(tmp_path: Path) -> None:
    SavedResults(tmp_path).result("alexnet-cifar10", 4, "oracle")
    (path,) = tmp_path.iterdir()
    saved = json.loads(path.read_text())
    saved["oracle"]["provenance"]["simulator_checksum"] = "another"
    path.write_text(json.dumps(saved))
    again = SavedResults(tmp_path)
    again.result("alexnet-cifar10", 4, "oracle")
    assert again.simulated == 1
    read = SavedResults(tmp_path)
    assert read.results("alexnet-cifar10", 4, ["oracle"]) == again.results("alexnet-cifar10", 4, ["oracle"])
    assert read.simulated == 0
