#!/usr/bin/env python3
"""Tickets of a real Kerberos realm (MIT's KDC) as a login method, with curl as the client: programs, browsers, replays, other realms, plain HTTP."""

import base64
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import hub
from hub import check, until
from logins import PASSWORD, LoginSite, free_port, with_login_features, write

REALM = "LAB.TEST"


class Realm:
    """A KDC of its own, with persons and the key of a service."""

    def __init__(self, directory):
        self.directory, self.port = directory, free_port()
        self.keytab = os.path.join(directory, "keys", "http.keytab")
        os.makedirs(os.path.dirname(self.keytab))
        config = write(os.path.join(directory, "keys", "krb5.conf"), f"""
[libdefaults]
  default_realm = {REALM}
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = 127.0.0.1:{self.port}
  }}
""")
        profile = write(os.path.join(directory, "kdc.conf"), f"""
[kdcdefaults]
  kdc_listen = 127.0.0.1:{self.port}
  kdc_tcp_listen = 127.0.0.1:{self.port}
[realms]
  {REALM} = {{
    database_name = {directory}/principal
    key_stash_file = {directory}/stash
    acl_file = {directory}/acl
  }}
""")
        self.environment = {**os.environ, "KRB5_CONFIG": config, "KRB5_KDC_PROFILE": profile, "PATH": f"{os.environ['PATH']}:/usr/sbin"}
        self.run("kdb5_util", "create", "-r", REALM, "-s", "-P", "of the database")
        for name in ("zoe", "max", "local", "zoe/admin", "DAQ1$"):
            self.admin(f"addprinc -pw of-{name} {name}")
        self.admin("addprinc -randkey HTTP/localhost")
        self.admin(f"ktadd -k {self.keytab} HTTP/localhost")
        self.kdc = None

    def run(self, *command, **options):
        return subprocess.run(command, env=self.environment, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options).stdout

    def admin(self, query):
        self.run("kadmin.local", "-r", REALM, "-q", query)

    def start(self, site):
        self.kdc = subprocess.Popen(["krb5kdc", "-n", "-r", REALM], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        site.processes.append(self.kdc)

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) == 0

        until("the KDC answers", answers)

    def tickets(self, principal):
        """Gets a person's tickets; the environment of programs that use them."""
        cache = os.path.join(self.directory, f"tickets-{principal.replace('/', '-')}")
        environment = {**self.environment, "KRB5CCNAME": f"FILE:{cache}"}
        subprocess.run(["kinit", principal], input=f"of-{principal}\n", env=environment, check=True, text=True, stdout=subprocess.DEVNULL)
        return environment


def curl(environment, url, *arguments):
    """The status, the headers in lower case and the text of curl's last response, and the token it has sent, if any."""
    command = ["curl", "--silent", "--show-error", "--verbose", "--include", "--negotiate", "--user", ":", *arguments, url]
    done = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=True)
    sent = re.findall(r"^> Authorization: Negotiate (\S+)", done.stderr, re.M)
    parts = done.stdout.replace("\r\n", "\n").split("\n\n")
    # The response that asks for a ticket stands before the last one.
    heads = [at for at, part in enumerate(parts) if part.startswith("HTTP/")]
    head, text = parts[heads[-1]], "\n\n".join(parts[heads[-1] + 1:])
    return int(head.split()[1]), head, text, sent[-1] if sent else None


class Asking(BaseHTTPRequestHandler):
    """A server that asks for a ticket, and does not use it."""

    def do_GET(self):
        self.send_response(200 if "Authorization" in self.headers else 401)
        self.send_header("WWW-Authenticate", "Negotiate")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def unused_ticket(environment):
    """A ticket that nobody has accepted yet."""
    server = HTTPServer(("127.0.0.1", 0), Asking)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return curl(environment, f"http://localhost:{server.server_port}/")[3]
    finally:
        server.shutdown()


def main():
    hub.TAMPU = with_login_features()
    site = LoginSite("login-kerberos")
    try:
        realm = Realm(os.path.join(site.directory))
        realm.start(site)
        site.environment["KRB5_CONFIG"] = realm.environment["KRB5_CONFIG"]
        tested(site, realm)
    finally:
        site.close()


def table(realm, more="", name="realm"):
    return f'[[book.login]]\nname = "{name}"\nregister = true\n[book.login.kerberos]\nkeytab = "{realm.keytab}"\nrealm = "{REALM}"\n{more}'


def tested(site, realm):
    def refused(method):
        config = write(os.path.join(site.directory, "bad.toml"), f"[book]\n{method}")
        done = site.run("up", "--data", site.data, "--in-process", "--config", config, check=False)
        return done.stderr if done.returncode != 0 else ""

    check("a keytab that is missing is named", "nowhere.keytab" in refused(table(realm).replace("http.keytab", "nowhere.keytab")))
    os.chmod(realm.keytab, 0o644)
    check("so is one that everybody may read", "chmod 640" in refused(table(realm)))
    os.chmod(realm.keytab, 0o600)
    realm.admin(f"ktadd -k {realm.directory}/keys/other.keytab zoe")
    realm.admin("change_password -pw of-zoe zoe")
    check("so is one without a key of the service", "HTTP/" in refused(table(realm).replace("http.keytab", "other.keytab")))
    check("two methods of Kerberos are one too many", "several methods" in refused(table(realm) + table(realm, name="second")))

    rule = '[[book.login.group]]\nfrom = "root"\ngroup = "ops"\n'
    site.begin(table(realm, 'label = "the lab\'s ticket"\n') + rule)
    api = site.url.replace("127.0.0.1", "localhost")
    owner = {"Authorization": f"Bearer {site.token}"}
    # The directory is the test's own: libkrb5 reads memory that it has not set, and ends curl, where the file of tickets is a directory.
    nobody = {**realm.environment, "KRB5CCNAME": f"FILE:{os.path.join(realm.directory, 'no-tickets')}"}
    zoe, max_ = realm.tickets("zoe"), realm.tickets("max")

    # Programs.
    status, headers, _ = site.ask("GET", "/api/v1/users")
    check("a response that asks for a login asks for a ticket, too", status == 401 and "Negotiate" in headers.get_all("WWW-Authenticate") and "Bearer realm=\"Tampu\"" in headers.get_all("WWW-Authenticate"))
    check("a path that guests may use asks for nothing", site.ask("GET", "/api/v1/whoami")[1].get("WWW-Authenticate") is None)
    status, head, text, sent = curl(zoe, f"{api}/api/v1/tokens")
    check(f"curl follows with a ticket ({status})", status == 200 and sent is not None)
    proof = re.search(r"^www-authenticate: Negotiate (\S+)$", head, re.M | re.I)
    check("the response proves the hub", proof is not None and len(base64.b64decode(proof.group(1))) > 20)
    status, _, problem = site.ask("GET", "/api/v1/whoami", headers={"Authorization": f"Negotiate {sent}"})
    check(f"a ticket is accepted once ({problem})", status == 401 and problem["type"].endswith("ticket-refused"))
    until("the log has the reason", lambda: any("was refused" in record["message"] and "replay" in record["message"].lower() for record in site.warnings()))
    check("a ticket leaves no trace in the log", sent[:60] not in site.logged())
    check("a first login has made the user", "zoe" in [user["login"] for user in site.ask("GET", "/api/v1/users", headers=owner)[2]])
    ticket = {"Authorization": f"Negotiate {unused_ticket(zoe)}"}
    status, headers, told = site.ask("GET", "/api/v1/whoami/explain", headers=ticket)
    check("a ticket is explained", (status, told["by"], told["method"]) == (200, "ticket", "realm (kerberos)") and headers["WWW-Authenticate"].startswith("Negotiate "))
    check("on a page too it counts once", site.ask("GET", "/elog/Shift/", headers=ticket)[0] == 401)
    ticket = {"Authorization": f"Negotiate {unused_ticket(zoe)}"}
    status, _, problem = site.ask("PUT", "/api/v1/users/zoe/password", {"password": "another one"}, {**ticket, "Origin": "https://evil.example"})
    check(f"a page of another site changes nothing with it ({problem['type']})", status == 403 and problem["type"].endswith("other-site"))
    site.ask("PUT", "/api/v1/books/Shift/access", {"grants": [{"to": "everybody", "may": ["read"]}]}, owner)
    status, _, text = site.ask("GET", "/elog/Shift/", headers={"Authorization": f"Negotiate {unused_ticket(zoe)}"})
    check(f"a page takes a ticket ({status})", status == 200 and "zoe" in text and "type=password" not in text)
    forged = base64.b64encode(b"\x60" + os.urandom(300)).decode()
    for token in (forged, "x", "%", "", sent[:-40], base64.b64encode(b"NTLMSSP\0\1\0\0\0").decode()):
        status, headers, _ = site.ask("GET", "/api/v1/whoami", headers={"Authorization": f"Negotiate {token}"})
        check(f"'{token[:12]}...' is no ticket ({status})", status == 401 and "Negotiate" in headers.get_all("WWW-Authenticate"))
    status, _, text, _ = curl(zoe, f"{api}/api/v1/books/Shift/access", "--request", "PUT", "--json", "{}")
    check(f"a ticket gives no rights of others ({status})", status in (403, 404))

    # Browsers.
    page = site.ask("GET", "/elog/?cmd=Login")[2]
    check("the form to log in has a link", re.search(r'href="/login/kerberos/realm\?to=[^"]*">Log in with the lab&#39;s ticket<|href="/login/kerberos/realm\?to=[^"]*">Log in with the lab\'s ticket<', page))
    status, head, text, _ = curl(nobody, f"{api}/login/kerberos/realm?to=/elog/Shift/")
    check("a browser without a ticket gets a page", status == 401 and "kinit" in text and 'href="/elog/?cmd=Login"' in text)
    status, head, _, _ = curl(zoe, f"{api}/login/kerberos/realm?to=/elog/Shift/")
    cookie = re.search(r"^set-cookie: ([^;]+)", head, re.M | re.I)
    check("a ticket begins a session", status == 303 and re.search(r"^location: /elog/Shift/$", head, re.M | re.I) and cookie)
    session = {"Cookie": cookie.group(1)}
    told = site.explained(session)
    check("the method is explained", (told["by"], told["method"], told["subject"]) == ("session", "realm (kerberos)", f"zoe@{REALM}"))
    check("nobody is led to another site", re.search(r"^location: /elog/$", curl(zoe, f"{api}/login/kerberos/realm?to=https://evil.example/")[1], re.M | re.I))
    check("another method is none", curl(zoe, f"{api}/login/kerberos/none")[0] == 404)

    # Persons.
    check("a person with the login of a local user is not that user", curl(realm.tickets("local"), f"{api}/api/v1/tokens")[0] == 403)
    for principal in ("zoe/admin", "DAQ1$"):
        check(f"{principal} is no person", curl(realm.tickets(principal), f"{api}/api/v1/tokens")[0] == 401)
    site.ask("PATCH", "/api/v1/users/zoe", {"inactive": True}, owner)
    check("a disabled user stays out", curl(zoe, f"{api}/api/v1/tokens")[0] == 401 and site.explained(session)["by"] == "guest")
    check("others do not", curl(max_, f"{api}/api/v1/tokens")[0] == 200)
    check("local users log in", site.log_in("local", PASSWORD)[0] == 200)
    realm.kdc.kill()
    realm.kdc.wait()
    check("tickets are good without the KDC", curl(max_, f"{api}/api/v1/tokens")[0] == 200)

    # From another address, plain HTTP is none.
    far = LoginSite("login-kerberos-far")
    try:
        far.environment["KRB5_CONFIG"] = realm.environment["KRB5_CONFIG"]
        shutil.copytree(os.path.join(site.directory, "keys"), os.path.join(far.directory, "keys"))
        far.begin('proxies = ["127.0.0.1"]\n' + table(realm).replace(site.directory, far.directory))
        there = {"X-Forwarded-For": "192.0.2.7"}
        status, headers, _ = far.ask("GET", "/api/v1/users", headers=there)
        check("plain HTTP from elsewhere asks for no ticket", status == 401 and headers.get_all("WWW-Authenticate") == ['Bearer realm="Tampu"'])
        sent = unused_ticket(max_)
        status, _, problem = far.ask("GET", "/api/v1/whoami", headers={**there, "Authorization": f"Negotiate {sent}"})
        check(f"nor accepts one ({problem})", status == 403 and problem["type"].endswith("ticket-in-clear"))
        check("nor does the page", far.ask("GET", "/login/kerberos/realm", headers=there)[0] == 403)
        check("the proxy's https is https", far.ask("GET", "/api/v1/users", headers={**there, "X-Forwarded-Proto": "https"})[1].get_all("WWW-Authenticate")[-1] == "Negotiate")
    finally:
        far.close()


main()
