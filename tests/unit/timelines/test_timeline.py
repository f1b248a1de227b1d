"""`Timeline`: storing, damage, tables, and how it shows itself; none of it needs torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.errors import MeasureError, StorageError
from interp_shortcuts.timelines.timeline import Timeline


@pytest.fixture
def timeline() -> Timeline:
    return Timeline(synthetic_dataset("generalised", n_steps=12, causal=False))


@pytest.mark.parametrize(("outcome", "causal"), [("transient", True), ("memorised", False)])
def test_a_file_gives_back_the_same(outcome: str, causal: bool, tmp_path: Path) -> None:
    data = synthetic_dataset(outcome, n_steps=12, n_classes=3, causal=causal, causal_every=3)
    timeline = Timeline(data)
    file = timeline.save(tmp_path / "some.nc")
    again = Timeline.load(file)
    xr.testing.assert_identical(timeline.data, again.data)
    assert {type(value) for value in again.data.attrs.values()} <= {str, int, float}
    assert timeline.phases().to_dict() == again.phases().to_dict()


def test_types_of_every_variable_survive(timeline: Timeline, tmp_path: Path) -> None:
    again = Timeline.load(timeline.save(tmp_path / "some.nc"))
    for name, array in timeline.data.variables.items():
        assert again.data[name].dtype == array.dtype, name
        assert again.data[name].attrs == array.attrs, name


def test_saving_twice_gives_the_same_timeline_and_no_leftover(
    timeline: Timeline, tmp_path: Path
) -> None:
    timeline.save(tmp_path)
    Timeline.open(tmp_path).save(tmp_path)
    xr.testing.assert_identical(Timeline.open(tmp_path).data, timeline.data)
    assert [path.name for path in tmp_path.iterdir()] == ["timeline.nc"]


def test_texts_that_are_not_ascii_survive(tmp_path: Path) -> None:
    data = synthetic_dataset(n_steps=3, causal=False)
    data = data.assign_attrs(task_name="größte <b>", empty="")
    data = data.assign_coords(feature=np.array(["größe", "π"], dtype=object))
    again = Timeline.load(Timeline(data).save(tmp_path / "t.nc")).data
    assert again["feature"].to_numpy().tolist() == ["größe", "π"]
    assert (again.attrs["task_name"], again.attrs["empty"]) == ("größte <b>", "")


@pytest.mark.parametrize("attr", [True, None, [1, 2]])
def test_attributes_that_netcdf_cannot_hold_are_refused(attr: object) -> None:
    data = synthetic_dataset(n_steps=3, causal=False)
    data["loss"].attrs["odd"] = attr
    with pytest.raises(StorageError, match=r"attribute `odd` of `loss` must be a text or a number"):
        Timeline(data)


def test_a_failed_save_leaves_the_old_file(
    timeline: Timeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = timeline.save(tmp_path / "t.nc")
    before = file.read_bytes()

    def fails(self: xr.Dataset, path: Path, **options: object) -> None:
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", fails)
    with pytest.raises(OSError, match="disk full"):
        timeline.save(file)
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["t.nc"]


def test_damage_is_named_with_a_cure(timeline: Timeline, tmp_path: Path) -> None:
    file = timeline.save(tmp_path / "t.nc")
    good = file.read_bytes()
    position = good.find(timeline.data["loss"].to_numpy().tobytes())
    assert position > 0
    altered = bytearray(good)
    altered[position] ^= 1
    for damaged in (good[: len(good) // 2], b"", b"no NetCDF at all", bytes(altered)):
        file.write_bytes(damaged)
        with pytest.raises(StorageError, match=r"t\.nc' is damaged.*Delete it and track"):
            Timeline.load(file)


def test_another_netcdf_file_is_not_a_timeline(timeline: Timeline, tmp_path: Path) -> None:
    timeline.data.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(StorageError, match=r"other\.nc' is not what .* writes: `format` is 'none'"):
        Timeline.load(tmp_path / "other.nc")


def test_opening_what_is_not_there_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"timeline\.nc' is missing.*CircuitTracker"):
        Timeline.open(tmp_path)
    with pytest.raises(StorageError, match="is missing"):
        Timeline.load(tmp_path / "nothing.nc")


def test_a_dataset_without_steps_is_no_timeline() -> None:
    with pytest.raises(MeasureError, match="must have the dim `step`"):
        Timeline(xr.Dataset({"a": ("x", [1])}))


def test_steps_components_and_arrays(timeline: Timeline) -> None:
    assert timeline.steps == tuple(range(0, 120, 10))
    assert len(timeline) == 12
    assert timeline.components() == ("L0.H0", "L0.H1", "L1.H0", "L1.H1")
    assert timeline.array("qk_spearman")["feature"].to_numpy().tolist() == ["magnitude"]
    assert timeline.array("attention_to_max")["split"].to_numpy().tolist() == [
        "validation",
        "adversarial",
    ]
    with pytest.raises(MeasureError, match="`qk` was not measured; the timeline has loss"):
        timeline.array("qk")


def test_the_table_is_tidy(timeline: Timeline) -> None:
    table = timeline.to_dataframe()
    assert list(table.columns[:5]) == ["step", "measure", "component", "split", "feature"]
    assert list(table.columns[-3:]) == ["value", "low", "high"]
    accuracy = table[(table["measure"] == "accuracy") & (table["split"] == "adversarial")]
    data = timeline.data.sel(split="adversarial")
    np.testing.assert_array_equal(accuracy["value"], data["accuracy"])
    np.testing.assert_array_equal(accuracy["low"], data["accuracy_interval"].sel(bound="low"))
    qk = table[(table["measure"] == "qk_spearman") & (table["component"] == "L0.H1")]
    assert len(qk) == 12  # padding of other features is no row
    np.testing.assert_array_equal(
        qk["value"], timeline.array("qk_spearman").sel(layer=0, head=1, feature="magnitude")
    )
    assert not any(table["measure"].str.endswith("_interval"))
    assert table[table["measure"] == "example_tokens"]["step"].isna().all()


def test_the_table_has_the_dims_of_causal_measures() -> None:
    table = Timeline(synthetic_dataset(n_steps=12, causal_every=5)).to_dataframe()
    rule = table[(table["measure"] == "rule_transfer") & (table["component"] == "all heads")]
    assert rule["step"].unique().tolist() == [0, 50, 100, 110]  # steps left out are no rows
    assert rule["direction"].unique().tolist() == [
        "validation<-adversarial",
        "adversarial<-validation",
    ]
    assert (rule["ablation"] == "").all()
    assert rule["low"].notna().all()
    drop = table[table["measure"] == "qk_ablation_accuracy_drop"]
    assert set(drop["qk_ablation"]) == {"uniform", "mean"}
    assert not drop["component"].str.contains("mlp").any()


def test_a_timeline_shows_itself(timeline: Timeline) -> None:
    text = repr(Timeline(synthetic_dataset("generalised")))
    first, second, *rest = text.split("\n")
    assert first == "Timeline of max_parity, seed 0, run synthetic-generalised-0"
    assert second == "  70 evaluations, steps 0 to 690; heads L0.H0 L0.H1 L1.H0 L1.H1"
    assert rest[-2] == "  outcome: generalised"
    assert "phase 2 began at step 220" in rest[-1]
    html = timeline._repr_html_()
    assert "<b>Timeline of max_parity, seed 0" in html
    assert "<td>qk_spearman</td><td>step, layer, head, feature</td>" in html


def test_what_it_shows_is_escaped_and_never_fails() -> None:
    data = synthetic_dataset(n_steps=3).assign_attrs(task_name="<script>")
    assert "<script>" not in Timeline(data)._repr_html_()
    bare = Timeline(xr.Dataset(coords={"step": [0, 1]}))
    assert "outcome: unknown" in repr(bare)
    assert "task unknown" in bare._repr_html_()
    assert len(bare.to_dataframe()) == 0
    assert "0 evaluations" in repr(Timeline(synthetic_dataset(n_steps=3).isel(step=slice(0, 0))))


def test_no_torch_is_loaded() -> None:
    code = (
        "import sys\n"
        "import interp_shortcuts.timelines.timeline, interp_shortcuts.timelines.phases\n"
        "heavy = {'torch', 'transformer_lens', 'plotly'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
