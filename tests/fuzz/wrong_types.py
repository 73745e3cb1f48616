"""Every field of a schema with a value of every other type, one at a time: from the schema, without chance."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 0.5, -1e300, "", "x", "backward", "$x^{$", "\x1b[31m", [], ["x"], [1], [[1]], {},
    {"a": 1},
)  # fmt: skip

Json = dict[str, Any]
#: Steps from the whole to a field: names of fields, numbers of entries of a list, `ANY` for the first of a table.
Path = tuple[str | int, ...]
ANY = "*"


def fields_of(schema: Json) -> Iterator[tuple[Path, list[Json]]]:
    """Yield each field of a JSON schema, and the schemas that its value may have."""
    yield from _fields(schema, schema, (), ())


def _fields(root: Json, schema: Json, path: Path, within: tuple[str, ...]) -> Iterator[tuple[Path, list[Json]]]:
    for one in alternatives(root, schema):
        title = one.get("title", "")
        if title and title in within:
            continue  # a table within itself
        inner: dict[str | int, Any] = dict(one.get("properties", {}))
        inner |= dict(enumerate(one.get("prefixItems", ())))
        if isinstance(one.get("items"), dict):
            inner[0] = one["items"]
        if isinstance(one.get("additionalProperties"), dict):
            inner[ANY] = one["additionalProperties"]
        for step, field in inner.items():
            yield (*path, step), alternatives(root, field)
            yield from _fields(root, field, (*path, step), (*within, title))


def alternatives(root: Json, schema: Json) -> list[Json]:
    """Return the schemas that a schema stands for: what it refers to, the members of a union."""
    if "$ref" in schema:
        return alternatives(root, root["$defs"][schema["$ref"].rpartition("/")[2]])
    members = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    return [one for member in members for one in alternatives(root, member)] if members else [schema]


def wrong_values(schemas: list[Json]) -> list[Any]:
    """Return the values of `VALUES` that a field with these schemas refuses by their type, and those out of bounds."""
    wrong = [value for value in VALUES if not any(_has_type(value, schema) for schema in schemas)]
    if len(schemas) == 1:
        (schema,) = schemas
        step = 1 if schema.get("type") == "integer" else 0.5
        wrong += [schema[name] - step for name in ("minimum",) if name in schema]
        wrong += [max(schema[name] + step, 2 * schema[name]) for name in ("maximum",) if name in schema]
        wrong += [schema[name] for name in ("exclusiveMinimum", "exclusiveMaximum") if name in schema]
    return wrong


def right_values(schemas: list[Json]) -> list[Any]:
    """Return values at the bounds of a field's schemas: those of its type that it accepts."""
    right: list[Any] = []
    for schema in schemas:
        right += [schema[name] for name in ("minimum", "maximum", "const") if name in schema]
        if schema.get("type") == "integer" and "exclusiveMaximum" in schema:
            right.append(schema["exclusiveMaximum"] - 1)
        right += schema.get("enum", [])
        right += {"boolean": [True, False], "null": [None]}.get(schema.get("type", ""), [])
    return right


def with_value(root: Json, tree: Any, path: Path, value: Any) -> Any:
    """Return the tree with a value at a path; what is missing on the way is made from the schema."""
    changed = pickle.loads(pickle.dumps(tree))  # a third of the time of `deepcopy`
    holder, schema = changed, root
    for depth, step in enumerate(path):
        last = depth + 1 == len(path)
        table = next(one for one in alternatives(root, schema) if _inner(one, step) is not None)
        schema = _inner(table, step)  # type: ignore[assignment]
        if isinstance(holder, list):
            if not holder:
                holder.append(smallest(root, schema))
            key: str | int = step
        elif step == ANY:
            key = next(iter(holder), "x")
        else:
            key = step
        if last:
            holder[key] = copy.deepcopy(value)
        else:
            requested = list if isinstance(path[depth + 1], int) else dict
            present = holder[key] if isinstance(holder, list) or key in holder else None
            if not isinstance(present, requested):
                holder[key] = smallest(root, schema, requested)
            holder = holder[key]
    return changed


def smallest(root: Json, schema: Json, requested: type | None = None) -> Any:
    """Return the smallest value of a schema."""
    choices = alternatives(root, schema)
    able = [each for each in choices if requested in (None, _HOLDERS.get(each.get("type", "")))]
    one = (able or choices)[0]
    if "const" in one or "enum" in one:
        return one["const"] if "const" in one else one["enum"][0]
    match one.get("type"):
        case "object":
            properties = one.get("properties", {})
            return {name: smallest(root, properties[name]) for name in one.get("required", ())}
        case "array":
            items = one.get("prefixItems") or [one["items"]] * one.get("minItems", 0)
            return [smallest(root, item) for item in items]
        case "integer" | "number":
            return one.get("minimum", one.get("exclusiveMinimum", 0) + 1)
        case "boolean":
            return False
        case "null":
            return None
    return "x" * max(1, one.get("minLength", 1))


_HOLDERS = {"array": list, "object": dict}


def _inner(schema: Json, step: str | int) -> Json | None:
    if isinstance(step, int):
        return schema["prefixItems"][step] if "prefixItems" in schema else schema.get("items")
    inner = schema.get("properties", {}).get(step)
    if inner is None and isinstance(schema.get("additionalProperties"), dict):
        inner = schema["additionalProperties"]
    return inner


def _has_type(value: Any, schema: Json) -> bool:
    """Whether a value has a schema's type; of a text with names to choose from, whether it is one of them."""
    if "const" in schema or "enum" in schema:
        return value in schema.get("enum", [schema.get("const")])
    if "type" not in schema:
        return True
    kinds: dict[str, tuple[type, ...]] = {
        "integer": (int,), "number": (int, float), "string": (str,), "array": (list,), "object": (dict,),
        "null": (type(None),), "boolean": (bool,),
    }  # fmt: skip
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    return isinstance(value, kinds[schema["type"]])
