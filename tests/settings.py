"""The product's settings over throw-away databases and the servers that `./run test` starts."""

import os
import shutil
import tempfile
from pathlib import Path

# in memory, where there is such a place: these databases wait for no disk at every commit
_shm = Path("/dev/shm")
_is_roomy = _shm.is_dir() and shutil.disk_usage(_shm).free > 500 * 1024**2
_data_dir = tempfile.TemporaryDirectory(prefix="hippo-test-", dir=_shm if _is_roomy else None)
os.environ["DATA_DIR"] = _data_dir.name
os.environ.pop("DATABASE_URL", None)
# a browser test leaves a running event loop in the thread, where Django would refuse queries
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
# an absent server is a failure here, never a skip
if not os.environ.get("TEST_MYSQL_URL"):
    raise RuntimeError("Run the tests with ./run test: it starts MySQL and sets TEST_MYSQL_URL.")
os.environ["MYSQL_URL"] = os.environ["TEST_MYSQL_URL"]
# a second to load the model in every process; what is about meaning asks for it
os.environ["EMBEDDINGS"] = "none"

from config.settings import *  # noqa: E402, F403
from config.settings import DATA_DIR, DATABASES  # noqa: E402

# a file, not memory: threads and child processes of a test share it
DATABASES["default"]["TEST"] = {"NAME": str(DATA_DIR / "default.sqlite3")}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
STATIC_ROOT = DATA_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# throttling has tests of its own
API_RATE_PER_MINUTE = 0
