"""`python -m interp_shortcuts.cli`, the same as the command `interp-shortcuts`."""

from __future__ import annotations

import sys

from interp_shortcuts.cli import main

if __name__ == "__main__":
    sys.exit(main())
