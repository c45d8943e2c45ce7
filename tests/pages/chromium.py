"""Which chromium the pages are tried in: the system's own, else the one playwright fetched.

Run as a program it prints where that is, and fails where there is none.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


def find():
    """Return its path, or None."""
    paths = [shutil.which(name) for name in ("chromium", "chromium-browser")]
    own = next((path for path in paths if path and not _is_snap(path)), None)
    if own:
        return own
    with sync_playwright() as playwright:
        fetched = playwright.chromium.executable_path
    return fetched if Path(fetched).exists() else None


def _is_snap(path):
    # Ubuntu's package is a script that starts a snap, which sees no file of ours
    return path.startswith("/snap/") or b"/snap/" in Path(path).read_bytes()[:4096]


if __name__ == "__main__":
    print(find() or sys.exit("There is no chromium."))
