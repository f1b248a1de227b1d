"""The exceptions that users meet; every message says the rule, the name and the value.

This module knows nothing else of the package, so that every layer can raise from it.
"""

from __future__ import annotations


class InterpShortcutsError(Exception):
    """Base of all errors that this package raises on purpose."""


class ConfigError(InterpShortcutsError, ValueError):
    """A setting is unknown, mistyped or contradicts another one."""


class TaskError(InterpShortcutsError, ValueError):
    """A task cannot be built: its rules or its sizes are impossible."""


class StorageError(InterpShortcutsError, ValueError):
    """A file or run folder is missing, damaged, or belongs to something else."""


class MeasureError(InterpShortcutsError, ValueError):
    """A measure cannot be taken on this model and task."""


class InterventionError(InterpShortcutsError, ValueError):
    """An intervention names what is not there, or never took effect."""


class DivergedError(InterpShortcutsError, ValueError):
    """Training reached a loss that is not a finite number."""


class WorkerLostError(InterpShortcutsError, RuntimeError):
    """The process that trained a run died: killed, or out of memory."""


class IdenticalCheckpointsWarning(UserWarning):
    """Two consecutive checkpoints hold the same weights, which usually means a loading bug."""
