"""A run folder on disk: where each file lies, and how it is written so that a kill cannot tear it.

Every file is written beside itself, flushed to disk and renamed. The tensors inside checkpoints
are `checkpoint.py`'s business, the learning curves `curves.py`'s.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from interp_shortcuts.errors import StorageError
from interp_shortcuts.runs.config import RunConfig

ENDED = ("finished", "diverged")
"""Statuses of runs that are not trained again: the same config would end the same."""

TRAIN_ANEW = "Delete the run folder and train it again (in a sweep: repeat the command)."
"""What to do about a run whose files cannot be trusted; resuming would stop at the same damage."""

MANIFEST_FORMAT = 1
_CHECKPOINT = re.compile(r"step_(\d{7,})\.safetensors")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file beside `path`, then rename it over `path`; on an error `path` is as it was.

    Yields:
        The temporary path to write to (hidden, in the same folder, ending in `.tmp`).
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8) so that it is either the old one or the new one, never half."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class RunFolder:
    """The files of one run. Creating the object touches nothing on disk."""

    path: Path

    @property
    def config_path(self) -> Path:
        return self.path / "config.json"

    @property
    def manifest_path(self) -> Path:
        return self.path / "manifest.json"

    @property
    def curves_path(self) -> Path:
        return self.path / "curves.jsonl"

    @property
    def resume_path(self) -> Path:
        return self.path / "resume.pt"

    @property
    def checkpoints_path(self) -> Path:
        return self.path / "checkpoints"

    def checkpoint_path(self, step: int) -> Path:
        """Where the checkpoint of a step lies, whether or not it is there."""
        return self.checkpoints_path / f"step_{step:07d}.safetensors"

    @property
    def is_empty(self) -> bool:
        """Whether the folder is missing or holds hidden files (leftovers of a kill) only."""
        if not self.path.exists():
            return True
        if not self.path.is_dir():
            return False
        return not any(not entry.name.startswith(".") for entry in self.path.iterdir())

    @property
    def looks_like_a_run(self) -> bool:
        """Whether a config or a manifest is there."""
        return self.config_path.exists() or self.manifest_path.exists()

    def create(self) -> None:
        """Make the folder; an existing one is kept."""
        self.path.mkdir(parents=True, exist_ok=True)

    def remove_leftovers(self) -> None:
        """Delete the temporary files that a kill left behind."""
        for folder in (self.path, self.checkpoints_path):
            for leftover in folder.glob(".*.tmp"):
                leftover.unlink(missing_ok=True)

    def require(self) -> None:
        """Raise a `StorageError` unless this is a run folder."""
        if not self.path.exists():
            raise StorageError(f"'{self.path}' does not exist; give the folder of a run.")
        if not self.path.is_dir():
            raise StorageError(
                f"'{self.path}' is a file; give the folder of a run (the one with config.json)."
            )
        if self.is_empty:
            raise StorageError(
                f"'{self.path}' is empty: no run was trained there. "
                "Train one with `train(config, out=...)`."
            )

    def read_config(self) -> RunConfig:
        """The run's config.

        Raises:
            StorageError: If the file is missing, is not JSON, or has unknown or invalid fields.
        """
        self.require()
        path = self.config_path
        if not path.exists():
            raise StorageError(
                f"'{path}' is missing, so '{self.path}' is not a (whole) run folder. "
                "Give a run's own folder, restore the file, or train the run again elsewhere."
            )
        data = _read_json(path, cure="Restore it from a copy, or train the run again elsewhere.")
        try:
            return RunConfig.model_validate(data)
        except ValidationError as error:
            raise StorageError(_invalid_config(path, error)) from error

    def write_config(self, config: RunConfig) -> None:
        """Write config.json."""
        write_text(self.config_path, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")

    def read_manifest(self) -> dict[str, Any]:
        """The run's manifest.

        Raises:
            StorageError: If the file is missing, is not JSON, or lacks the run's status.
        """
        self.require()
        path = self.manifest_path
        if not path.exists():
            raise StorageError(
                f"'{path}' is missing: the run was not begun in full. Resume the run with "
                "`train(config, out=..., resume=True)` (in a sweep: repeat the command)."
            )
        manifest = _read_json(path, cure=TRAIN_ANEW)
        for key in ("format", "status", "run_id"):
            if key not in manifest:
                raise StorageError(f"'{path}' lacks `{key}`. {TRAIN_ANEW}")
        if manifest["format"] != MANIFEST_FORMAT:
            raise StorageError(
                f"'{path}' has `format` (={manifest['format']}), and this version of the package "
                f"reads format {MANIFEST_FORMAT}. Open it with the version that wrote it."
            )
        return manifest

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Write manifest.json."""
        write_text(self.manifest_path, json.dumps(manifest, indent=2) + "\n")

    def checkpoint_files(self) -> dict[int, Path]:
        """The checkpoint files that are there, by step, in order; temporary files are ignored.

        Raises:
            StorageError: If a `.safetensors` file there is not named after its step.
        """
        found: dict[int, Path] = {}
        for path in sorted(self.checkpoints_path.glob("*.safetensors")):
            match = _CHECKPOINT.fullmatch(path.name)
            step = int(match.group(1)) if match else -1
            if path != self.checkpoint_path(step):
                raise StorageError(
                    f"'{path}' is not named after its step (step_0000100.safetensors). "
                    "Move it out of the run folder, or give it its own name back."
                )
            found[step] = path
        return dict(sorted(found.items()))


def _read_json(path: Path, *, cure: str) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StorageError(f"'{path}' is damaged: not JSON ({error}). {cure}") from error
    if not isinstance(data, dict):
        raise StorageError(f"'{path}' is damaged: a JSON object was expected. {cure}")
    return data


def _invalid_config(path: Path, error: ValidationError) -> str:
    lines = []
    for entry in error.errors():
        name = ".".join(str(part) for part in entry["loc"]) or "RunConfig"
        if entry["type"] == "extra_forbidden":
            lines.append(f"`{name}` (={entry['input']!r}) is no field of this version's config")
        elif not entry["loc"]:  # a rule over several fields; the input is the whole config
            lines.append(entry["msg"].removeprefix("Value error, ").removesuffix("."))
        else:
            lines.append(f"`{name}` (={entry['input']!r}): {entry['msg']}")
    return (
        f"'{path}' is not a valid config: {'; '.join(lines)}. Correct the file, or open the run "
        "with the version of the package that wrote it (see manifest.json)."
    )
