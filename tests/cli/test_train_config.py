"""``train`` and ``networks show`` on a model's ``config.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import buddysim
from buddysim.cli import main
from buddysim.cli.train import DEFAULT_SCHEMES_TODAY
from buddysim.machine.training import TrainingMachine
from buddysim.training import schemes, simulate
from buddysim.training.recorded_step.from_config import network_from_config

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 384,
    "vocab_size": 1000,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
ATTENTION = 2 * 128 * 128 + 2 * 128 * 64
PARAMETERS = 3 * (ATTENTION + 3 * 128 * 384 + 2 * 128) + 2 * 1000 * 128 + 128
GPU = ["--machine", "h100-sxm"]


@pytest.fixture
def config(tmp_path: Path) -> str:
    folder = tmp_path / "tiny-llama"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return str(folder / "config.json")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    try:
        code = main(list(arguments))
    except SystemExit as stopped:
        code = int(stopped.code or 0)
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_screen_compares_with_eager(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "train", config, *GPU, "--batch", "2", "--sequence", "64")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("tiny-llama, batch 2, on h100-sxm")
    assert lines[1].startswith("sequence 64, recipe bf16, attention flash, loss whole")
    assert "optimizer adamw" in lines[2]
    assert "vs eager" in out
    rows = {line.split()[0] for line in lines if line and line.split()[1:2] == ["yes"]}
    assert rows == set(DEFAULT_SCHEMES_TODAY)
    assert max(map(len, lines)) <= 80


def test_schemes_that_are_planned_by_layers_say_so_below_the_table(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where an option's operations belong to no layer; it is an error where no other scheme is simulated."""
    command = ("train", config, *GPU, "--sequence", "64", "--fsdp", "2")
    code, out, err = run(capsys, *command, "--scheme", "eager,vdnn-all-p,naive-swap")
    assert (code, err) == (0, "")
    assert "not simulated with fsdp: planned layer by layer: vdnn-all-p, naive-swap" in out.splitlines()
    for names in ("vdnn-all-p", "vdnn-all-p,naive-swap"):
        code, out, err = run(capsys, *command, "--scheme", names)
        assert (code, out) == (2, "")
        assert err.startswith(f"buddysim: error: {names.replace(',', ', ')}: not simulated with fsdp: planned layer")
        assert len(err.splitlines()) == 1


def test_json_has_the_parameters_and_every_saved_tensor(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "networks", "show", config, "--sequence", "64", "--json", "-")
    assert code == 0
    shown = json.loads(out)
    assert shown["parameters"] == PARAMETERS
    by_tensor = shown["parameters_by_tensor"]
    assert by_tensor["model.layers.2.self_attn.k_proj.weight"] == [64, 128]
    assert sum(_product(shape) for shape in by_tensor.values()) == PARAMETERS
    assert shown["memory"]["weights_bytes"] == 2 * PARAMETERS
    storages = {one["storage"]: one["bytes"] for one in shown["saved_tensors"] if "weight" not in one["producer"]}
    weights = {one["storage"] for one in shown["saved_tensors"] if one["producer"] in ("parameter", "buffer", "input")}
    assert shown["memory"]["saved_bytes"] <= sum(storages.values())
    assert sum(shown["saved_by_kind"].values()) == shown["memory"]["saved_bytes"]
    assert weights
    assert shown["options"]["sequence"] == 64


def _product(shape: list[int]) -> int:
    product = 1
    for extent in shape:
        product *= extent
    return product


def test_the_screen_of_a_model_fits_80_columns(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "networks", "show", config, "--sequence", "64")
    assert code == 0
    assert f"{PARAMETERS:,} parameters" in out
    assert "*.mlp.down_proj" in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_request_in_python_is_the_command_lines(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--batch", "2", "--sequence", "64", "--loss", "chunked:4", "--optimizer", "sgd", "--json", "-"]
    code, out, _ = run(capsys, "train", config, *GPU, "--scheme", "eager", *arguments)
    assert code == 0
    result = simulate(config, 2, "h100-sxm", sequence=64, loss="chunked:4", optimizer="sgd")
    assert simulate(CONFIG, 2, "h100-sxm", sequence=64, loss="chunked:4", optimizer="sgd").counters == result.counters
    shown = json.loads(out)["eager"]
    assert shown == json.loads(json.dumps(result.to_dict()))
    assert shown["provenance"]["network_options"]["loss"] == "chunked:4"
    network = network_from_config(CONFIG, sequence=64, loss="chunked:4")
    assert shown["memory.peak_bytes"] == network.at(2, "sgd").tape.peak_bytes()
    assert network.parameters == PARAMETERS


def test_options_change_what_is_saved(config: str) -> None:
    def peak(**options: Any) -> int:
        counters = simulate(config, 2, "h100-sxm", optimizer="none", **{"sequence": 128, **options}).counters
        return int(counters["memory.peak_bytes"])

    usual = peak()
    assert peak(sequence=64) < usual
    assert peak(loss="fused") < peak(loss="chunked:4") < usual
    assert peak(attention="eager") > usual
    assert peak(recipe="fp32") > usual


def test_options_are_axes_of_sweeps(config: str, tmp_path: Path) -> None:
    grid = {"network": [config], "machine": ["h100-sxm"], "sequence": [64, 128], "loss": ["whole", "fused"]}
    grid["optimizer"] = ["none"]
    rows = buddysim.run_sweep(grid=grid, store=tmp_path / "store", workers=1).rows()
    assert len({row["memory.peak_bytes"] for row in rows}) == 4
    assert {row["scheme"] for row in rows} == {"eager"}
    assert {row["batch"] for row in rows} == {1}
    again = buddysim.run_sweep(grid=grid, store=tmp_path / "store", workers=1)
    assert again.summary.done == 0


def test_the_largest_batch_is_found(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    own = ["training.device_memory=64MiB", "training.context_memory=0B", "training.cublas_workspace=0B"]
    arguments = ["--set", *own, "--sequence", "64", "--scheme", "eager", "--max-batch"]
    code, out, _ = run(capsys, "train", config, *GPU, *arguments, "--json", "-")
    assert code == 0
    batch = json.loads(out)["eager"]["provenance"]["batch"]

    def fits(batch: int) -> bool:
        machine = TrainingMachine.load("h100-sxm").with_overrides(dict(one.split("=") for one in own), "--set")
        result = simulate(config, batch, machine, sequence=64)
        return bool(result.counters["fits"])

    assert batch > 1
    assert fits(batch)
    assert not fits(batch + 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "machine: not named: expected the GPU that trains tiny-llama (--machine; see: machines)"),
        ([*GPU, "--sequence", "513"], "sequence 513: expected at most 512"),
        ([*GPU, "--sequence", "0"], "sequence 0: expected 1 to"),
        ([*GPU, "--attention", "fast"], "attention 'fast': expected one of eager, efficient, flash"),
        (
            [*GPU, "--recipe", "fp8"],
            "recipe 'fp8': unknown, expected one of fp32, tf32, amp-fp16,",
        ),
        ([*GPU, "--loss", "chunked:0"], "loss 'chunked:0': expected whole, fused or chunked:N"),
        ([*GPU, "--precision", "bf16"], "precision bf16: tiny-llama has number formats of its own: expected a recipe"),
        ([*GPU, "--scheme", "baseline-p"], "scheme baseline-p: allocates the papers' networks: expected eager"),
        (["--machine", "titan-x"], "precision bf16: titan-x has no rate for it"),
        ([*GPU, "--batch", "1048576", "--sequence", "512", "--optimizer", "adma"], "optimizer 'adma'"),
    ],
)
def test_one_line_says_what_is_wrong(
    config: str, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, _, err = run(capsys, "train", config, *arguments)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({}, "neither a model configuration (architectures or model_type is missing) nor an operator graph"),
        ({"architectures": ["FooForCausalLM"]}, "'FooForCausalLM' is not known: expected one that"),
        ({**CONFIG, "num_attention_heads": 3}, "expected a multiple of"),
        ({**CONFIG, "num_hidden_layers": 10**9}, "num_hidden_layers: expected at most"),
        ({name: value for name, value in CONFIG.items() if name != "hidden_size"}, "hidden_size"),
    ],
)
def test_a_wrong_configuration_gets_one_line(
    content: dict[str, Any], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wrong.json").write_text(json.dumps(content))
    code, _, err = run(capsys, "train", str(tmp_path / "wrong.json"), *GPU)
    assert code == 2
    assert message in err
    assert err.count("\n") == 1


def test_a_large_file_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "config.json").open("w") as file:
        file.write('{"architectures": ["LlamaForCausalLM"], "x": "')
        file.truncate(100 << 20)
    code, _, err = run(capsys, "train", str(tmp_path / "config.json"), *GPU)
    assert code == 2
    assert "longer than" in err
    assert err.count("\n") == 1


def test_options_of_a_configuration_are_not_of_other_networks(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "train", "alexnet", "--sequence", "64")
    assert (code, err.count("\n")) == (2, 1)
    assert "sequence: alexnet is not a model's configuration: expected a config.json" in err
    code, _, err = run(capsys, "networks", "show", "tinyllama-1.1b", "--toml")
    assert code == 2
    assert "expected --json FILE" in err


@pytest.mark.slow
def test_an_iteration_of_a_large_model_is_quick() -> None:
    """Llama 3 70B: under 2 s and 500 MB; here a tenth of its layers, on a machine that others use too."""
    import time
    import tracemalloc

    content = {
        **CONFIG,
        "hidden_size": 8192, "num_hidden_layers": 8, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 128, "intermediate_size": 28672, "vocab_size": 128256, "max_position_embeddings": 131072,
    }  # fmt: skip
    tracemalloc.start()
    began = time.process_time()
    simulate(network_from_config(content, sequence=8192), 1, "h100-sxm")
    spent, (_, peak) = time.process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert spent < 4  # 0.15 s without tracing
    assert peak < 50 << 20


@pytest.mark.slow
def test_all_schemes_have_twelve_rows_or_one_each(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    common = ("train", config, *GPU, "--batch", "2", "--sequence", "64", "--scheme", "all")
    code, short, _ = run(capsys, *common)
    assert code == 0
    rows = short.partition("\nscheme ")[2].partition("\n\n")[0].splitlines()[1:]
    shown = [line for line in rows if line.split()[1:2] in (["yes"], ["NO"], ["-"], ["*"])]
    assert 0 < len(shown) <= 12
    assert "fits as is, " in short
    assert "nothing to do on this network (why: --all): " in short
    code, long, _ = run(capsys, *common, "--all")
    assert code == 0
    for name in schemes.runnable_schemes((), recorded=True):
        assert f"\n{name} " in long
    assert "nothing to offload: no CONV layers" in long
    assert "(--all)" not in long
