"""Settings of the test run: those of the product, on a state directory that goes away with the process."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

DIRECTORY = tempfile.mkdtemp(prefix="volcano-ui-test-")
atexit.register(shutil.rmtree, DIRECTORY, ignore_errors=True)
# Processes that tests start find the same directory.
os.environ["VOLCANO_UI_DATA"] = DIRECTORY
# Pods are processes, whatever is installed, but for tests that ask for an engine (proof/harness/engine.py).
os.environ["VOLCANO_UI_ENGINE"] = "none"
# The suite's own database is SQLite; the fixture `postgres_url` hands this one to the tests that ask.
if url := os.environ.pop("DATABASE_URL", ""):
    os.environ["TEST_DATABASE_URL"] = url

from volcano_ui.settings import *  # noqa: E402, F403
from volcano_ui.settings import ALLOWED_HOSTS, DATA, DATABASES, MIDDLEWARE, STORAGES  # noqa: E402

ALLOWED_HOSTS = [*ALLOWED_HOSTS, "testserver"]
# A file, as in the product: SQLite in memory locks differently.
DATABASES["default"]["TEST"] = {"NAME": str(DATA / "test.sqlite3")}
# Nobody needs it after a loss of power, so nothing waits for the disk, as it otherwise would each time a connection is closed.
DATABASES["default"]["OPTIONS"]["init_command"] += " PRAGMA synchronous=OFF;"
# Pages are rendered without a front end being built first.
STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
MIDDLEWARE = [
    each.replace("servestatic.middleware.ServeStaticMiddleware", "proof.harness.static_files.served")
    for each in MIDDLEWARE
]
STATIC_ROOT = DATA / "static"
STATIC_ROOT.mkdir()
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
