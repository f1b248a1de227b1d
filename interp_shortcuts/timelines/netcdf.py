"""One labelled dataset, one NetCDF file: written in full or not at all, verified when read.

A content hash goes with the file, so that a damaged one never turns into numbers. Nothing here
knows what is measured.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.store import replacing

ENGINE = "h5netcdf"
CURE = (
    "Delete it and track the run again: all that is in it can be measured anew from the "
    "checkpoints."
)


def plain(data: xr.Dataset) -> xr.Dataset:
    """The dataset as a file gives it back: texts as NumPy strings, attributes as Python values.

    Raises:
        StorageError: If an attribute is not a text or a number, which NetCDF cannot hold.
    """
    data = data.drop_encoding()
    texts = {
        name: (array.dims, _as_text(array.to_numpy()), array.attrs)
        for name, array in data.variables.items()
        if array.dtype.kind in "OUT"
    }
    coords = {name: value for name, value in texts.items() if name in data.coords}
    data = data.assign({name: texts[name] for name in texts if name not in coords})
    data = data.assign_coords(coords)
    data.attrs = _plain_attrs(data.attrs, "the timeline")
    for name in data.variables:
        data[name].attrs = _plain_attrs(data[name].attrs, f"`{name}`")
    return data


def write_dataset(data: xr.Dataset, path: Path, *, kind: str) -> None:
    """Writes the file beside itself and renames it.

    Args:
        data: The dataset.
        path: The file.
        kind: What it is, e.g. `"timeline 1"`; reading asks for the same.
    """
    data = plain(data)
    data.attrs = {**data.attrs, "format": f"interp-shortcuts {kind}", "sha256": digest(data)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        data.to_netcdf(temporary, engine=ENGINE)


def read_dataset(path: Path, *, kind: str) -> xr.Dataset:
    """The dataset in a file, verified and in memory.

    Raises:
        StorageError: If the file is missing, truncated, altered, or something else.
    """
    if not path.is_file():
        raise StorageError(f"'{path}' is missing.")
    try:
        data = xr.load_dataset(path, engine=ENGINE)
    except Exception as error:  # h5py raises many kinds for a damaged file
        raise StorageError(f"'{path}' is damaged or no NetCDF file ({error}). {CURE}") from error
    expected = f"interp-shortcuts {kind}"
    found = data.attrs.pop("format", "none")
    if found != expected:
        raise StorageError(
            f"'{path}' is not what this version of the package writes: `format` is {found!r}, not "
            f"{expected!r}. Move it elsewhere, or open it with the version that wrote it."
        )
    written = data.attrs.pop("sha256", "")
    data = plain(data)
    if digest(data) != written:
        raise StorageError(
            f"'{path}' is damaged: its content does not match its own hash (sha256). {CURE}"
        )
    return data


def digest(data: xr.Dataset) -> str:
    """SHA-256 over all values, labels and attributes."""
    found = hashlib.sha256(repr(sorted(data.attrs.items())).encode())
    for name in sorted(data.variables, key=str):
        array = data.variables[name]
        values = array.to_numpy()
        texts = values.dtype.kind == "U"
        kind = "text" if texts else values.dtype.newbyteorder("=").str
        attrs = sorted(array.attrs.items())
        found.update(repr((str(name), array.dims, values.shape, kind, attrs)).encode())
        content = "\x1f".join(values.ravel().tolist()).encode() if texts else values.tobytes()
        found.update(content)
    return found.hexdigest()


def _as_text(values: np.ndarray) -> np.ndarray:
    """Texts as the narrowest NumPy string array."""
    return np.array([str(value) for value in values.ravel()], dtype=np.str_).reshape(values.shape)


def _plain_attrs(attrs: dict[Any, Any], where: str) -> dict[str, str | int | float]:
    found: dict[str, str | int | float] = {}
    for name, value in attrs.items():
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise StorageError(
                f"The attribute `{name}` of {where} must be a text or a number; got {value!r}."
            )
        found[str(name)] = value
    return found
