"""A predicted step against traces: made by hand as a GPU's, and taken on a CPU by PyTorch 2.13."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from buddysim.cli import main
from buddysim.training.against.alignment import aligned
from buddysim.training.against.collective_kernels import collective_of
from buddysim.training.against.comparison import PredictedOperation, compared
from buddysim.training.against.measured_step import measured_step
from buddysim.training.against.trace_file import ProfilerTrace, TraceEvent

DATA = Path(__file__).parent / "data"
HOST, STREAM = ("1", "1"), ("0", "7")


def event(kind: Any, name: str, start: float, length: float, external: int | None = None, link: int | None = None):
    return TraceEvent(kind, name, start, length, STREAM if kind in ("kernel", "copy") else HOST, external, link)


def gpu_trace() -> ProfilerTrace:
    """Two steps: ``linear`` calls ``mm``, which launches by external number; ``mean`` calls ``sum``, by correlation."""
    events = []
    for step, begin in enumerate((0.0, 100.0)):
        first = 10 * step
        events += [
            event("step", f"ProfilerStep#{step}", begin, 50 + 10 * step),
            event("operator", "aten::linear", begin + 1, 9, first + 1),
            event("operator", "aten::mm", begin + 2, 5, first + 2),
            event("runtime", "cudaLaunchKernel", begin + 3, 1, link=first + 1),
            event("kernel", "sm80_gemm", begin + 10, 20, first + 2, first + 1),
            event("operator", "aten::mean", begin + 12, 8),
            event("operator", "aten::sum", begin + 13, 4),
            event("runtime", "cudaLaunchKernel", begin + 14, 1, link=first + 2),
            event("kernel", "reduce", begin + 25, 10, link=first + 2),
            event("copy", "Memcpy HtoD (Pinned -> Device)", begin + 60, 5, link=999),
        ]
    return ProfilerTrace("a GPU", tuple(sorted(events, key=lambda one: (one.start_us, -one.duration_us))))


def test_kernels_belong_to_the_outermost_known_operator_that_launched_them() -> None:
    step = measured_step(gpu_trace(), {"mm", "mean", "sum"})
    assert (step.label, step.steps, step.on_gpu) == ("ProfilerStep#0", 2, True)
    assert [(one.name, one.kernels) for one in step.operations] == [
        ("mm", [("sm80_gemm", 20)]),
        ("mean", [("reduce", 10)]),
    ]
    assert step.busy_us == 25  # from 10 to 35, five of them twice
    assert step.us == 50


def test_a_step_ends_with_its_last_kernel() -> None:
    late = event("kernel", "late", 70, 10, external=2)
    trace = gpu_trace()
    step = measured_step(ProfilerTrace(None, (*trace.events, late)), {"mm"})
    assert step.us == 80


def test_a_trace_without_marks_is_one_step() -> None:
    trace = ProfilerTrace(None, tuple(one for one in gpu_trace().events if one.kind != "step"))
    step = measured_step(trace, {"mm"})
    assert (step.label, step.steps) == ("", 0)
    assert [one.name for one in step.operations].count("mm") == 2
    assert len([name for one in step.operations for name, _ in one.kernels]) == 6


def test_a_cpu_operator_has_its_own_time() -> None:
    trace = ProfilerTrace(None, tuple(one for one in gpu_trace().events if one.kind not in ("kernel", "copy")))
    step = measured_step(trace, {"mm", "sum"})
    assert not step.on_gpu
    assert {one.name: one.us for one in step.operations} == {"linear": 4, "mm": 5, "mean": 4, "sum": 4}


PREDICTED = [
    PredictedOperation("mm", "model.layers.0", "forward", "products", 30.0),
    PredictedOperation("mean", "model.norm", "forward", "other kernels", 4.0),
    PredictedOperation("sum", "", "backward", "other kernels", 1.0),
]


def test_the_largest_difference_comes_first() -> None:
    comparison = compared("t.json", gpu_trace(), PREDICTED)
    assert comparison.matched == 2
    assert [(one.name, one.excess_us) for one in comparison.largest()] == [("mm", 10.0), ("mean", -6.0)]
    assert [tuple(one) for one in comparison.kinds] == [
        ("products", 1, 1, 30.0, 20.0),
        ("other kernels", 2, 1, 5.0, 10.0),
    ]
    assert (comparison.predicted_us, comparison.kernel_us) == (35.0, 30.0)
    assert comparison.to_dict()["operators"][-1]["name"] == "sum"


def test_a_kernel_of_nccl_is_a_collective_of_its_own() -> None:
    """DDP: one operator of autograd launches two; a third one belongs to no operator."""
    accumulate = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    all_reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    events = (
        event("operator", accumulate, 0, 50),
        event("operator", "c10d::allreduce_", 1, 8),
        event("operator", "record_param_comms", 2, 6, 5),
        event("kernel", all_reduce, 10, 20, 5),
        event("kernel", all_reduce, 40, 25, 5),
        event("operator", "fsdp::split_with_sizes_copy", 70, 5, 6),
        event("kernel", "copies", 75, 2, 6),
        event("kernel", "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*)", 80, 9),
    )
    names = ("all_reduce", "all_reduce", "split_with_sizes_copy", "all_gather")
    predicted = [PredictedOperation(name, "", "backward", "communication", 21.0) for name in names]
    comparison = compared("t.json", ProfilerTrace(None, events), predicted)
    assert [(one.name, one.measured_us) for one in comparison.operations] == list(
        zip(names, (20, 25, 2, 9), strict=True)
    )
    assert comparison.matched == 4
    assert [one.name for one in comparison.largest()][:2] == ["split_with_sizes_copy", "all_gather"]
    assert collective_of("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)") is None


NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=40)


@given(NAMES, NAMES)
def test_alignment_has_every_position_once_and_in_order(one: list[str], other: list[str]) -> None:
    pairs = list(aligned(one, other))
    assert [first_position for first_position, _ in pairs if first_position is not None] == list(range(len(one)))
    assert [second_position for _, second_position in pairs if second_position is not None] == list(range(len(other)))
    assert all(
        one[first_position] == other[second_position]
        for first_position, second_position in pairs
        if first_position is not None and second_position is not None
    )


@given(st.lists(st.integers(0, 1000), min_size=8, unique=True, max_size=40), st.data())
def test_what_one_has_alone_is_found(names: list[int], data: st.DataObject) -> None:
    removed = data.draw(st.integers(0, len(names) - 1))
    texts = [str(name) for name in names]
    pairs = list(aligned(texts, texts[:removed] + texts[removed + 1 :]))
    assert [first_position for first_position, second_position in pairs if second_position is None] == [removed]


ARGUMENTS = ("--machine", "a100-40", "--batch", "3", "--sequence", "10", "--attention", "eager")


def test_a_real_trace_of_the_same_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All but one of the predicted operations stand in the trace, in the same order."""
    out = tmp_path / "out.json"
    trace = str(DATA / "llama_cpu.json.gz")
    assert main(["train", str(DATA / "llama.json"), *ARGUMENTS, "--against", trace, "--json", str(out)]) == 0
    screen = capsys.readouterr().out
    assert "ProfilerStep#1" in screen
    assert "it shows which operations match" in screen
    assert "predicted step" in screen
    content = json.loads(out.read_text())
    operations = [one for one in content["operations"] if one["predicted_us"] is not None]
    assert len(operations) > 150
    assert content["matched"] >= len(operations) - 1
    assert {one["phase"] for one in operations} == {"forward", "backward", "optimizer"}


@pytest.mark.parametrize(
    ("scheme", "message"),
    [("all", "expected one scheme with --against"), ("vdnn-all-m", "planned by layers, not operation by operation")],
)
def test_the_scheme_is_that_of_the_measured_step(scheme: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Recomputed operations are predicted where the scheme recomputes; schemes without a record are refused."""
    command = ["train", str(DATA / "llama.json"), *ARGUMENTS, "--against", str(DATA / "llama_cpu.json.gz"), "--scheme"]
    assert main([*command, "activation-checkpointing"]) == 0
    assert "operations matched" in capsys.readouterr().out
    assert main([*command, scheme]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_another_model_is_said_to_be_another(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["train", "resnet50", "--against", str(DATA / "llama_cpu.json.gz")]
    assert main(arguments) == 2
    assert "resnet50 has no recorded operations" in capsys.readouterr().err
    other = [
        "train",
        "opt-125m",
        "--machine",
        "a100-40",
        "--sequence",
        "16",
        "--against",
        str(DATA / "llama_cpu.json.gz"),
    ]
    assert main(other) == 0
    assert "Few operations match" in capsys.readouterr().out


def test_a_file_that_is_none_of_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.json").write_text("hello")
    arguments = ["train", str(DATA / "llama.json"), "--machine", "a100-40", "--against", str(tmp_path / "x.json")]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "neither a PyTorch profiler trace" in error
