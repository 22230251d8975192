"""Programs that are told to stop do not take themselves apart first."""

import os
import signal
import subprocess
import sys

import redis
from django.conf import settings

from proof.harness.waiting import HANG_S, until


def test_beat_ends_as_it_is_and_leaves_nothing_behind(redis_url, tmp_path):
    environment = {**os.environ, "VOLCANO_UI_REDIS_URL": redis_url, "VOLCANO_UI_DATA": str(tmp_path)}
    command = [sys.executable, "manage.py", "beat"]
    with redis.Redis.from_url(redis_url) as broker:
        beat = subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment)
        try:
            until(lambda: broker.keys("volcano-ui:*:controllers"), what="the first tick")
            beat.send_signal(signal.SIGTERM)
            # An end of Python's own has a status; this one has the signal.
            assert beat.wait(HANG_S) == -signal.SIGTERM
        finally:
            beat.kill()
    assert not [file for file in tmp_path.rglob("*") if "schedule" in file.name]


def test_whoever_leaves_is_not_taken_apart():
    code = (
        "import atexit; atexit.register(print, 'taken apart');"
        "from volcano_ui.process_exit import exit_at_once; print('said'); exit_at_once(3)"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "volcano_ui.settings"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, stdout=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout) == (3, "said\n")
