"""The schemas of files, with a valid content of each and the function that checks one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from buddysim.base.schema import Schema, checked, checked_cells, checked_json, checked_type
from buddysim.buddy.targets import TargetsFile
from buddysim.capture.torch.spool import ProgressFields, SpooledHead
from buddysim.formats.activations import FeatureMapStatistics, TrainingPoint, records
from buddysim.formats.activations.records import PayloadSize
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.importers.opencl import bundle
from buddysim.sweep.jobs import JobsFile
from buddysim.sweep.stored_finding import StoredFinding
from buddysim.sweep.study import StudyTables
from buddysim.training.against import trace_file
from buddysim.training.architectures.read_config import UnreadConfig, parse_config
from buddysim.training.architectures.registry import REGISTRY
from buddysim.training.caching_allocator.snapshot.read import BLOCK, EVENT, SEGMENT, SNAPSHOT
from buddysim.training.contents.density_table import DensityFields, DensityFile
from buddysim.training.cost.calibration import CalibrationFile
from buddysim.training.cost.timings import TimingFields
from buddysim.training.networks.toml_reader import LayerFields, NetworkFile
from buddysim.training.plans.schema import DecisionFields, RecordedPlanFields
from buddysim.validation.curve.curve_data import CurveFields
from buddysim.validation.kernel.counter_data import MeasuredFields
from buddysim.validation.kernel.replays import ReplayFields
from tests.fuzz import good_files
from tests.fuzz.grammar import json_of
from tests.fuzz.graphs import small_graph


@dataclass(frozen=True)
class TypedFile:
    """A schema.

    Attributes
    ----------
    name : of the file
    good : a valid content
    json_schema : as JSON schema
    check : raises a BuddysimError for a content that is not valid
    null_is_missing : whether a key with null counts as one that is missing
    cells : whether it is a row of CSV, whose values are texts
    """

    name: str
    good: Any
    json_schema: dict[str, Any]
    check: Callable[[Any], object]
    null_is_missing: bool = False
    cells: bool = False


def _schema(name: str, schema: type[Schema], good: Any) -> TypedFile:
    return TypedFile(name, good, schema.model_json_schema(), lambda content: checked(schema, content, "FILE"))


def _adapter(name: str, adapter: TypeAdapter[Any], good: Any) -> TypedFile:
    return TypedFile(name, good, adapter.json_schema(), lambda tree: checked_json(adapter, json_of(tree), "FILE"))


def _row(name: str, schema: type[Schema], text: str) -> TypedFile:
    """Return the schema of a row; a valid one is the last of a text."""
    head, *_, last = [line.split(",") for line in text.splitlines() if line and line[0] != "#"]
    cells = {key: cell for key, cell in zip(head, last, strict=True) if cell}
    check = lambda content: checked_cells(schema, content, "FILE")  # noqa: E731
    return TypedFile(name, cells, schema.model_json_schema(), check, cells=True)


def _python(name: str, adapter: TypeAdapter[Any], good: Any) -> TypedFile:
    return TypedFile(name, good, adapter.json_schema(), lambda content: checked_type(adapter, content, "FILE"))


def _bundle(event: type[Schema], **fields: Any) -> TypedFile:
    schema = event.model_json_schema()
    name = schema["properties"]["ev"]["const"]
    good = {"ev": name, "launch": 0, **fields}
    return TypedFile(f"event {name}", good, schema, lambda content: checked_type(bundle.EVENT, content, "FILE"))


def _config(name: str) -> TypedFile:
    schema = REGISTRY.find(name).config.model_json_schema()
    return TypedFile(
        name, good_files.config(name), schema, lambda content: parse_config(UnreadConfig(content, "FILE", "x")), True
    )


def _graph() -> Any:
    """Return the first operator of a graph."""
    graph = json.loads(small_graph().to_json())
    return {
        **graph,
        "storages": graph["storages"][:4],
        "tensors": graph["tensors"][:4],
        "operators": graph["operators"][:1],
    }


def typed_files() -> list[TypedFile]:
    """Return every schema."""
    network, snapshot = good_files.network(), good_files.snapshot()
    size = PayloadSize("zvc", "NCHW", 4096, 8)
    point = TrainingPoint(0, 0.0, 1, (FeatureMapStatistics(0, 4, 2, (size,), 4),))
    return [
        _schema("jobs", JobsFile, good_files.JOBS),
        _schema("targets", TargetsFile, {"targets": {"a": "2x"}}),
        _schema("densities", DensityFile, good_files.DENSITIES),
        _schema("network", NetworkFile, network),
        _schema("layer", LayerFields, network["layer"][0]),
        _schema("plan", DecisionFields, good_files.plan()),
        _schema("plan of blocks", RecordedPlanFields, good_files.PLAN),
        _schema("calibration", CalibrationFile, tomllib.loads(good_files.calibration())),
        _adapter("operator graph", TypeAdapter(OperatorGraph), _graph()),
        _adapter("feature maps", records.MAPS, [{"name": "a", "kind": "relu", "shape": [4]}]),
        _adapter("training point", records.POINT, json.loads(records.POINT.dump_json(point))),
        _adapter("end of training points", records.END, {"points": 1, "values": 0, "state": "finished"}),
        _schema("study", StudyTables, good_files.study()),
        _schema("head of a spooled snapshot", SpooledHead,
                {"iteration": 0, "loss": None, "compressor": "bpc", "storages": [["a", "weight", 128, True]]}),
        _schema("stored finding", StoredFinding,
                {"title": "a", "columns": ["x"], "rows": [[1]], "notes": ["n"], "provenance": {}}),
        _schema("progress", ProgressFields, {"iterations": 1, "finished": False, "problem": ""}),
        _python("memory snapshot", SNAPSHOT, snapshot),
        _python("event of a snapshot", EVENT, snapshot["device_traces"][0][0]),
        _python("segment of a snapshot", SEGMENT, snapshot["segments"][0]),
        _python("block of a snapshot", BLOCK, snapshot["segments"][0]["blocks"][0]),
        _python("event of a profiler trace", trace_file.EVENT, {"name": "a", "ts": 1.0, "dur": 2.0}),
        _bundle(bundle.BundleAlloc, addr=128, size=128),
        _bundle(bundle.BundleFree, addr=128),
        _bundle(bundle.BundleKernel, name="k", **{"global": [64, 1, 1], "local": [32, 1, 1]}),
        _bundle(bundle.BundleKernelEnd, warp_ops=3),
        _row("row of densities", DensityFields, good_files.DENSITIES_CSV),
        _row("row of timings", TimingFields, good_files.timings()),
        _row("row of curves", CurveFields, good_files.CURVES),
        _row("row of kernels", MeasuredFields, good_files.kernels("gv100_kernels.csv")),
        _row("row of replays", ReplayFields, good_files.kernels("gv100_replays.csv")),
        *(_config(name) for name in good_files.CONFIGS),
    ]  # fmt: skip
