"""The schemas of files, with a valid content of each and the function that checks one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from buddysim.base.schema import Schema, checked, checked_json
from buddysim.buddy.targets import TargetsFile
from buddysim.formats.activations import FeatureMapStatistics, TrainingPoint, records
from buddysim.formats.activations.records import PayloadSize
from buddysim.formats.operator_graph import OperatorGraph
from buddysim.sweep.jobs import JobsFile
from buddysim.training.architectures.read_config import parse_config
from buddysim.training.architectures.registry import REGISTRY
from buddysim.training.contents.density_table import DensityFile
from buddysim.training.cost.calibration import CalibrationFile
from buddysim.training.networks.toml_reader import LayerFields, NetworkFile
from buddysim.training.plans.schema import DecisionFields, RecordedPlanFields
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
    """

    name: str
    good: Any
    json_schema: dict[str, Any]
    check: Callable[[Any], object]
    null_is_missing: bool = False


def _schema(name: str, schema: type[Schema], good: Any) -> TypedFile:
    return TypedFile(name, good, schema.model_json_schema(), lambda content: checked(schema, content, "FILE"))


def _adapter(name: str, adapter: TypeAdapter[Any], good: Any) -> TypedFile:
    return TypedFile(name, good, adapter.json_schema(), lambda tree: checked_json(adapter, json_of(tree), "FILE"))


def _config(name: str) -> TypedFile:
    schema = REGISTRY.find(name).config.model_json_schema()
    return TypedFile(name, good_files.config(name), schema, lambda content: parse_config(content, "FILE", "x"), True)


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
    network = good_files.network()
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
        *(_config(name) for name in good_files.CONFIGS),
    ]  # fmt: skip
