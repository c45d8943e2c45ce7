"""The model that comes with Hippo is loaded once, whoever asks first."""

import threading
import time

from memory.llm import embeddings


def test_threads_that_ask_at_once_load_it_once(monkeypatch):
    made = []

    class Slow:
        def __init__(self):
            time.sleep(0.1)
            made.append(self)

    monkeypatch.setattr(embeddings, "EmbeddedModel", Slow)
    embeddings._load.cache_clear()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(embeddings.embedded_model())) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    embeddings._load.cache_clear()

    assert found == made * 5
    assert len(made) == 1
