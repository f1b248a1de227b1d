"""What determines a run: the task, the model, the optimiser, the schedule and the seed.

One frozen description per run; its hash is the run's identity. Loads no torch, so that the
command line can show every field at once. Where a run is written and on which device it is
trained are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.spec import Architecture, ModelSpec
from interp_shortcuts.runs.schedule import ScheduleConfig
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig


class OptimConfig(BaseModel):
    """How the weights are updated. Weight decay applies to every parameter, biases included."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimizer: Literal["adamw", "adam", "sgd"] = Field(
        default="adamw",
        description="adamw: decoupled weight decay; adam and sgd: weight decay as an L2 gradient.",
    )
    lr: float = Field(default=1e-3, gt=0, description="Learning rate (constant).")
    weight_decay: float = Field(default=0.1, ge=0, description="Weight decay.")
    beta1: float = Field(
        default=0.9, ge=0, lt=1, description="Decay of the first moment (adamw, adam)."
    )
    beta2: float = Field(
        default=0.999, ge=0, lt=1, description="Decay of the second moment (adamw, adam)."
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Momentum (sgd only).")
    batch_size: int | None = Field(
        default=None,
        ge=1,
        description="Examples per step; drawn by shuffling each epoch, or fresh ones where the "
        "task has no training split. None: the full batch.",
    )
    grad_clip: float | None = Field(
        default=None, gt=0, description="Largest total gradient norm; none: no clipping."
    )
    precision: Literal["float32", "bfloat16"] = Field(
        default="float32",
        description="Arithmetic of the training step. bfloat16: the matrix products of forward "
        "and backward (autocast), with weights, optimiser and evaluations in float32; slower than "
        "float32 on processors without bfloat16 arithmetic.",
    )

    @model_validator(mode="after")
    def _momentum_is_for_sgd(self) -> OptimConfig:
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(
                f"`momentum` (={self.momentum}) applies to `optimizer` 'sgd' only; "
                f"got '{self.optimizer}' (use `beta1` there)."
            )
        return self


def _of_its_kind(task: Any) -> Any:
    """Data as the kind of task that has its fields, so that complaints are about that kind."""
    if isinstance(task, TaskConfig | SequenceConfig):
        return task
    kind = SequenceConfig if isinstance(task, Mapping) and "operation" in task else TaskConfig
    return kind.model_validate(task)


AnyTaskConfig = Annotated[TaskConfig | SequenceConfig, BeforeValidator(_of_its_kind)]


class RunConfig(BaseModel):
    """One run: everything that determines its result, apart from the thread count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: AnyTaskConfig = Field(default_factory=TaskConfig, description="The task.")
    model: Architecture = Field(default_factory=Architecture, description="The model.")
    optim: OptimConfig = Field(default_factory=OptimConfig, description="The optimiser.")
    schedule: ScheduleConfig = Field(
        default_factory=ScheduleConfig, description="Length, evaluations and checkpoints."
    )
    seed: int = Field(
        default=0,
        ge=0,
        description="Seed of the initial weights, the batches and (unless `data_seed` says "
        "otherwise) the examples.",
    )
    early_stop: int | None = Field(
        default=None,
        ge=1,
        description="Stop once adversarial accuracy has been 1.0 at this many evaluations in a "
        "row; none: train all steps.",
    )
    name: str = Field(
        default="", description="A label, e.g. the preset's name; not part of the run's identity."
    )

    @model_validator(mode="before")
    @classmethod
    def _parts_are_nested(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for name in data:
                for part in _PARTS if name not in cls.model_fields else ():
                    if any(name in model.model_fields for model in part_models(part)):
                        raise ValueError(
                            f"`{name}` is a field of `{part}`, not of RunConfig itself; use "
                            f"`RunConfig().replace({name}={data[name]!r})`."
                        )
        return data

    @model_validator(mode="after")
    def _training_fits_the_task(self) -> RunConfig:
        size = self.optim.batch_size
        if isinstance(self.task, SequenceConfig):
            if size is None:
                raise ValueError(
                    "`batch_size` must be a number for a sequence task, which draws fresh examples "
                    "at each step; got None."
                )
            if self.early_stop is not None:
                raise ValueError(
                    f"`early_stop` (={self.early_stop}) is about adversarial examples, which a "
                    "sequence task does not have; use `stop_at`."
                )
            if self.model.attention != "causal":
                raise ValueError(
                    f"`attention` (={self.model.attention!r}) must be 'causal' for a sequence "
                    "task: otherwise the model reads the answer that it has to give."
                )
        elif size is not None and size > self.task.n_train:
            raise ValueError(
                f"`batch_size` (={size}) must be at most `n_train` (={self.task.n_train})."
            )
        return self

    @property
    def spec(self) -> ModelSpec:
        """The model to build: the architecture with the sizes that the task dictates."""
        return ModelSpec(
            **self.model.model_dump(),
            d_vocab=self.task.n_tokens,
            d_vocab_out=_n_classes(self.task),
            n_ctx=self.task.context,
        )

    @property
    def run_id(self) -> str:
        """16 hex digits that identify the run: the hash of every field but `name`.

        Fields that came later are left out at their default, so that older runs keep their id.
        """
        data = self.model_dump(mode="json", exclude={"name"})
        for part, name, default in _LATER_FIELDS:
            if data[part][name] == default:
                del data[part][name]
        return short_hash(data)

    def replace(self, **changes: Any) -> RunConfig:
        """A copy with some fields changed, validated again.

        Args:
            changes: Flat (`ratio=0.8, n_layers=1, lr=3e-4`), since field names are unique over
                the parts, or nested (`task={"ratio": 0.8}`, `optim=OptimConfig(...)`). A `task`
                that names the `operation` or `rule` of the other kind of task takes the place of
                the present one.

        Raises:
            ConfigError: If a name is no field of any part; the message lists the choices.
            pydantic.ValidationError: If a value breaks a field's rule (a `ValueError`).
        """
        data = self.model_dump()
        parts = {name: set(data[name]) for name in _PARTS}
        top = [name for name in data if name not in _PARTS]
        for name in [name for name in changes if name in _PARTS]:
            value = changes.pop(name)
            if name == "task" and _is_another_kind(value, data[name]):
                data[name] = dict(value)
            elif isinstance(value, Mapping):
                unknown = sorted(set(value) - parts[name])
                if unknown:
                    raise ConfigError(_unknown_field(unknown[0], name, sorted(parts[name])))
                data[name].update(value)
            else:
                data[name] = value.model_dump() if isinstance(value, BaseModel) else value
        for name, value in changes.items():
            if name in top:
                data[name] = value
                continue
            homes = [part for part in _PARTS if name in parts[part]]
            if not homes:
                choices = sorted([*top, *_PARTS, *(f for part in _PARTS for f in parts[part])])
                raise ConfigError(_unknown_field(name, "RunConfig", choices))
            data[homes[0]][name] = value
        return type(self).model_validate(data)

    def differences(self, other: RunConfig) -> dict[str, tuple[Any, Any]]:
        """The fields in which two runs differ, as `{"optim.lr": (ours, theirs)}`; not `name`.

        A field that one of them does not have, since its task is of another kind, is None there.
        """
        ours, theirs = dict(_flat(self.model_dump())), dict(_flat(other.model_dump()))
        return {
            key: (ours.get(key), theirs.get(key))
            for key in dict.fromkeys([*ours, *theirs])
            if key != "name" and ours.get(key) != theirs.get(key)
        }


_PARTS = ("task", "model", "optim", "schedule")

# Fields that came after the first runs were stored, with the default that those had.
_LATER_FIELDS = (("optim", "precision", "float32"), ("model", "positions", "learned"))


def part_models(name: str) -> tuple[type[BaseModel], ...]:
    """The models that a field of `RunConfig` can be.

    Two kinds of task, one model for each of the other parts, and none for a plain field.
    """
    kind = RunConfig.model_fields[name].annotation
    kinds = get_args(kind) or (kind,)
    return tuple(one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel))


def _is_another_kind(change: Any, present: Mapping[str, Any]) -> bool:
    """Whether a change to the task names a field by which the other kind of task is known."""
    known = [name for name in ("operation", "rule") if isinstance(change, Mapping)]
    return any(name in change and name not in present for name in known)


def _n_classes(task: TaskConfig | SequenceConfig) -> int:
    from interp_shortcuts.tasks.rules import rule

    if isinstance(task, SequenceConfig):
        return task.n_tokens
    return task.n_classes if task.n_classes is not None else rule(task.rule).n_classes


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _unknown_field(name: str, owner: str, choices: list[str]) -> str:
    close = get_close_matches(name, choices, n=1)
    hint = f" Did you mean `{close[0]}`?" if close else ""
    return f"`{name}` is no field of {owner}; choose from: {', '.join(choices)}.{hint}"
