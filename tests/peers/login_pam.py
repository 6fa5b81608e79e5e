#!/usr/bin/env python3
"""PAM as a login method, with Linux-PAM's own modules: right and wrong passwords, accounts that are locked or have expired, groups of the system.

The users, their passwords and the services are files of this test, mounted over those of the host in a namespace of its own.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import hub
from hub import check, isolated, sh, until
from logins import PASSWORD, LoginSite, with_login_features, write

USERS = """zoe:x:64001:64001:Zoe Miller,room 7:/nonexistent:/usr/sbin/nologin
max:x:64002:64001::/nonexistent:/usr/sbin/nologin
kim:x:64003:64001::/nonexistent:/usr/sbin/nologin
ann:x:64004:64001::/nonexistent:/usr/sbin/nologin
local:x:64005:64001::/nonexistent:/usr/sbin/nologin
"""
GROUPS = "staff-of-lab:x:64001:\noperators:x:64002:zoe,max\n"
RULES = '[[book.login.group]]\nfrom = "operators"\ngroup = "ops"\n'


def hashed(password):
    return subprocess.run(["openssl", "passwd", "-6", password], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def mounted(site):
    """Puts files of this test in the places of the system's."""
    sh("ip link set lo up")
    private = os.path.join(site.directory, "etc")
    os.makedirs(private)

    def over(path, text):
        with open(path, encoding="utf-8") as file:
            made = write(os.path.join(private, os.path.basename(path)), file.read() + text, 0o644)
        sh(f"mount --bind {made} {path}")

    over("/etc/passwd", USERS)
    over("/etc/group", GROUPS)
    # Days since 1970: of the last change of the password, and of the account's end.
    shadow = "".join(f"{line}\n" for line in [
        f"zoe:{hashed('of zoe')}:20000:0:99999:7:::",
        f"max:{hashed('of max')}:20000:0:99999:7::1:",
        f"kim:!{hashed('of kim')}:20000:0:99999:7:::",
        f"ann:{hashed('of ann')}:0:0:99999:7:::",
        f"local:{hashed('of the system')}:20000:0:99999:7:::",
    ])
    # Of the host's own passwords nothing is read.
    sh(f"mount --bind {write(os.path.join(private, 'shadow'), shadow)} /etc/shadow")
    services = os.path.join(private, "pam.d")
    shutil.copytree("/etc/pam.d", services)
    people = write(os.path.join(site.directory, "people"), f"pia:{hashed('of pia')}\nivo:{hashed('of ivo')}\nzoe:{hashed('of another zoe')}\n")
    write(os.path.join(services, "tampu"), "auth required pam_unix.so noreap\naccount required pam_unix.so noreap\n", 0o644)
    write(os.path.join(services, "tampu-file"), f"auth required pam_pwdfile.so pwdfile={people}\naccount required pam_permit.so\n", 0o644)
    write(os.path.join(services, "tampu-here"), f"auth required pam_pwdfile.so pwdfile={people}\naccount required pam_succeed_if.so quiet rhost = 127.0.0.1\n", 0o644)
    write(os.path.join(services, "tampu-broken"), "auth required pam_of_nobody.so\naccount required pam_permit.so\n", 0o644)
    sh(f"mount --bind {services} /etc/pam.d")
    return people


def main():
    hub.TAMPU = with_login_features()
    isolated()
    site = LoginSite("login-pam")
    try:
        tested(site, mounted(site))
    finally:
        site.close()


def tested(site, people):
    method = lambda name, service, more="": f'[[book.login]]\nname = "{name}"\nregister = true\n[book.login.pam]\nservice = "{service}"\n{more}'
    refused = lambda text: site.run("up", "--data", site.data, "--in-process", "--config", write(os.path.join(site.directory, "bad.toml"), f"[book]\n{text}"), check=False)
    done = refused(method("lab", "tampu-nowhere"))
    check("a service without a file is refused at the start", done.returncode != 0 and "/etc/pam.d/tampu-nowhere" in done.stderr)
    done = refused(method("lab", "../passwd"))
    check("so is a name that leads elsewhere", done.returncode != 0 and "service: invalid name" in done.stderr)

    host = '[[book.login]]\nname = "host"\nregister = true\n[book.login.pam]\nread = ["/etc/shadow"]\n' + RULES
    # The answer does not say whether somebody has the login. A method that is absent would change it: it may know the login.
    whole = LoginSite("login-pam-whole")
    whole.begin(host + method("file", "tampu-file", f'read = ["{people}"]\n'))
    check("a person is known", whole.log_in("zoe", "of zoe")[0] == 200)
    (status, _, unknown), (known_status, _, known) = (whole.log_in(login, "wrong") for login in ("nobody-of-this-name", "zoe"))
    whole.close()
    check(f"an unknown login gets the answer to a wrong password ({unknown['detail']})", (status, unknown) == (known_status, known) and status == 401)

    site.begin(host + method("file", "tampu-file", f'read = ["{people}"]\n') + method("here", "tampu-here", f'read = ["{people}"]\n') + '[[book.login]]\nname = "broken"\n[book.login.pam]\nservice = "tampu-broken"\n')
    owner = {"Authorization": f"Bearer {site.token}"}
    status, zoe, me = site.log_in("zoe", "of zoe")
    check(f"PAM proves a person ({status})", status == 200 and (me["login"], me["full_name"]) == ("zoe", "Zoe Miller"))
    told = site.explained(zoe)
    check("the method is explained", (told["method"], told["subject"], told["by"]) == ("host (pam)", "zoe", "session"))
    check("groups of the system mean rights", told["groups"] == [{"group": "ops", "from": "operators"}] and me["rights"] == {"Shift": ["read", "write"]})
    check("all groups of the system are known", set(told["outside_groups"]) == {"operators", "staff-of-lab"})
    check("a request with a password is answered", site.basic("zoe", "of zoe")[0] == 200)
    status, pia, _ = site.log_in("pia", "of pia")
    check(f"a module may know persons that the host does not ({status})", status == 200 and site.explained(pia)["method"] == "file (pam)")
    check("the second method proves nobody whom the first one has bound", site.log_in("zoe", "of another zoe")[0] == 401)

    # Modules see the client's address; the second method would admit ivo from everywhere.
    check("ivo is bound", site.ask("POST", "/api/v1/users", {"login": "ivo"}, owner)[0] == 201 and site.ask("PUT", "/api/v1/users/ivo/method", {"method": "here"}, owner)[0] == 200)
    def from_address(address):
        connection = http.client.HTTPConnection(site.url.split("//")[1], source_address=(address, 0), timeout=60)
        connection.request("POST", "/api/v1/login", json.dumps({"login": "ivo", "password": "of ivo"}), {"Content-Type": "application/json"})
        return connection.getresponse().status
    statuses = [from_address(address) for address in ("127.0.0.1", "127.0.0.2", "127.0.0.1")]
    check(f"a rule of PAM about the client's address holds ({statuses})", statuses == [200, 401, 200])

    # Each of them has the right password.
    site.ask("POST", "/api/v1/users", {"login": "lea"}, owner)
    for login, reason in [("max", "expired"), ("kim", None), ("ann", "new one required")]:
        site.ask("POST", "/api/v1/users", {"login": login}, owner)
        check(f"{login} is bound", site.ask("PUT", f"/api/v1/users/{login}/method", {"method": "host"}, owner)[0] == 200)
        right, wrong = (site.log_in(login, password) for password in (f"of {login}", "wrong"))
        check(f"{login} is not admitted ({right[0]})", right[0] == 401)
        check(f"nor told more than after a wrong password", (right[0], right[2]["detail"]) == (wrong[0], wrong[2]["detail"]))
        if reason:
            until(f"the log has the reason for {login}", lambda: f"refuses '{login}'" in site.logged() and reason in site.logged().lower())
    check("the log has no password", "of max" not in site.logged() and "of zoe" not in site.logged())
    for login in ("root", "zoe ", "zoe\n", "-x", "", "../zoe"):
        status = site.log_in(login, "x")[0]
        check(f"{login!r} is nobody ({status})", status in (401, 422, 503))
    check("a person with the login of a local user is not that user", site.log_in("local", "of the system")[0] == 401)

    bound = site.ask("PUT", "/api/v1/users/lea/method", {"method": "broken"}, owner)[0]
    status, _, problem = site.log_in("lea", "of lea")
    check(f"a module that is missing is an absent method ({problem['detail']})", bound == 200 and status == 503 and "'broken'" in problem["detail"])
    check("local users log in", site.log_in("local", PASSWORD)[0] == 200)
    until("the log names the method", lambda: "the login method 'broken' could not check" in site.logged())
    site.ask("PATCH", "/api/v1/users/zoe", {"inactive": True}, owner)
    check("a disabled user stays out", site.log_in("zoe", "of zoe")[0] == 401 and site.ask("GET", "/api/v1/whoami", headers=zoe)[2]["by"] == "guest")


main()
