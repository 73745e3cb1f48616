"""`buddysim networks`: list, show, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from buddysim.cli import main
from buddysim.training import zoo
from buddysim.training.named_network import load_network
from buddysim.training.networks.toml_reader import parse_network


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        code = main(argv)
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_list_has_every_network(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "networks", "list")
    assert (code, err) == (0, "")
    rows = out.splitlines()[2 : 2 + len(zoo.names())]
    assert [line.split()[0] for line in rows] == list(zoo.names())
    code, out, _ = run(capsys, "networks", "list", "--json", "-")
    assert {row["name"]: row["parameters"] for row in json.loads(out)}["vgg19"] == 143_667_240


def test_info_shows_layers_bytes_and_flops(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "networks", "show", "vgg19", "--batch", "256")
    assert (code, err) == (0, "")
    assert "45 layers, 143,667,240 parameters" in out
    assert "22.972" in out
    assert all(layer.name in out for layer in load_network("vgg19").layers)
    assert all(line == line.rstrip() for line in out.splitlines())


def test_info_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "networks", "show", "vgg19", "--batch", "256", "--json", "-")
    printed = json.loads(out)
    assert code == 0
    memory = printed["memory"]
    kinds = ("weights_bytes", "weight_gradient_bytes", "feature_map_bytes", "gradient_map_bytes")
    assert memory["total_bytes"] == sum(memory[kind] for kind in kinds) == 24_666_227_008
    assert printed["forward_flops"] == sum(layer["forward_flops"] for layer in printed["per_layer"])
    conv = printed["per_layer"][1]
    assert conv["output_shape"] == [64, 224, 224]
    assert conv["forward_flops"] == 256 * 2 * 27 * 64 * 224**2
    assert conv["backward_flops"] == conv["forward_flops"]  # the gradient of the image is not computed
    assert printed["per_layer"][3]["backward_flops"] == 2 * printed["per_layer"][3]["forward_flops"]


def test_info_as_a_network_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "networks", "show", "resnet18", "--toml")
    assert code == 0
    assert parse_network(out).layers == load_network("resnet18").layers
    file = tmp_path / "mine.toml"
    file.write_text(out, encoding="utf-8")
    code, out, _ = run(capsys, "networks", "show", str(file))
    assert code == 0
    assert "11,689,512 parameters" in out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("show", "vg19"), "(nearest: vgg19)"),
        (("show", "vgg19", "--batch", "0"), "--batch 0: expected an integer from 1 to 1048576"),
        (("show", "absent.toml"), "absent.toml: can't read the network file"),
        (("inf", "vgg19"), "'inf': unknown"),
        (("show", "vgg19", "--json", "-", "--toml"), "not allowed with"),
        (("from-torch", "a.py:b", "--input-shape", "three"), "a.py"),
    ],
)
def test_mistakes(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], problem: str) -> None:
    code, out, err = run(capsys, "networks", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("buddysim: error: ")
    assert problem in err or "PyTorch" in err


def test_a_plug_in_after_the_action(capsys: pytest.CaptureFixture[str]) -> None:
    examples = Path(__file__).parents[2] / "docs" / "examples"
    command = ["networks", "show", str(examples / "leaky.toml")]
    assert main(command) == 2
    assert "'leaky-relu' is not a kind of layer (nearest: relu)" in capsys.readouterr().err
    assert main([*command, "--plugin", str(examples / "plugins" / "leaky_relu.py")]) == 0
    assert "leaky-relu (in place)" in capsys.readouterr().out
