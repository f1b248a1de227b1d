"""What determines a run: the task, the model, the optimiser, the schedule and the seed.

One frozen description per run; its hash is the run's identity. Loads no torch, so that the
command line can show every field at once. Where a run is written and on which device it is
trained are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import ConfigError
from interp_shortcuts.models.any_spec import AnyArchitecture, AnySpec
from interp_shortcuts.models.spec import Architecture, ModelSpec
from interp_shortcuts.runs.kinds import MODELS_OF, having, spec_for
from interp_shortcuts.runs.optim_config import USUAL_MOMENTUM
from interp_shortcuts.runs.optim_config import OptimConfig as OptimConfig
from interp_shortcuts.runs.schedule import ScheduleConfig
from interp_shortcuts.tasks.any_config import NOISY_CONFIGS, TASK_MARKS, AnyTaskConfig, task_kind
from interp_shortcuts.tasks.config import TaskConfig
from interp_shortcuts.tasks.sequence_config import SequenceConfig


def _task_of_its_kind(task: Any) -> Any:
    """Data as the kind of task that has its fields, so that complaints are about that kind."""
    return task_kind(task).model_validate(task) if isinstance(task, Mapping) else task


def _model_of_its_kind(model: Any, info: Any) -> Any:
    """Data as the kind of model that has its fields, of those that the task can have if any."""
    if not isinstance(model, Mapping):
        return model
    kinds = (*MODELS_OF.get(type(info.data.get("task")), ()), *get_args(AnyArchitecture))
    return having(model, kinds, default=kinds[0]).model_validate(model)


class RunConfig(BaseModel):
    """One run: everything that determines its result, apart from the thread count."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Annotated[AnyTaskConfig, BeforeValidator(_task_of_its_kind)] = Field(
        default_factory=TaskConfig, description="The task."
    )
    model: Annotated[AnyArchitecture, BeforeValidator(_model_of_its_kind)] = Field(
        default_factory=Architecture,
        description="The model; without one, the task's usual kind as it comes.",
    )
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
        if not isinstance(data, Mapping):
            return data
        for name in data:
            for part in _PARTS if name not in cls.model_fields else ():
                if any(name in model.model_fields for model in part_models(part)):
                    use = f"RunConfig().replace({name}={data[name]!r})"
                    if name not in part_models(part)[0].model_fields:  # of another kind
                        use = f"RunConfig({part}={{{name!r}: {data[name]!r}, ...}})"
                    raise ValueError(
                        f"`{name}` is a field of `{part}`, not of RunConfig itself; use `{use}`."
                    )
        return {"model": {}, **data}  # of the task's usual kind

    @model_validator(mode="after")
    def _training_fits_the_task(self) -> RunConfig:
        kinds = MODELS_OF[type(self.task)]
        if type(self.model) not in kinds:
            choices = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(
                f"`model` must be of the kind {choices} for the task {self.task.label}; got a "
                f"{type(self.model).__name__}. Give `model={kinds[0].__name__}()`."
            )
        if isinstance(self.task, SequenceConfig):
            self._check_sequences()
        else:
            self._check_batch_size()
        if isinstance(self.task, NOISY_CONFIGS):
            self._check_noisy()
        if self.optim.warmup_steps > self.schedule.n_steps:
            raise ValueError(
                f"`warmup_steps` (={self.optim.warmup_steps}) must be at most `n_steps` "
                f"(={self.schedule.n_steps})."
            )
        return self

    def _check_sequences(self) -> None:
        if self.optim.batch_size is None:
            raise ValueError(
                "`batch_size` must be a number for a sequence task, which draws fresh examples "
                "at each step; got None."
            )
        if self.early_stop is not None:
            raise ValueError(
                f"`early_stop` (={self.early_stop}) is about adversarial examples, which a "
                "sequence task does not have; use `stop_at`."
            )
        if isinstance(self.model, Architecture) and self.model.attention != "causal":
            raise ValueError(
                f"`attention` (={self.model.attention!r}) must be 'causal' for a sequence "
                "task: otherwise the model reads the answer that it has to give."
            )

    def _check_batch_size(self) -> None:
        size, n_train = self.optim.batch_size, getattr(self.task, "n_train", None)
        if size is not None and n_train is not None and size > n_train:
            raise ValueError(f"`batch_size` (={size}) must be at most `n_train` (={n_train}).")

    def _check_noisy(self) -> None:
        if self.early_stop is not None:
            raise ValueError(
                f"`early_stop` (={self.early_stop}) is about adversarial examples, which a task "
                "with wrong labels does not have; leave it out."
            )
        if self.optim.precision != "float32":
            raise ValueError(
                f"`precision` (={self.optim.precision!r}) must be 'float32' for a task with wrong "
                "labels."
            )

    @property
    def spec(self) -> AnySpec:
        """The model to build: the architecture with the sizes that the task dictates."""
        return spec_for(self.task, self.model)

    @property
    def transformer_spec(self) -> ModelSpec:
        """The `spec` of a run that trains a transformer.

        Raises:
            ConfigError: If it trains another kind of model.
        """
        spec = self.spec
        if not isinstance(spec, ModelSpec):
            raise ConfigError(
                f"`model` must be a transformer (an Architecture); got a "
                f"{type(self.model).__name__}."
            )
        return spec

    @property
    def run_id(self) -> str:
        """16 hex digits that identify the run: the hash of every field but `name`.

        Fields that came later are left out at their default, so that older runs keep their id.
        """
        data = self.model_dump(mode="json", exclude={"name"})
        for part, name, default in _LATER_FIELDS:
            if data[part].get(name) == default:
                data[part].pop(name, None)
        if data["task"].get("contents"):  # what a folder holds counts, not where it lies
            del data["task"]["folder"]
        return short_hash(data)

    def replace(self, **changes: Any) -> RunConfig:
        """A copy with some fields changed, validated again.

        Args:
            changes: Flat (`ratio=0.8, n_layers=1, lr=3e-4`), since field names are unique over
                the parts, or nested (`task={"ratio": 0.8}`, `optim=OptimConfig(...)`). A `task`
                that names the `rule`, `operation` or `modulus` of another kind of task takes the
                place of the present one, and so does a `model` with the fields of another kind.
                Another `optimizer` has its own usual momentum, unless one was set.

        Raises:
            ConfigError: If a name is no field of any part; the message lists the choices.
            pydantic.ValidationError: If a value breaks a field's rule (a `ValueError`).
        """
        data = self.model_dump()
        changes = {**_usual_momentum(self.optim, changes), **changes}
        for name in [name for name in changes if name in _PARTS]:
            data[name] = _replaced(name, data[name], changes.pop(name))
        top = [name for name in data if name not in _PARTS]
        parts = {name: set(_kind_of(name, data[name]).model_fields) for name in _PARTS}
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
_LATER_FIELDS = (
    ("optim", "precision", "float32"),
    ("optim", "lr_schedule", "constant"),
    ("optim", "warmup_steps", 0),
    ("model", "positions", "learned"),
)


def part_models(name: str) -> tuple[type[BaseModel], ...]:
    """The models that a field of `RunConfig` can be.

    Several kinds of task and of model, one for each of the other parts, none for a plain field.
    """
    kind = RunConfig.model_fields[name].annotation
    kinds = get_args(kind) or (kind,)
    return tuple(one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel))


def _kind_of(part: str, data: Mapping[str, Any]) -> type[BaseModel]:
    kinds = part_models(part)
    return task_kind(data) if part == "task" else having(data, kinds, default=kinds[0])


def _replaced(part: str, present: dict[str, Any], change: Any) -> dict[str, Any]:
    """A part of a config after a change to it, as data."""
    if isinstance(change, BaseModel):
        return change.model_dump()
    if not isinstance(change, Mapping):
        return change
    unknown = sorted(set(change) - set(present))
    if not unknown:
        return {**present, **change}
    if part == "task" and any(name in unknown for marks in TASK_MARKS.values() for name in marks):
        return dict(change)
    if part == "model" and having(change, part_models(part), default=BaseModel) is not BaseModel:
        return dict(change)
    raise ConfigError(_unknown_field(unknown[0], part, sorted(present)))


def _usual_momentum(optim: OptimConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The momentum that comes with a change of the optimiser, where none was set."""
    nested = changes.get("optim", {})
    flat = {**nested, **changes} if isinstance(nested, Mapping) else {}
    kind = flat.get("optimizer")
    if not isinstance(kind, str) or "momentum" in flat or not optim.has_usual_momentum:
        return {}
    return {"momentum": USUAL_MOMENTUM.get(kind, 0.0)}


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
