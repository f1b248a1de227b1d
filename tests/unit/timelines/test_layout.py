"""Putting the arrays of several measures together, and taking them apart again."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr

from interp_shortcuts.errors import MeasureError
from interp_shortcuts.timelines.layout import measured_part, put_together, take_apart


def part(key: str, **variables: object) -> xr.Dataset:
    data = xr.Dataset(variables, coords={"step": [0, 1]})  # type: ignore[arg-type]
    for array in data.data_vars.values():
        array.attrs |= {"measure": key.title(), "measure_key": key}
    return data


@pytest.fixture
def parts() -> dict[str, xr.Dataset]:
    loss = part("loss", loss=(("step", "split"), np.arange(6, dtype="f4").reshape(2, 3)))
    loss = loss.assign_coords(split=["train", "validation", "adversarial"])
    qk = part(
        "qk",
        qk=(("step", "feature", "split"), np.ones((2, 1, 2), "f4")),
        undefined=(("step", "split"), np.array([[1, 2], [3, 4]])),
        tokens=(("example", "position"), np.arange(6).reshape(3, 2)),
    )
    qk = qk.assign_coords(
        feature=["magnitude"],
        split=["adversarial", "validation"],
        example=[0, 1, 2],
        example_split=("example", ["validation", "validation", "adversarial"]),
    )
    ov = part("ov", ov=(("step", "feature"), np.full((2, 2), np.nan, "f4")))
    ov = ov.assign_coords(feature=["parity", "magnitude"])
    return {"loss": loss, "qk": qk, "ov": ov}


def test_labels_are_joined_in_a_fixed_order(parts: dict[str, xr.Dataset]) -> None:
    data = put_together(list(parts.values()))
    assert data["split"].to_numpy().tolist() == ["train", "validation", "adversarial"]
    assert data["feature"].to_numpy().tolist() == ["magnitude", "parity"]
    again = put_together([parts["qk"], parts["loss"], parts["ov"]])
    assert again["split"].to_numpy().tolist() == ["train", "validation", "adversarial"]


def test_padding_is_told_from_what_is_undefined(parts: dict[str, xr.Dataset]) -> None:
    data = put_together(list(parts.values()))
    assert data["qk"].dtype == np.float32
    assert np.isnan(data["qk"].sel(feature="parity")).all()
    assert json.loads(data["qk"].attrs["covers"]) == {
        "feature": ["magnitude"],
        "split": ["adversarial", "validation"],
    }
    assert "covers" not in data["loss"].attrs
    assert "covers" not in data["tokens"].attrs
    assert measured_part(data["ov"]).isnull().all()  # undefined, and not padding


def test_taking_apart_gives_back_each_part(parts: dict[str, xr.Dataset]) -> None:
    apart = take_apart(put_together(list(parts.values())))
    assert list(apart) == list(parts)
    for key, own in parts.items():
        xr.testing.assert_identical(apart[key], own)
        for name in own.variables:
            assert apart[key][name].dtype.kind == own[name].dtype.kind


def test_the_parts_are_left_as_they_are(parts: dict[str, xr.Dataset]) -> None:
    before = {key: own.copy(deep=True) for key, own in parts.items()}
    take_apart(put_together(list(parts.values())))
    for key, own in parts.items():
        xr.testing.assert_identical(own, before[key])


def test_two_measures_with_the_same_variable_are_named(parts: dict[str, xr.Dataset]) -> None:
    other = parts["qk"].copy(deep=True)
    for array in other.data_vars.values():
        array.attrs["measure_key"] = "qk2"
    with pytest.raises(MeasureError, match=r"variable `qk`: Qk \(qk\) and Qk \(qk2\).*tuple of"):
        put_together([parts["qk"], other])


def test_sizes_that_do_not_fit_are_an_error() -> None:
    first = part("a", a=(("step", "x"), np.ones((2, 3))))
    second = part("b", b=(("step", "x"), np.ones((2, 4))))
    with pytest.raises(MeasureError, match="do not fit into one timeline"):
        put_together([first, second])


def test_steps_that_were_left_out_are_padded_and_dropped_again() -> None:
    every = part("a", a=("step", np.array([1.0, 2.0], "f4"))).assign_coords(
        checkpoint_hash=("step", ["x", "y"])
    )
    thin = part("b", b=("step", np.array([7, 9])), c=((), 3)).assign_coords(
        step=[1, 2], checkpoint_hash=("step", ["y", "z"])
    )
    data = put_together([every, thin])
    assert data["step"].to_numpy().tolist() == [0, 1, 2]
    assert data["checkpoint_hash"].to_numpy().tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(data["b"], [np.nan, 7, 9])
    assert json.loads(data["b"].attrs["covers"]) == {"step": [1, 2]}
    assert measured_part(data["b"]).dtype == np.int64
    assert measured_part(data["a"])["step"].to_numpy().tolist() == [0, 1]
    apart = take_apart(data)
    xr.testing.assert_identical(apart["a"], every)
    xr.testing.assert_identical(apart["b"], thin)


def test_two_measures_of_other_weights_at_one_step_do_not_fit() -> None:
    first = part("a", a=("step", [1.0, 2.0])).assign_coords(checkpoint_hash=("step", ["x", "y"]))
    second = part("b", b=("step", [1.0, 2.0])).assign_coords(
        step=[1, 2], checkpoint_hash=("step", ["other", "z"])
    )
    with pytest.raises(MeasureError, match="do not fit into one timeline"):
        put_together([first, second])
