from __future__ import annotations

import ctypes
import sys

import pytest

from interp_shortcuts.training import memory


def test_it_says_whether_the_settings_were_taken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    glibc = sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")
    assert memory.keep_freed_memory() is glibc


def test_elsewhere_nothing_happens(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert memory.keep_freed_memory() is False
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory.keep_freed_memory() is False


def test_the_users_own_settings_hold(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000")
    assert memory.keep_freed_memory() is False
