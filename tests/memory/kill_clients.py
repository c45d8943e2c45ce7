"""Clients that save by the API and repeat a request until it is answered, or give it up."""

import http.client
import json
import random
import threading
import time
import traceback
from collections import Counter

PATIENCE_SECONDS = 60
_TIMEOUT_SECONDS = 10
_PAUSE_SECONDS = 0.02
_GIVE_UP, _IMPATIENT = 0.2, 0.1
_IMPATIENT_SECONDS = 0.03
_REPLAYED = 10
USER = "ming"


class Client(threading.Thread):
    """One client of an agent, with a memory of its own that it changes, and its books.

    `saved` tells the id of each text whose save was acknowledged, `given_up` has the texts
    of requests that were cut off and not repeated: lists, as a batch is saved whole.
    """

    def __init__(self, port, agent, key, number, seed):
        super().__init__(daemon=True)
        self.agent = agent
        self.saved, self.given_up, self.faults, self.counts = {}, [], [], Counter()
        self.stopped = threading.Event()
        self._name, self._serial = f"{agent}{number}", 0
        self._key, self._dice = key, random.Random(seed)
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
        self._acknowledged = []  # requests to repeat at the end

    def run(self):
        """Call until stopped, then repeat some of what was acknowledged."""
        work = [self._save, self._save, self._save_batch, self._call_tool, self._change, self._use]
        try:
            text = self._text()
            self.own = {"id": self._post("memories/", _memory(text))[1]["id"], "content": text}
            self.own |= {"version": 1, "uses": 0}
            while not self.stopped.is_set():
                self._dice.choice(work)()
                time.sleep(_PAUSE_SECONDS)
            for request, ids in self._dice.sample(
                self._acknowledged, min(_REPLAYED, len(self._acknowledged))
            ):
                answer, body = self._ask(*request)
                if _ids(body) != ids or answer.headers["Idempotency-Replayed"] != "true":
                    self.faults.append(f"repeated, {request} gave {body}; before, {ids}")
        except Exception:  # noqa: BLE001
            self.faults.append(traceback.format_exc())
        finally:
            self._connection.close()

    # --- what a client asks for ---

    def _save(self):
        text = self._text()
        self._save_once("memories/", _memory(text), [text])

    def _save_batch(self):
        texts = [self._text() for _ in range(3)]
        self._save_once("memories/batch/", {"memories": [*map(_memory, texts)]}, texts)

    def _save_once(self, path, body, texts):
        answered = self._post(path, body, may_give_up=True)
        if answered is None:
            self.given_up.append(texts)
            return
        ids = _ids(answered[1])
        self.saved |= dict(zip(texts, ids, strict=True))
        self._acknowledged.append((self._last, ids))

    def _call_tool(self):
        text = self._text()
        body = {"arguments": {"action": "create", "content": text}}
        answered = self._post("tools/memory_save/", body, may_give_up=True)
        if answered is None:
            self.given_up.append([text])
            return
        result = answered[1]["result"]
        # the very same text again would be "unchanged": here is seen whether the key was kept
        if result.get("action") != "created":
            self.faults.append(f"{text}: {answered[1]}")
        self.saved[text] = result["id"]

    def _change(self):
        """Change the own memory once: cut off, see by its ETag whether that was done."""
        own = self.own
        content = f"{own['content'].split()[0]} 第 {own['version'] + 1} 稿"
        path = f"memories/{own['id']}/?user_id={USER}"
        condition = {"If-Match": f'"{own["id"]}-{own["version"]}"'}
        before = self.counts["repeated"]
        answer, body = self._ask("PATCH", path, {"content": content}, condition)
        if answer.status == 412 and self.counts["repeated"] > before:
            _, body = self._ask("GET", path, None, {})
            self.counts["changes seen to be done"] += 1
        if (body["version"], body["content"]) != (own["version"] + 1, content):
            self.faults.append(f"changed to {content}: {answer.status} {body}")
        own.update(version=own["version"] + 1, content=content)

    def _use(self):
        self._post(f"memories/{self.own['id']}/touch/", {})
        self.own["uses"] += 1

    # --- how it asks ---

    def _text(self):
        self._serial += 1
        return f"{self._name}t{self._serial} 支付模块周五上线"

    def _post(self, path, body, *, may_give_up=False):
        """Post under a new Idempotency-Key; return the answer and its body, None if given up."""
        self._serial += 1
        key = {"Idempotency-Key": f"{self._name}-{self._serial}"}
        self._last = ("POST", path, {"user_id": USER, **body}, key)
        return self._ask(*self._last, may_give_up=may_give_up)

    def _ask(self, method, path, body, headers, *, may_give_up=False):
        """Return the answer to a request and its body, however often it must be repeated."""
        until = time.monotonic() + PATIENCE_SECONDS
        self.counts["requests"] += 1
        cut_off = self.counts["cut off"]
        while True:
            answer = self._try(method, path, body, headers)
            if answer is not None and answer.status != 503:
                break
            if time.monotonic() > until:
                raise TimeoutError(f"{method} {path} was not answered: {answer}")
            if may_give_up and self._dice.random() < _GIVE_UP:
                self.counts["given up"] += 1
                return None
            self.counts["repeated"] += 1
            time.sleep(2 * _PAUSE_SECONDS)
        if answer.status >= 300 and answer.status != 412:
            raise ValueError(f"{method} {path} {body}: {answer.status} {answer.text}")
        if not self.stopped.is_set() and "Idempotency-Replayed" in answer.headers:
            cause = "a kill" if self.counts["cut off"] > cut_off else "impatience"
            self.counts[f"replayed after {cause}"] += 1
        return answer, json.loads(answer.text)

    def _try(self, method, path, body, headers):
        """Send a request once; return the answer, or None where the connection broke."""
        headers = {**headers, "Authorization": f"Bearer {self._key}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        is_impatient = self._dice.random() < _IMPATIENT
        try:
            if is_impatient:  # leaves while the server is at it, and asks again beside itself
                self._connection.close()
                self._connection.connect()
                self._connection.sock.settimeout(self._dice.uniform(0.001, _IMPATIENT_SECONDS))
            self._connection.request(
                method, f"/api/v1/agents/{self.agent}/{path}",
                None if body is None else json.dumps(body), headers,
            )  # fmt: skip
            answer = self._connection.getresponse()
            answer.text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            if isinstance(error, ConnectionRefusedError):
                self.counts["refused"] += 1
            else:
                self.counts["left" if isinstance(error, TimeoutError) else "cut off"] += 1
            return None
        if is_impatient:
            self._connection.close()
        self.counts["answered 503"] += answer.status == 503
        return answer


def _memory(text):
    return {"type": "project", "content": text}


def _ids(body):
    """Return the ids in the answer to a save."""
    if "results" in body:
        return [result["memory"]["id"] for result in body["results"]]
    return [body["id"]]
