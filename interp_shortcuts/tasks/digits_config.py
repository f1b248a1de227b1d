"""The written-down form of the digits: what a run folder stores and the command line sets.

The limits on every size live here and nowhere else. What they mean for the examples is in
`digits.py`. Loads no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from interp_shortcuts.canonical import short_hash
from interp_shortcuts.errors import TaskError

if TYPE_CHECKING:
    from interp_shortcuts.tasks.pictures import Pictures
else:  # NumPy loads where a folder is read
    Pictures = Any

N_BUNDLED = 1797
BUNDLED_PIXELS = 64
N_DIGITS = 10


def n_bundled_trained(train_fraction: float) -> int:
    """How many of the bundled pictures are trained: the fraction of all, rounded.

    Raises:
        TaskError: If that leaves none to train, or none to test.
    """
    n_train = round(train_fraction * N_BUNDLED)
    if not 0 < n_train < N_BUNDLED:
        raise TaskError(
            f"`train_fraction` (={train_fraction}) must leave at least one picture to train "
            f"and one to test; of {N_BUNDLED} it trains {n_train}."
        )
    return n_train


class FolderContents(BaseModel):
    """What a folder of IDX files held when a config was written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n_train: int = Field(ge=1, description="Number of training pictures.")
    n_test: int = Field(ge=1, description="Number of test pictures.")
    n_pixels: int = Field(ge=1, description="Rows times columns of a picture.")
    fingerprint: str = Field(
        min_length=1, description="Hash of all pictures and labels, checked when they are read."
    )

    @classmethod
    def of(cls, trained: Pictures, tested: Pictures) -> FolderContents:
        """Sizes and hash of the pictures that were read from a folder."""
        from interp_shortcuts.tasks.pictures import pictures_digest

        return cls(
            n_train=len(trained.labels),
            n_test=len(tested.labels),
            n_pixels=trained.n_pixels,
            fingerprint=short_hash(pictures_digest(trained, tested)),
        )


class DigitsConfig(BaseModel):
    """Which pictures of digits, and how many of the training labels are wrong.

    With the run's seed this determines every example; a `data_seed` makes it complete by itself.
    A folder's content decides as well: it is read once, when the config is made, and what was
    found is part of the config.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    noise: float = Field(
        default=0.05,
        ge=0.0,
        le=1.0,
        allow_inf_nan=False,
        description="Label noise alpha: the fraction of training labels that are wrong.",
    )
    train_fraction: float = Field(
        default=0.8,
        gt=0.0,
        lt=1.0,
        allow_inf_nan=False,
        description="Fraction of the bundled pictures that is trained; the others are the test "
        "pictures. The files in a `folder` say themselves which are trained.",
    )
    data_seed: int | None = Field(
        default=None, description="Seed of the examples; without it, the run's seed."
    )
    folder: str | None = Field(
        default=None,
        min_length=1,
        description="Folder with the four IDX files of MNIST; none: the 8 x 8 pictures that come "
        "with scikit-learn.",
    )
    contents: FolderContents | None = Field(
        default=None,
        description="Sizes and hash of what `folder` holds, checked when the task is built; "
        "filled in by the package.",
    )

    @model_validator(mode="before")
    @classmethod
    def _folder_is_read(cls, data: Any) -> Any:
        folder = data.get("folder") if isinstance(data, Mapping) else None
        if isinstance(folder, Path):
            data = {**data, "folder": str(folder)}
        if isinstance(folder, str | Path) and folder and data.get("contents") is None:
            from interp_shortcuts.tasks.pictures import read_pictures

            data = {**data, "contents": FolderContents.of(*read_pictures(folder))}
        return data

    @model_validator(mode="after")
    def _pictures_are_of_one_source(self) -> DigitsConfig:
        default = type(self).model_fields["train_fraction"].default
        if self.folder is None and self.contents is not None:
            raise ValueError("`contents` must be None without a `folder`.")
        if self.folder is not None and self.train_fraction != default:
            raise ValueError(
                f"`train_fraction` (={self.train_fraction}) is about the bundled pictures; the "
                f"files in `folder` (={self.folder!r}) say which are trained."
            )
        n_bundled_trained(self.train_fraction)  # refuses one that leaves nothing
        return self

    @property
    def label(self) -> str:
        """The task in words: digits, and the folder that they are in."""
        return "digits" if self.folder is None else f"digits in {self.folder}"

    @property
    def n_train(self) -> int:
        """Number of training pictures."""
        if self.contents is not None:
            return self.contents.n_train
        return n_bundled_trained(self.train_fraction)

    @property
    def n_test(self) -> int:
        """Number of test pictures."""
        return N_BUNDLED - self.n_train if self.contents is None else self.contents.n_test

    @property
    def n_noisy(self) -> int:
        """Number of wrong training labels: the fraction of the training pictures, rounded."""
        return round(self.noise * self.n_train)

    @property
    def n_pixels(self) -> int:
        """Number of inputs: rows times columns of a picture."""
        return BUNDLED_PIXELS if self.contents is None else self.contents.n_pixels

    @property
    def n_classes(self) -> int:
        """Number of classes and of logits, 10."""
        return N_DIGITS
