"""Switches on the run-time check of shapes and types, and isolates tests from each other."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

from jaxtyping import install_import_hook

install_import_hook("interp_shortcuts", "beartype.beartype")
