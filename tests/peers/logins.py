"""What the tests of login methods share: a hub with methods, its owner, and persons at browsers."""

import base64
import glob
import http.cookiejar
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request

from hub import Place, until

PASSWORD = "correct horse"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write(path, text, mode=0o600):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)
    return path


def with_login_features():
    """Builds the program with the login methods that need libraries of the system; the path of the program."""
    if "TAMPU_LOGIN_BIN" not in os.environ:
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "login-binary.sh")
        built = subprocess.run([script], check=True, text=True, stdout=subprocess.PIPE)
        os.environ["TAMPU_LOGIN_BIN"] = built.stdout.strip()
    return os.environ["TAMPU_LOGIN_BIN"]


class LoginSite(Place):
    """A hub with login methods, in confined processes of its own, with a logbook and a local administrator."""

    def begin(self, methods, port=0):
        config = f'[book]\nlisten = "127.0.0.1:{port}"\nguests = "none"\nmin_free_mb = 0\n{methods}\n[collector]\nmin_free_gb = 0\n'
        self.up("--config", write(os.path.join(self.directory, "tampu.toml"), config), roles=True)
        [told] = until("the hub says where its logbook is", lambda: glob.glob(f"{self.directory}/run/**/book.json", recursive=True))
        with open(told, encoding="utf-8") as file:
            place = json.load(file)
        self.url, self.token = place["url"], place["token"]
        owner = {"Authorization": f"Bearer {self.token}"}
        self.ask("PUT", "/api/v1/books/Shift", {"name": "Shift", "attributes": []}, owner)
        self.ask("PUT", "/api/v1/books/Shift/access", {"grants": [{"to": "group:ops", "may": ["read", "write"]}]}, owner)
        self.ask("POST", "/api/v1/users", {"login": "local", "password": PASSWORD, "admin": True}, owner)

    def ask(self, method, path, body=None, headers=None):
        """Sends a request; status, headers and JSON or text of the answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}{path}", data, {"Content-Type": "application/json", **(headers or {})}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, told, text = answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, told, text = error.code, error.headers, error.read().decode()
        try:
            return status, told, json.loads(text)
        except ValueError:
            return status, told, text

    def log_in(self, login, password):
        """Logs in; the status, and headers with the session for further requests."""
        status, headers, answer = self.ask("POST", "/api/v1/login", {"login": login, "password": password})
        cookie = (headers.get("Set-Cookie") or "").split(";")[0]
        return status, {"Cookie": cookie}, answer

    def logged(self):
        """All messages of the site, as one text."""
        found = self.run("log", "query", "--limit", "0", "--json")
        return "\n".join(json.loads(line)["message"] for line in found.stdout.splitlines())

    def explained(self, headers):
        return self.ask("GET", "/api/v1/whoami/explain", headers=headers)[2]

    def basic(self, login, password):
        pair = base64.b64encode(f"{login}:{password}".encode()).decode()
        return self.ask("GET", "/api/v1/whoami", headers={"Authorization": f"Basic {pair}"})


def browser():
    """A browser that follows redirects and keeps cookies."""
    return urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
