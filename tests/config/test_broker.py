"""Messages in files: whole or not at all, whoever reads at that moment."""

import json
import threading
from queue import Empty

import pytest
from kombu import Connection

from config.broker import Channel


@pytest.fixture
def channel(tmp_path):
    """A channel of the broker over a folder of its own."""
    folders = {}
    for name in ("messages", "control"):
        (tmp_path / name).mkdir()
    folders["data_folder_in"] = folders["data_folder_out"] = str(tmp_path / "messages")
    folders["control_folder"] = str(tmp_path / "control")
    with Connection("filesystem://", transport_options=folders) as connection:
        yield connection.channel()


def test_filesystem_means_our_broker(channel):
    assert type(channel) is Channel


def test_a_message_is_never_read_in_part(channel):
    count, read, problems = 1_000, [], []

    def take():
        while len(read) < count and not problems:
            try:
                read.append(channel._get("celery")["number"])
            except Empty:
                continue
            except ValueError as error:
                problems.append(error)

    reader = threading.Thread(target=take)
    reader.start()
    for number in range(count):
        channel._put("celery", {"number": number, "text": "x" * 5_000})
    reader.join(timeout=60)

    assert problems == []
    assert sorted(read) == list(range(count))


def test_what_a_killed_sender_left_is_no_message(channel, tmp_path):
    (tmp_path / "messages" / ".half-written").write_text('{"numb')
    channel._put("celery", {"number": 1})

    assert channel._get("celery") == {"number": 1}
    with pytest.raises(Empty):
        channel._get("celery")


@pytest.mark.parametrize("torn", ["", "[["])
def test_a_torn_table_of_queues_is_written_anew(channel, tmp_path, torn):
    table = tmp_path / "control" / "celery.exchange"
    table.write_text(torn)

    channel._queue_bind("celery", "celery", None, "celery")
    channel._queue_bind("celery", "celery", None, "celery")
    channel._queue_bind("celery", "other", None, "other")

    assert json.loads(table.read_text()) == [["other", "", "other"], ["celery", "", "celery"]]
    assert len(channel.get_table("celery")) == 2
