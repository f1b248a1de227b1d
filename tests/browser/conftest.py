"""A headless Chromium that has no network, for tests of the pages as a reader sees them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from synthetic_timeline import synthetic_dataset

from interp_shortcuts.timelines.timeline import Timeline

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def _absent(reason: str) -> None:
    if os.environ.get("INTERP_SHORTCUTS_REQUIRE_BROWSER") == "1":
        pytest.fail(f"INTERP_SHORTCUTS_REQUIRE_BROWSER=1, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Chromium: INTERP_SHORTCUTS_BROWSER, or the first one found; skips if there is none."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _absent("playwright is not installed (extra `browser`)")
    named = os.environ.get("INTERP_SHORTCUTS_BROWSER")
    path = named or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None or not Path(path).exists():
        _absent(f"there is no Chromium at {path or 'chromium'}; set INTERP_SHORTCUTS_BROWSER")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def open_page(browser) -> Iterator:
    """Opens a file offline at a width; fails afterwards if the page reported an error."""
    contexts, problems = [], []

    def open_file(path: Path, *, width: int = 1280, height: int = 900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(f"page error: {error}"))
        page.on(
            "console",
            lambda line: problems.append(line.text) if line.type in ("error", "warning") else None,
        )
        page.on("requestfailed", lambda request: problems.append(f"request: {request.url[:200]}"))
        page.goto(path.as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture(scope="session")
def timeline() -> Timeline:
    """A run that generalised, small."""
    return Timeline(synthetic_dataset("generalised", n_steps=30))
