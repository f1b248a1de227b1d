"""Small sequence tasks, models and runs, shared by the tests about them."""

from __future__ import annotations

from interp_shortcuts.models.build import build
from interp_shortcuts.models.lens import HookedTransformer
from interp_shortcuts.models.spec import Architecture, ModelSpec
from interp_shortcuts.runs.config import OptimConfig, RunConfig
from interp_shortcuts.runs.schedule import ScheduleConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig
from interp_shortcuts.tasks.sequences import SequenceSorting, SequenceTask

TINY_SEQUENCES = RunConfig(
    task=SequenceConfig(
        operation="sorting", n_integers=6, train_min=2, train_max=3, heldout_max=5, n_per_length=20
    ),
    model=Architecture(
        n_layers=2,
        n_heads=2,
        d_model=16,
        d_mlp=32,
        activation="gelu",
        normalization="LN",
        positions="none",
    ),
    optim=OptimConfig(optimizer="adam", lr=5e-3, weight_decay=0.0, batch_size=16),
    schedule=ScheduleConfig(n_steps=30, dense_until=0, every=5, resume_every=7),
)
"""The smallest run that still learns something."""


def small_task(**sizes) -> SequenceTask:
    given = {"n_integers": 6, "train_min": 2, "train_max": 3, "heldout_max": 5, "n_per_length": 12}
    return SequenceSorting(**{**given, **sizes})


def model_for(task: SequenceTask, *, seed: int = 0, **changes) -> HookedTransformer:
    settings = {"n_layers": 2, "n_heads": 2, "d_model": 16, "d_mlp": 32, "activation": "gelu"}
    settings |= {"normalization": "LN", "positions": "none", **changes}
    sizes = {"d_vocab": task.n_tokens, "d_vocab_out": task.n_classes, "n_ctx": task.context}
    return build(ModelSpec.model_validate(settings | sizes), seed=seed)
