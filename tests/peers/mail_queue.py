#!/usr/bin/env python3
"""Mail of the logbook with a real mail server (aiosmtpd): STARTTLS with a trusted and an unknown certificate, login, a server
that is away and comes back, and a hub that is killed meanwhile. Each mail arrives once."""

import json
import os
import socket
import ssl
import subprocess

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from hub import Place, check, until


class Inbox:
    """Keeps the mails that the server accepted; asks for a second attempt once for each recipient named 'grey'."""

    def __init__(self):
        self.mails = []
        self.grey = set()

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody"):
            return "550 5.1.1 no such user"
        if address.startswith("grey") and address not in self.grey:
            self.grey.add(address)
            return "451 4.7.1 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.mails.append((envelope.rcpt_tos, envelope.content.decode(), bool(session.ssl), session.authenticated))
        return "250 taken"


def certificate(directory, name):
    """Makes a certificate for localhost that signs itself."""
    crt, key = os.path.join(directory, f"{name}.crt"), os.path.join(directory, f"{name}.key")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", crt, "-subj",
         "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True)
    return crt, key


def authenticate(server, session, envelope, mechanism, data):
    good = mechanism in ("LOGIN", "PLAIN") and (data.login, data.password) == (b"logbook", b"s3cret")
    return AuthResult(success=good)


def server(inbox, port, files):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    controller = Controller(inbox, hostname="127.0.0.1", port=port, tls_context=context, require_starttls=True,
                            authenticator=authenticate, auth_required=True)
    controller.start()
    return controller


def main():
    place = Place("mail-test")
    trusted, other = certificate(place.directory, "trusted"), certificate(place.directory, "other")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    password = os.path.join(place.directory, "password")
    with open(password, "w", encoding="utf-8") as file:
        file.write("s3cret\n")
    os.chmod(password, 0o600)
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"""[book]
listen = "127.0.0.1:0"
min_free_mb = 0
[collector]
min_free_gb = 0
[mail]
host = "localhost"
port = {port}
certificates = "{trusted[0]}"
user = "logbook"
password_file = "{password}"
from = "Logbook <logbook@example.org>"
retry_s = 1
""")

    def queue():
        return json.loads(place.run("mail", "queue", "list", "--json").stdout)

    # The role of the logbook is a process of its own, in its sandbox.
    hub = place.up("--config", config, roles=True)
    inbox = Inbox()

    refused = place.run("mail", "test", "zoe@example.org", check=False)
    check("without a server the test names the connection", refused.returncode == 1 and f"localhost:{port}: connection" in refused.stderr)

    one = server(inbox, port, other)
    refused = place.run("mail", "test", "zoe@example.org", check=False)
    check("an unknown certificate is refused, with the way out",
          refused.returncode == 1 and "STARTTLS" in refused.stderr and "[mail] certificates" in refused.stderr)
    check("and nothing was sent", not inbox.mails)
    one.stop()

    one = server(inbox, port, trusted)
    said = place.run("mail", "test", "zoe@example.org").stdout
    check("the server's answer is printed", "250 taken" in said)
    rcpt, text, encrypted, logged_in = inbox.mails[0]
    check("encrypted, and after a login", encrypted and logged_in and rcpt == ["zoe@example.org"])
    check("with the sender of the configuration", "From: Logbook <logbook@example.org>" in text)
    for address, words in [("nobody@example.org", "550 no such user"), ("grey@example.org", "come back later")]:
        refused = place.run("mail", "test", address, check=False)
        check(f"{address}: {words}", refused.returncode == 1 and words.split()[-1] in refused.stderr)
    with open(password, "w", encoding="utf-8") as file:
        file.write("wrong\n")
    refused = place.run("mail", "test", "zoe@example.org", check=False)
    check("a wrong password is named as one", "login of 'logbook'" in refused.stderr and "wrong" not in refused.stderr)
    with open(password, "w", encoding="utf-8") as file:
        file.write("s3cret\n")
    check("nothing waits after tests", queue()["mails"] == [])

    one.stop()
    inbox.mails.clear()
    inbox.grey.clear()
    for address in ["zoe@example.org", "grey@example.org", "nobody@example.org"]:
        place.run("mail", "test", "--queued", address)
    until("the queue knows that the server is away", lambda: "away" in queue())
    check("mails wait for a server that is away", len(queue()["mails"]) == 3)
    hub.kill()
    hub.wait()
    hub = place.up("--config", config, roles=True)
    check("a killed hub lost none", len(queue()["mails"]) == 3)
    one = server(inbox, port, trusted)
    until("each mail is sent or failed", lambda: all(mail["to"][0]["state"] == "failed" for mail in queue()["mails"]))
    hub.kill()
    hub.wait()
    place.up("--config", config, roles=True)
    left = queue()["mails"]
    check("the refused one stays listed, with the reason", len(left) == 1 and "550" in left[0]["to"][0]["last"])
    check("each of the others arrived once", sorted(mail[0][0] for mail in inbox.mails) == ["grey@example.org", "zoe@example.org"])
    place.run("mail", "queue", "drop", "--all")
    check("it can be dropped", queue()["mails"] == [])
    one.stop()


if __name__ == "__main__":
    main()
