"""What `interp_shortcuts` exports, and that importing it stays light."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
import time

import interp_shortcuts

EXPORTS = [
    "Ablate",
    "AblateOV",
    "AblateQK",
    "Ablation",
    "ActivationGradient",
    "Architecture",
    "Attention",
    "AttributionGap",
    "Behaviour",
    "CircuitTracker",
    "Component",
    "ComponentImportance",
    "ComponentInteraction",
    "CrossSplitPatching",
    "Feature",
    "GradientConflict",
    "GradientNorm",
    "HeadAblation",
    "IntegratedGradients",
    "JointImportance",
    "Measure",
    "ModelSpec",
    "OVAblation",
    "OVClassFraction",
    "OVSpearman",
    "Patch",
    "PhaseRules",
    "Phases",
    "QKAblation",
    "QKSpearman",
    "Run",
    "RunConfig",
    "Saturation",
    "SequenceReversal",
    "SequenceSorting",
    "SequenceTask",
    "ShapleyImportance",
    "ShortcutTask",
    "Split",
    "TargetSplit",
    "Timeline",
    "Trajectory",
    "WeightGradient",
    "applied",
    "build",
    "presets",
    "train",
]
HEAVY = ["torch", "transformer_lens", "transformers", "plotly", "xarray", "pandas", "numpy", "tyro"]


def modules_after(code: str) -> set[str]:
    """The heavy modules that a fresh interpreter has loaded after running `code`."""
    report = f"\nimport json, sys\nprint(json.dumps([m for m in {HEAVY} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code + report], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_exports_are_pinned():
    assert sorted(interp_shortcuts.__all__) == EXPORTS
    assert set(EXPORTS) <= set(dir(interp_shortcuts))


def test_every_export_loads():
    for name in EXPORTS:
        assert getattr(interp_shortcuts, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(interp_shortcuts, "no_such_name")


def test_import_loads_nothing_heavy():
    assert modules_after("import interp_shortcuts") == set()


def test_presets_load_no_torch():
    loaded = modules_after(
        "from interp_shortcuts import presets\npresets.max_parity_demo(ratio=0.8)"
    )
    assert loaded.isdisjoint({"torch", "transformer_lens", "plotly", "xarray"})


def test_import_is_fast():
    """The one wall-clock bar of the suite: importing costs under 0.3 s more than python itself."""

    def seconds(code: str) -> float:
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds("import interp_shortcuts") - seconds("pass") < 0.3


def test_the_exports_for_modular_arithmetic_are_pinned():
    pinned = {
        "tasks": ["Digits", "ImageSplit", "ModularArithmetic", "ModularConfig", "PairSplit"],
        "models": [
            "PAIR_ACTIVATIONS",
            "Spectrum",
            "TwoLayerNet",
            "TwoLayerSpec",
            "analytic_network",
            "build_two_layer",
            "initial_two_layer_weights",
            "load_two_layer_weights",
            "neuron_strengths",
            "read_pair_logits",
            "two_layer_of",
            "two_layer_weights",
        ],
        "interventions": [
            "FrequencyFilter",
            "NeuronPartition",
            "SwapActivation",
            "filter_unembedding",
            "subnetwork",
            "swapped",
            "unembedding_frequencies",
        ],
        "measures": [
            "FrequencyFilterAccuracy",
            "NeuronSpectra",
            "NoiseGroups",
            "PartitionAccuracy",
            "UnembeddingFilter",
        ],
    }
    for name, exports in pinned.items():
        package = importlib.import_module(f"interp_shortcuts.{name}")
        assert set(exports) <= set(package.__all__)
        for export in exports:
            assert not inspect.ismodule(getattr(package, export))
