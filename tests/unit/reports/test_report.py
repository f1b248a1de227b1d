"""The report of a run: complete, escaped, deterministic, the same facts in three forms."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from synthetic_timeline import OUTCOMES, synthetic_dataset

from interp_shortcuts.errors import ConfigError
from interp_shortcuts.reports.facts import report_facts
from interp_shortcuts.reports.page import cell, script_json, shown, signed
from interp_shortcuts.reports.reading import GRADIENT_READING
from interp_shortcuts.reports.report import write_report
from interp_shortcuts.timelines.phase_rules import PhaseRules
from interp_shortcuts.timelines.timeline import Timeline

HOSTILE = "<script>alert(1)</script></script><!-- %{x} `|` & \"quoted\" 'it'"


def make(outcome: str = "generalised", **options) -> Timeline:
    return Timeline(synthetic_dataset(outcome, **{"n_steps": 24, **options}))


class Page(HTMLParser):
    """Counts the elements and collects what a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.elements.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1] == "script" and self.rawdata:
            self.scripts.append(data)
        else:
            self.text += data


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(make(), tmp_path_factory.mktemp("report") / "deep" / "report.html")


@pytest.fixture(scope="module")
def page(written: Path) -> Page:
    return Page(written.read_text(encoding="utf-8"))


def test_three_files_and_nothing_else(written: Path):
    names = sorted(path.name for path in written.parent.iterdir())
    assert names == ["report.html", "report.json", "report.md"]


def test_the_verdict_is_the_first_heading(page: Page):
    sentence = make().phases().sentence
    assert page.elements.index("h1") < page.elements.index("h2")
    assert sentence in page.text
    assert page.text.index(sentence) < page.text.index("What happened, and when")


def test_every_part_is_there(page: Page):
    ids = [
        "events",
        "timeline",
        "carriers",
        "gradients",
        "checkpoints",
        "heads",
        "splits",
        "undefined",
        "setup",
    ]
    figures = ["timeline", "checkpoint", "carriers", "ablation", "residual"]
    for name in [*ids, "definitions", "remake", *(f"{name}-figure" for name in figures)]:
        assert page.ids.count(name) == 1
    text = " ".join(page.text.split())
    for words in (
        "Order of the hand-over",
        "How to read it",
        "Thresholds of events and outcome",
        "Guessing gives an accuracy of 0.500",
        "n = 1,024",
        "interp-shortcuts track synthetic-generalised",
        "Spearman over integers v of (s_v, f(v))",
        "task.n_integers",
    ):
        assert words in text


def test_every_event_head_threshold_and_variable_is_listed(page: Page):
    timeline = make()
    phases = timeline.phases()
    for event in phases.events:
        assert event.description in page.text
    for event in phases.circuit_events:
        assert event.words in page.text
    for name, field in PhaseRules.model_fields.items():
        assert name in page.text
        assert field.description in page.text
    for name in timeline.data.data_vars:
        assert str(name) in page.text


def test_plotly_is_inlined_once_and_nothing_is_loaded(written: Path):
    text = written.read_text(encoding="utf-8")
    assert text.count("Plotly=") + text.count("Plotly =") >= 1
    head = text[:200_000]
    assert "<script src" not in text
    assert 'rel="stylesheet"' not in head
    assert len(text) < 8_000_000


def test_same_timeline_same_bytes(written: Path, tmp_path: Path):
    again = write_report(make(), tmp_path / "report.html")
    for suffix in (".html", ".json", ".md"):
        first = written.with_suffix(suffix).read_bytes()
        assert again.with_suffix(suffix).read_bytes() == first


def test_json_and_markdown_have_the_facts_of_the_page(written: Path, page: Page):
    facts = json.loads(written.with_suffix(".json").read_text(encoding="utf-8"))
    assert facts == json.loads(json.dumps(report_facts(make())))
    markdown = written.with_suffix(".md").read_text(encoding="utf-8")
    shared = [facts["verdict"], facts["outcome"], facts["outcome_meaning"]]
    shared += [event["description"] for event in facts["phases"]["events"]]
    shared += [entry["what"] for entry in facts["phases"]["handover"]]
    shared += [row["description"] for row in facts["thresholds"]]
    shared += [shown(row["final_level"]) for row in facts["heads"]]
    shared += [row["variable"] for row in facts["definitions"]]
    shared += [shown(row["final_level"]) for row in facts["causal"]]
    for row in facts["phases"]["carriers"]:
        shared += [row["before"], row["after"], shown(row["rule_transfer_after"])]
    for row in facts["gradients"]["rows"]:
        shared += [shown(row["amplification"]), shown(row["excess"]), shown(row["cosine"])]
    shared += [text for _, text in GRADIENT_READING]
    shared += list(facts["settings"])
    for fact in shared:
        assert fact in page.text
        assert cell(fact) in markdown
    for way in facts["remake"]:
        assert way["code"].splitlines()[0] in markdown


def test_facts_have_no_nan_and_no_absolute_path():
    timeline = make("never learned")
    text = json.dumps(report_facts(timeline), allow_nan=False)
    assert str(Path.cwd()) not in text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_its_facts(outcome: str):
    facts = report_facts(make(outcome))
    assert facts["outcome"] == outcome
    assert facts["outcome_meaning"]
    assert all(event["reason"] for event in facts["phases"]["events"] if event["step"] is None)


def test_a_run_without_events_can_be_reported(tmp_path: Path):
    text = write_report(make("never learned"), tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count("Did not happen: ") == 5
    assert "Nothing was handed over" in text


def test_what_users_typed_is_escaped(tmp_path: Path):
    timeline = make()
    data = timeline.data
    data.attrs.update(task_name=HOSTILE, path=HOSTILE, run_id=HOSTILE)
    data.attrs["config"] = json.dumps({"name": HOSTILE, "task": {"rule": HOSTILE}, "seed": 1})
    data["accuracy"].attrs["definition"] = HOSTILE
    names = ["magnitude", HOSTILE]
    renamed = data.assign_coords(feature=names)
    for variable in renamed.data_vars.values():
        if "covers" in variable.attrs:
            covers = json.loads(variable.attrs["covers"])
            old = covers.get("feature", [])
            covers["feature"] = [HOSTILE if n == "parity" else n for n in old] or None
            variable.attrs["covers"] = json.dumps({k: v for k, v in covers.items() if v})
    clean = write_report(make(), tmp_path / "clean.html").read_text(encoding="utf-8")
    path = write_report(Timeline(renamed), tmp_path / "hostile.html", index=HOSTILE)
    text = path.read_text(encoding="utf-8")
    assert text.count("<script") == clean.count("<script")
    assert text.count("</script") == clean.count("</script")
    assert text.count("<!--") == clean.count("<!--")
    assert HOSTILE not in text
    assert HOSTILE in Page(text).text
    markdown = path.with_suffix(".md").read_text(encoding="utf-8")
    tables = [line for line in markdown.splitlines() if line.startswith("|")]
    assert not any("<script>" in line for line in tables)
    assert json.loads(path.with_suffix(".json").read_text())["run"]["task_name"] == HOSTILE


def test_figures_survive_the_escaping(written: Path):
    text = written.read_text(encoding="utf-8")
    pattern = r'<script type="application/json" id="([a-z]+)-json" [^>]*>(.*?)</script>'
    found = {name: json.loads(figure) for name, figure in re.findall(pattern, text, re.S)}
    assert len(found) == 5
    timeline, checkpoints = found["timeline"], found["checkpoint"]
    assert any("<b>" in a["text"] for a in timeline["layout"]["annotations"])
    assert len(checkpoints["frames"]) == 24
    assert script_json('{"a": "</script>"}') == '{"a": "\\u003c/script\\u003e"}'


def test_what_is_missing_or_undefined_is_said(tmp_path: Path):
    data = make().data.drop_vars("ov_class_fraction")
    values = data["qk_spearman"].copy(deep=True)
    values[:, 0, 1, :] = np.nan
    timeline = Timeline(data.assign(qk_spearman=values))
    path = write_report(timeline, tmp_path / "r.html")
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert facts["left_out"] == [
        {
            "panel": "ov_fraction",
            "reason": "the variable `ov_class_fraction` is not in this timeline",
        }
    ]
    assert facts["undefined"] == [
        {
            "variable": "qk_spearman",
            "undefined": 24,
            "of": 24 * 4,
            "meaning": "the scores or the feature are constant",
        }
    ]
    text = Page(path.read_text(encoding="utf-8")).text
    assert "the variable `ov_class_fraction` is not in this timeline" in text
    assert "the scores or the feature are constant" in text


def test_verdicts_and_gradients_are_those_of_the_timeline():
    timeline = make(causal_every=4)
    facts = report_facts(timeline)
    verdicts = {row["component"]: row for row in facts["phases"]["carriers"]}
    assert verdicts["L1.mlp"]["after"] == "rule carrier"
    assert verdicts["L0.H1"]["after"] == "neither"
    kinds = {entry["kind"] for entry in facts["phases"]["handover"]}
    assert "causal take-over" in kinds
    gradients = facts["gradients"]
    assert gradients["floor"] == pytest.approx(9)
    taken = {int(step) for step in timeline.array("gradient_cosine")["step"]}
    for row in gradients["rows"]:
        assert row["measured_at"] in taken
        assert abs(row["measured_at"] - row["step"]) <= 20
        here = timeline.data.sel(part="model", step=row["measured_at"])
        for name in ("amplification", "excess", "cosine"):
            assert row[name] == pytest.approx(float(here[f"gradient_{name}"]))
        assert row["share"]["anti"] == pytest.approx(
            float(here["gradient_share"].sel(group="anti"))
        )
    assert [row["moment"] for row in gradients["rows"]][-1] == "last evaluation"


def test_fingerprints_alone_leave_sections_out_with_the_reason(tmp_path: Path):
    timeline = make(causal=False)
    path = write_report(timeline, tmp_path / "r.html")
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    reasons = [
        facts["phases"]["carriers_reason"],
        facts["gradients"]["missing"],
        *(row["reason"] for row in facts["left_out"]),
    ]
    assert {row["panel"] for row in facts["left_out"]} == {
        "rule_transfer",
        "shortcut_transfer",
        "gradient_amplification",
        "gradient_cosine",
        "ablation_adversarial",
        "ablation_validation",
        "residual_map",
    }
    page, markdown = Page(path.read_text(encoding="utf-8")), path.with_suffix(".md").read_text()
    assert "carriers-figure" not in page.ids
    assert facts["gradients"]["rows"] == []
    for reason in reasons:
        assert f"{reason}" in page.text
        assert cell(reason) in markdown


def test_thresholds_given_are_the_thresholds_shown(tmp_path: Path):
    timeline = make()
    rules = PhaseRules(generalised_level=0.97)
    path = write_report(timeline, tmp_path / "r.html", phases=timeline.phases(rules))
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    level = next(r for r in facts["thresholds"] if r["name"] == "generalised_level")
    assert level["value"] == 0.97


def test_a_page_links_back_to_its_index(tmp_path: Path):
    text = write_report(make(), tmp_path / "r.html", index="../index.html").read_text()
    assert '<a href="../index.html">All runs</a>' in text


def test_the_suffix_is_added_and_an_empty_timeline_refused(tmp_path: Path):
    assert write_report(make(), tmp_path / "page").name == "page.html"
    with pytest.raises(ConfigError, match="needs at least one step"):
        write_report(Timeline(make().data.isel(step=slice(0, 0))), tmp_path / "none.html")
    assert not (tmp_path / "none.html").exists()


def test_timelines_that_no_run_made_say_so(tmp_path: Path):
    data = make().data
    data.attrs.update(source="checkpoints", config="", path="", seed=-1, task="")
    path = write_report(Timeline(data), tmp_path / "r.html")
    facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert facts["run"]["seed"] is None
    assert "from_checkpoints" in facts["remake"][0]["code"]
    assert "seed not recorded" in path.read_text(encoding="utf-8")


def test_the_training_snippet_is_python_whatever_was_typed():
    data = make().data
    data.attrs["config"] = json.dumps({"name": "'''\"\\", "task": {"rule_fingerprint": "ab"}})
    ways = report_facts(Timeline(data))["remake"]
    code = next(way["code"] for way in ways if way["language"] == "python")
    compile(code, "snippet", "exec")
    assert "task=task" in code


def test_numbers_are_not_rounded_to_one_or_zero():
    assert shown(0.99995) == "0.99995"
    assert shown(1.0) == "1.000"
    assert shown(0.0004) == "0.0004"
    assert shown(-0.25) == "−0.250"
    assert shown(None) == "–"
    assert shown(12_000) == "12,000"
    assert signed(3) == "+3"
    assert signed(-3) == "−3"
    assert signed(0) == "0"


def test_reports_load_no_torch():
    code = (
        "import sys; sys.path.insert(0, 'tests');"
        "from interp_shortcuts.reports.report import write_report;"
        "from interp_shortcuts.reports.index import write_index;"
        "assert 'torch' not in sys.modules and 'transformer_lens' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_missing_data_cannot_be_told_and_one_evaluation_is_one(tmp_path: Path):
    data = make().data.isel(step=slice(0, 1)).copy(deep=True)
    data["accuracy"].loc[{"split": "adversarial"}] = np.nan
    path = write_report(Timeline(data), tmp_path / "r.html")
    for text in (path.read_text(encoding="utf-8"), path.with_suffix(".md").read_text()):
        assert "Cannot be told: adversarial accuracy was not measured" in text
        assert "1 evaluation from step 0" in text
    assert "  1 evaluation, steps 0 to 0" in repr(Timeline(data))


def test_an_unfinished_run_says_so_at_the_top(tmp_path: Path):
    note = "training diverged at step 12 of 100: <loss> is NaN"
    path = write_report(make(), tmp_path / "r.html", status_note=note)
    text = path.read_text(encoding="utf-8")
    assert 'class="banner"' in text[: text.index("<h1>")]
    assert note in Page(text).text
    assert "training diverged at step 12 of 100" in path.with_suffix(".md").read_text()
    assert json.loads(path.with_suffix(".json").read_text())["status_note"] == note
    clean = write_report(make(), tmp_path / "clean.html").read_text(encoding="utf-8")
    assert 'class="banner"' not in clean


def test_a_folder_gets_report_html(tmp_path: Path):
    (tmp_path / "runs").mkdir()
    assert write_report(make(), tmp_path / "runs") == tmp_path / "runs" / "report.html"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_ways_to_make_it_again_work_for_a_rule_of_ones_own():
    data = make().data
    again = report_facts(Timeline(data))["remake"]
    assert [way["language"] for way in again] == ["sh", "python"]
    assert "out='synthetic-generalised-again')" in again[1]["code"]
    config = json.loads(data.attrs["config"])
    config["task"] |= {"rule": "my_rule", "rule_fingerprint": "0123456789abcdef"}
    data.attrs["config"] = json.dumps(config)
    own = report_facts(Timeline(data))["remake"]
    assert [way["language"] for way in own] == ["python", "python"]
    assert "Trajectory.open('synthetic-generalised', task=task)" in own[0]["code"]
    assert "out='synthetic-generalised-again', task=task)" in own[1]["code"]
    for way in own:
        compile(way["code"], "snippet", "exec")
