"""The HTTP port through Python's own http.client: Connect calls, pages, samples of /metrics."""

import base64
import http.client
import json
import re

import wire

SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')


class Reply:
    """Status, headers by lower-case name, body."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class HttpClient:
    """One connection, opened again when the server closed it."""

    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=wire.CALL_SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def request(self, method, path, body=None, headers=None):
        self.connection.request(method, path, body, headers or {})
        return Reply(self.connection.getresponse())

    def get(self, path, headers=None):
        return self.request("GET", path, headers=headers)

    def call(self, method, body, headers=None, content_type="application/json"):
        """One call of "sliceplan.v1.Service/Method" with a body of JSON text, an object, or bytes."""
        if isinstance(body, dict):
            body = json.dumps(body)
        return self.request("POST", "/" + method, body, {"Content-Type": content_type, **(headers or {})})

    def samples(self):
        """{(name, frozenset of (label, value)): value} of a scrape."""
        values = {}
        for line in self.get("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, labels, value = SAMPLE.match(line).groups()
                values[name, frozenset(LABEL.findall(labels or ""))] = float(value)
        return values


def details(error):
    """[(type, bytes)] of an error in JSON."""
    return [(detail["type"], base64.b64decode(detail["value"] + "=" * (-len(detail["value"]) % 4)))
            for detail in error.get("details", [])]
