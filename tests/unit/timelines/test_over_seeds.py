"""The table over seeds: what is missing stays missing, and is not counted."""

from __future__ import annotations

import pandas as pd
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.timelines.over_seeds import handover_table, lag_summary
from interp_shortcuts.timelines.phases import find_phases


def phases_of(outcome):
    return find_phases(synthetic_dataset(outcome))


def test_steps_and_lags_are_those_of_the_phases():
    phases = phases_of("generalised")
    row = handover_table({"a": phases}).iloc[0]
    assert row["onset"] == phases.onset
    assert row["completion"] == phases.completion
    declines = [entry.lag for entry in phases.handover if entry.kind == "QK decline"]
    assert row["first_qk_decline"] == min(declines)


def test_a_run_without_the_event_keeps_its_row_and_is_not_counted():
    table = handover_table({"a": phases_of("generalised"), "b": phases_of("shortcut")})
    assert list(table["run"]) == ["a", "b"]
    assert pd.isna(table.loc[1, "onset"])
    summary = lag_summary(table)
    assert summary.loc["onset", "n"] == 1
    assert summary.loc["onset", "of"] == 2
    assert summary.loc["onset", "median"] == table.loc[0, "onset"]


def test_no_runs_give_an_empty_table():
    table = handover_table({})
    assert len(table) == 0
    assert lag_summary(table)["n"].sum() == 0
