#!/usr/bin/env python3
"""Entries by mail through a real LMTP client, and mails and webhooks by the rules of users, with a real mail server (aiosmtpd)
and a real https server: a webhook is signed,
is tried again while its server is away, follows no redirection, and goes to allowed hosts only."""

import hashlib
import hmac
import http.server
import json
import os
import socket
import ssl
import smtplib
import subprocess
import threading
from email.message import EmailMessage

from aiosmtpd.controller import Controller
from hub import Place, check, until


class Inbox:
    """Keeps the mails that the server accepted."""

    def __init__(self):
        self.mails = []

    async def handle_DATA(self, server, session, envelope):
        self.mails.append((envelope.rcpt_tos, envelope.content.decode()))
        return "250 taken"


class Hooks(http.server.BaseHTTPRequestHandler):
    """Keeps what was posted; answers as the path says."""

    got = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Hooks.got.append((self.path, dict(self.headers), body))
        status = int(self.path.rsplit("/", 1)[1])
        self.send_response(status)
        if status == 302:
            self.send_header("location", "/stolen/200")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def serve(at, files):
    """Starts the https server."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", at), Hooks)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main():
    place = Place("mail-rules")
    crt, key = os.path.join(place.directory, "hooks.crt"), os.path.join(place.directory, "hooks.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", crt, "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True)
    mail, hooks = port(), port()
    lmtp = os.path.join(place.directory, "lmtp.sock")
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"""[book]
listen = "127.0.0.1:0"
min_free_mb = 0
webhook_hosts = ["localhost:{hooks}"]
webhook_certificates = "{crt}"
[collector]
min_free_gb = 0
[mail]
host = "127.0.0.1"
port = {mail}
tls = "none"
from = "Logbook <logbook@example.org>"
retry_s = 1
[mail.in]
listen = "{lmtp}"
books = {{ shift = "Shift" }}
""")
    inbox = Inbox()
    smtp = Controller(inbox, hostname="127.0.0.1", port=mail)
    smtp.start()
    # The role of the logbook is a process of its own, in its sandbox.
    place.up("--config", config, roles=True)
    place.run("book", "make", "Shift", "-a", "Subject", "-a", "Author")
    for login in ["zoe", "kim"]:
        place.run("book", "users", "add", login, "--email", f"{login}@example.org", input="correct horse\n")

    def add(*arguments):
        return json.loads(place.run("book", "notify", "add", "--login", "kim", "--json", *arguments).stdout)

    def queue():
        return json.loads(place.run("mail", "queue", "list", "--json").stdout)["mails"]

    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Zoë <zoe@example.org>", "shift@log.example.org", "HV löst aus"
    message["Message-ID"] = "<one@example.org>"
    message.set_content("Kanal 7 löste aus.")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="plot.png")
    check("the socket is for its owner and group", os.stat(lmtp).st_mode & 0o777 == 0o660)
    with smtplib.LMTP(lmtp) as client:
        client.send_message(message)
    entry = json.loads(place.run("book", "show", "Shift/1", "--json").stdout)
    check("a mail is an entry", entry["by"] == "zoe" and entry["text"] == "Kanal 7 löste aus." and entry["attachments"][0]["size"] == 4)
    message.replace_header("From", "stranger@example.org")
    try:
        with smtplib.LMTP(lmtp) as client:
            client.send_message(message)
        refused = ""
    except smtplib.SMTPDataError as error:
        refused = str(error.smtp_error)
    except smtplib.SMTPRecipientsRefused as error:
        refused = str(error.recipients)
    check("mail of a stranger is refused, with the reason", "is not the address of a user" in refused)

    url = f"https://localhost:{hooks}/kim"
    for wrong in ["http://localhost/x", "https://127.0.0.1/x", "https://example.org/x", f"https://localhost:{hooks + 1}/x"]:
        refused = place.run("book", "notify", "add", "--login", "kim", "--webhook", wrong, check=False)
        check(f"{wrong} is no address for a webhook", refused.returncode != 0 and "webhook" in refused.stderr)
    rule = add("--webhook", f"{url}/200", "HV")
    listed = place.run("book", "notify", "list", "--login", "kim", "--json").stdout
    check("its secret is told once", len(rule["secret"]) > 20 and rule["secret"] not in listed)
    add("--about", "mentions")
    place.run("book", "post", "Shift", "-a", "Subject=trip", "-t", "HV trip, ask @kim")
    until("the mail arrives", lambda: inbox.mails)
    check("at the user who is mentioned", inbox.mails[0][0] == ["kim@example.org"] and "HV trip, ask @kim" in inbox.mails[0][1])
    until("the queue knows that the server of the webhook is away",
          lambda: [to for one in queue() for to in one["to"] if to["to"].startswith("https://") and to["attempts"] > 0])
    web = serve(hooks, (crt, key))
    until("the webhook arrives when its server is back", lambda: Hooks.got)
    path, headers, body = Hooks.got[0]
    expected = hmac.new(rule["secret"].encode(), body, hashlib.sha256).hexdigest()
    headers = {name.lower(): value for name, value in headers.items()}
    check("with the signature of its secret", headers["tampu-signature"] == f"sha256={expected}")
    told = json.loads(body)
    check("and the entry", path == "/kim/200" and told["entry"]["text"] == "HV trip, ask @kim" and told["login"] == "kim")
    until("the queue is empty", lambda: not queue())
    place.run("book", "notify", "remove", "--login", "kim", rule["id"])

    moved = add("--webhook", f"{url}/302")
    place.run("book", "notify", "test", "--login", "kim", moved["id"])
    until("a redirection fails", lambda: queue() and queue()[0]["to"][0]["state"] == "failed")
    check("and is not followed", "redirection" in queue()[0]["to"][0]["last"] and all("stolen" not in one[0] for one in Hooks.got))
    web.shutdown()
    smtp.stop()


if __name__ == "__main__":
    main()
