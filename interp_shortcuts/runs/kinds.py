"""Which kinds of model each kind of task can have, and the spec that the two make together.

A new kind of task or model is one line in each of the two tables. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from interp_shortcuts.models.any_spec import AnyArchitecture, AnySpec
from interp_shortcuts.models.picture_spec import PictureArchitecture, PictureSpec
from interp_shortcuts.models.spec import Architecture, ModelSpec
from interp_shortcuts.models.two_layer_spec import TwoLayerArchitecture, TwoLayerSpec
from interp_shortcuts.tasks.any_config import AnyTaskConfig
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.digits_config import DigitsConfig
from interp_shortcuts.tasks.modular_config import ModularConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig

MODELS_OF: dict[type[BaseModel], tuple[type[BaseModel], ...]] = {
    TaskConfig: (Architecture,),
    SequenceConfig: (Architecture,),
    ModularConfig: (TwoLayerArchitecture, Architecture),
    DigitsConfig: (PictureArchitecture,),
}
"""The kinds of model of each kind of task; the first is that of a run that names none. A
transformer on two residues is read at the second."""


def _transformer(task: Any, model: BaseModel) -> ModelSpec:
    from interp_shortcuts.tasks.rules import rule

    n_classes = task.n_tokens
    if isinstance(task, TaskConfig):
        n_classes = rule(task.rule).n_classes if task.n_classes is None else task.n_classes
    return ModelSpec(
        **model.model_dump(), d_vocab=task.n_tokens, d_vocab_out=n_classes, n_ctx=task.context
    )


def _two_layer(task: Any, model: BaseModel) -> TwoLayerSpec:
    return TwoLayerSpec(**model.model_dump(), n_tokens=task.n_tokens, n_classes=task.n_tokens)


def _picture(task: Any, model: BaseModel) -> PictureSpec:
    return PictureSpec(**model.model_dump(), n_pixels=task.n_pixels, n_classes=task.n_classes)


_SPECS: dict[type[BaseModel], Callable[[Any, BaseModel], AnySpec]] = {
    Architecture: _transformer,
    TwoLayerArchitecture: _two_layer,
    PictureArchitecture: _picture,
}


def spec_for(task: AnyTaskConfig, model: AnyArchitecture) -> AnySpec:
    """The architecture with the sizes that the task dictates.

    Raises:
        ConfigError: If the task's rule is not registered and says no number of classes.
    """
    return _SPECS[type(model)](task, model)


def having(
    fields: Mapping[str, Any], kinds: Sequence[type[BaseModel]], *, default: type[BaseModel]
) -> type[BaseModel]:
    """The first kind that has all of these fields."""
    return next((kind for kind in kinds if fields.keys() <= kind.model_fields.keys()), default)
