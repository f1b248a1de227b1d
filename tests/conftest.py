"""Switches on the run-time check of shapes and types, and isolates tests from each other."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import pytest
from jaxtyping import config, install_import_hook

install_import_hook("interp_shortcuts", "beartype.beartype")


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches the run-time check off: users run without it, and so are told in other words."""
    monkeypatch.setattr(config, "jaxtyping_disable", True)
