import io
import json
import logging
import logging.config

import pytest

from tests.tables import cases
from volcano_ui import logs


@cases("content, expected", {
    "empty": ("", ""),
    "last line that is not blank": ("one\ntwo\n\n", "two"),
    "first line of an event": ('{"event": "broken\\nmore", "level": "error"}\n', "broken"),
    "JSON without an event": ('{"level": "error"}\n', '{"level": "error"}'),
    "cut": ("x" * 5000, "x" * 200),
    "JSON of another kind": ("[1]\n", "[1]"),
})  # fmt: skip
def test_last_message(content, expected, tmp_path):
    file = tmp_path / "web.log"
    file.write_text(content)
    assert logs.last_message(file) == expected


def test_rotation_keeps_the_newest_and_the_writer_and_leaves_small_and_missing_logs(tmp_path):
    file, small = tmp_path / "web.log", tmp_path / "small.log"
    small.write_text("short")
    with file.open("ab", buffering=0) as writer:
        for number in range(6):
            writer.write(b"%d" % number * 100)
            for each in (file, small, tmp_path / "none.log"):
                logs.rotate(each, most_bytes=100, keep=3)
        writer.write(b"end")
    assert file.read_text() == "end"
    assert [(tmp_path / f"web.log.{n}").read_text()[0] for n in (1, 2, 3)] == ["5", "4", "3"]
    assert len(list(tmp_path.iterdir())) == 5


@pytest.fixture
def written(settings):
    """What is logged during the test, as the files hold it."""
    stream = io.StringIO()
    configuration = logs.configuration()
    configuration["handlers"]["stderr"]["stream"] = stream
    logging.config.dictConfig(configuration)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    logging.config.dictConfig(settings.LOGGING)


def test_login_links_do_not_reach_the_log(client, written):
    token = "uR-m_hwixKI3CaE99kCrO1MDbTWm8El3oApS5N_LSpo"
    for method in (client.put, client.options):
        method(f"/login/{token}/")
    client.get(f"/login/{token}x")
    logging.getLogger("django.request").warning("Not Found: %s", f"/login/{token}/")
    assert "Not Found: /login/…/" in [line["event"] for line in written()]
    assert token not in str(written())


@pytest.mark.django_db
def test_who_asks_for_what_is_not_there_does_not_fill_the_log_nor_refused_requests_with_tracebacks(client, written):
    assert client.get("/nothing/here/").status_code in (302, 404)
    assert client.get("/static/nothing").status_code == 404
    assert client.put("/healthz").status_code == 405
    logging.getLogger("django.request").error("Internal Server Error", extra={"status_code": 500})
    assert [line["event"] for line in written()] == ["Internal Server Error"]
    assert client.get("/login/", headers={"host": "elsewhere.example"}).status_code == 400
    refusals = [line for line in written() if line["logger"].startswith("django.security")]
    assert refusals
    assert not any("exception" in line or line["level"] != "warning" for line in refusals)


def test_a_worker_tells_of_its_first_try_to_reach_its_broker_only(written):
    for tries in ("now... (1/None)", "now... (2/None)", "in 1.00 second... (10/None)"):
        # As celery.worker.consumer.consumer.Consumer.ensure_connected does.
        logging.getLogger("celery.worker.consumer.consumer").error(
            "consumer: Cannot connect to %s: %s.\n%s\n", "redis://", "refused", f"Trying again {tries}"
        )
    logging.getLogger("celery.worker.consumer.consumer").warning("Connection to broker lost")
    first, lost = written()
    assert "(1/None)" in first["event"]
    assert lost["event"] == "Connection to broker lost"


def test_lines_of_a_program_say_which_it_is(written, monkeypatch):
    logging.getLogger("cluster").warning("alone")
    monkeypatch.setenv(logs.PROGRAM, "mirror")
    logging.getLogger("cluster").warning("of many")
    assert [line.get("program") for line in written()] == [None, "mirror"]
