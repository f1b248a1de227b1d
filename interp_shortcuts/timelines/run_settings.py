"""How a run was set up, as its timeline says: one flat mapping of dotted names to values."""

from __future__ import annotations

import json
from typing import Any

import xarray as xr


def settings(data: xr.Dataset) -> dict[str, Any]:
    """The run's config with dotted names; without one, the task and the model's spec."""
    config = parsed(data.attrs.get("config"))
    if config:
        return flat(config)
    task, spec = parsed(data.attrs.get("task")), parsed(data.attrs.get("spec"))
    return {**flat(task or {}, "task"), **flat(spec or {}, "model")}


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested dicts as one, with dotted names."""
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, item in value.items():
        found.update(flat(item, f"{prefix}.{key}" if prefix else str(key)))
    return found


def parsed(text: Any) -> Any:
    """A JSON attribute; what is not JSON is kept as `unreadable`."""
    if not text:
        return None
    try:
        return json.loads(str(text))
    except json.JSONDecodeError:
        return {"unreadable": str(text)}
