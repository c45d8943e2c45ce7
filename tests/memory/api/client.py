"""An agent's HTTP client, and what every error must look like."""

import json
from urllib.parse import quote, urlencode

from django.test import Client

from agents.auth import issue_key


class Api:
    """Calls the addresses of one agent with a key of its own; paths begin at the agent."""

    def __init__(self, agent, user_id="", **options):
        self.agent = agent
        self.row, self.key = issue_key(agent, user_id=user_id)
        self.client = Client(headers={"authorization": f"Bearer {self.key}"}, **options)

    def address(self, path, agent=None):
        return f"/api/v1/agents/{quote((agent or self.agent).name)}/{path}"

    def send(self, method, path, body=None, *, raw=None, agent=None, headers=None, **query):
        """Send a request; `raw` is a body as it is, `query` may hold lists."""
        address = self.address(path, agent)
        if query:
            address += "?" + urlencode(query, doseq=True)
        content = {}
        if raw is not None or body is not None:
            data = json.dumps(body) if raw is None else raw
            content = {"data": data, "content_type": "application/json"}
        return self.client.generic(method, address, headers=headers, **content)

    def get(self, path, **options):
        return self.send("GET", path, **options)

    def post(self, path, body, **options):
        return self.send("POST", path, body, **options)

    def patch(self, path, body, **options):
        return self.send("PATCH", path, body, **options)

    def delete(self, path, **options):
        return self.send("DELETE", path, **options)

    def save(self, user_id, content="Ming deploys on Fridays", *, headers=None, **fields):
        """Save a memory and return it."""
        body = {"user_id": user_id, "type": "user", "content": content, **fields}
        response = self.post("memories/", body, headers=headers)
        assert response.status_code == 201, response.json()
        return response.json()

    def tool(self, name, user_id, arguments, **options):
        """Call a tool and return its answer."""
        body = {"user_id": user_id, "arguments": arguments}
        response = self.post(f"tools/{name}/", body, **options)
        assert response.status_code == 200, response.json()
        answer = response.json()
        assert set(answer) == {"ok", "result", "text"}
        return answer

    def listed(self, user_id, **query):
        """Return the memories of a user, newest first."""
        response = self.get("memories/", user_id=user_id, limit=200, **query)
        assert response.status_code == 200, response.json()
        return response.json()["results"]

    def names(self, user_id, **query):
        """Return the names of a user's memories, newest first."""
        return [memory["name"] for memory in self.listed(user_id, **query)]

    def found(self, user_id, query, **body):
        """Return the names that a search finds, best first."""
        response = self.post("search/", {"user_id": user_id, "query": query, **body})
        assert response.status_code == 200, response.json()
        return [hit["memory"]["name"] for hit in response.json()["results"]]


def error_of(response, status, code=None):
    """Return the error of a response, in the one shape that every error has."""
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"].startswith("application/json")
    body = json.loads(response.content)
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) - {"fields"} == {"code", "message"}
    assert isinstance(error["code"], str)
    assert error["code"]
    assert isinstance(error["message"], str)
    assert error["message"]
    if "fields" in error:
        assert error["fields"]
        assert all(isinstance(text, str) and text for text in error["fields"].values())
    if code is not None:
        assert error["code"] == code, error
    return error


def fields_of(response, status=400):
    """Return the names of the fields that a refusal complains of."""
    return set(error_of(response, status, "invalid")["fields"])
