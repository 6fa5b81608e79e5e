#!/usr/bin/env python3
"""A real directory (Debian's slapd) as a login method: search and bind, StartTLS, groups in groups, and the directory's absence."""

import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import check, until
from logins import PASSWORD, LoginSite, free_port, write

ENTRIES = """
dn: dc=lab
objectClass: domain
dc: lab

dn: ou=people,dc=lab
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=lab
objectClass: organizationalUnit
ou: groups

dn: cn=tampu,dc=lab
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: tampu
userPassword: of the service

dn: uid=zoe,ou=people,dc=lab
objectClass: inetOrgPerson
uid: zoe
cn: Zoë Müller
sn: Müller
mail: zoe@lab.example
userPassword: of zoe

dn: uid=max,ou=people,dc=lab
objectClass: inetOrgPerson
uid: max
cn: Max Quartz
sn: Quartz
userPassword: of max

dn: uid=local,ou=people,dc=lab
objectClass: inetOrgPerson
uid: local
cn: Another Person
sn: Person
userPassword: of another

dn: uid=idle,ou=people,dc=lab
objectClass: inetOrgPerson
objectClass: errAuxObject
uid: idle
cn: Inactivated Person
sn: Person
userPassword: of idle
errCode: 53
errOp: bind

dn: uid=many,ou=people,dc=lab
objectClass: inetOrgPerson
objectClass: errAuxObject
uid: many
cn: Too Many Wrong Passwords
sn: Person
userPassword: of many
errCode: 19
errOp: bind

dn: cn=policy,dc=lab
objectClass: organizationalRole
objectClass: pwdPolicy
cn: policy
pwdAttribute: userPassword
pwdLockout: TRUE
pwdMaxFailure: 2

dn: uid=guessed,ou=people,dc=lab
objectClass: inetOrgPerson
uid: guessed
cn: Guessed Person
sn: Person
userPassword: of guessed
pwdPolicySubentry: cn=policy,dc=lab

dn: uid=first,ou=people,dc=lab
objectClass: inetOrgPerson
uid: first
uid: double
cn: First Person
sn: Person
userPassword: of double

dn: uid=second,ou=people,dc=lab
objectClass: inetOrgPerson
uid: second
uid: double
cn: Second Person
sn: Person
userPassword: of double

dn: cn=operators,ou=groups,dc=lab
objectClass: groupOfNames
cn: operators
member: uid=zoe,ou=people,dc=lab
member: cn=crew,ou=groups,dc=lab

dn: cn=crew,ou=groups,dc=lab
objectClass: groupOfNames
cn: crew
member: cn=operators,ou=groups,dc=lab

dn: cn=shift leaders,ou=groups,dc=lab
objectClass: groupOfNames
cn: shift leaders
member: cn=crew,ou=groups,dc=lab

dn: cn=guards,ou=groups,dc=lab
objectClass: posixGroup
cn: guards
gidNumber: 7
memberUid: max
"""

GROUPS = """
[[book.login.group]]
from = "shift leaders"
group = "ops"
[[book.login.group]]
from = "cn=guards,ou=groups,dc=lab"
book = "Shift"
may = ["read"]
"""


class Slapd:
    """A slapd of its own, with certificates of its own."""

    def __init__(self, directory):
        self.directory, self.process = directory, None
        self.port, self.tls_port = free_port(), free_port()
        data = os.path.join(directory, "slapd")
        os.makedirs(data)
        run = lambda *command: subprocess.run(command, check=True, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        for name in ("ca", "other"):
            run("openssl", "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}", "-days", "2",
                "-addext", "basicConstraints=critical,CA:TRUE")
        run("openssl", "req", *key, "-keyout", "slapd.key", "-out", "slapd.csr", "-subj", "/CN=localhost")
        write(os.path.join(directory, "san"), "subjectAltName=DNS:localhost\n")
        run("openssl", "x509", "-req", "-in", "slapd.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "san", "-out", "slapd.pem")
        self.config = write(os.path.join(directory, "slapd.conf"), "".join(f"{line}\n" for line in [
            *(f"include /etc/ldap/schema/{name}.schema" for name in ("core", "cosine", "nis", "inetorgperson")),
            "modulepath /usr/lib/ldap", "moduleload back_mdb", "moduleload retcode", "moduleload ppolicy",
            f"pidfile {directory}/slapd.pid",
            f"TLSCACertificateFile {directory}/ca.pem", f"TLSCertificateFile {directory}/slapd.pem", f"TLSCertificateKeyFile {directory}/slapd.key",
            # Plain connections may do nothing but StartTLS.
            "security simple_bind=64", "disallow bind_anon",
            "database mdb", "suffix dc=lab", "rootdn cn=root,dc=lab", f"directory {data}",
            "access to attrs=userPassword by anonymous auth by * none",
            # The overlay with codes of its own looks at entries as nobody.
            "access to attrs=entry,objectClass,errCode,errOp,errText,errSleepTime,errMatchedDN by * read",
            "access to dn.subtree=ou=people,dc=lab by dn.exact=cn=tampu,dc=lab read by self read by users search by anonymous auth by * none",
            "access to * by dn.exact=cn=tampu,dc=lab read by anonymous auth by * none",
            # Entries say with which code a bind ends; a policy locks accounts.
            "overlay retcode", "retcode-parent ou=codes,dc=lab", "retcode-indir", "overlay ppolicy",
        ]))
        entries = write(os.path.join(directory, "entries.ldif"), ENTRIES)
        subprocess.run(["/usr/sbin/slapadd", "-f", self.config, "-l", entries], check=True)

    def start(self):
        urls = f"ldap://127.0.0.1:{self.port}/ ldaps://127.0.0.1:{self.tls_port}/"
        self.process = subprocess.Popen(["/usr/sbin/slapd", "-d", "0", "-f", self.config, "-h", urls])

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.tls_port)) == 0

        until("slapd answers", answers)

    def stop(self):
        self.process.kill()
        self.process.wait()


def main():
    site = LoginSite("login-ldap")
    slapd = Slapd(site.directory)
    silent = socket.create_server(("127.0.0.1", 0))
    try:
        slapd.start()
        site.processes.append(slapd.process)
        tested(site, slapd, silent)
    finally:
        slapd.stop()
        site.close()


def tested(site, slapd, silent):
    secret = write(os.path.join(site.directory, "ldap.password"), "of the service\n")
    service = f'bind_dn = "cn=tampu,dc=lab"\npassword_file = "{secret}"\nbase = "ou=people,dc=lab"\ngroup_base = "ou=groups,dc=lab"\n'
    # At first a directory with a certificate of somebody else, and one that accepts connections and says nothing.
    distrusted = f'[[book.login]]\nname = "distrusted"\n[book.login.ldap]\nurl = "ldaps://localhost:{slapd.tls_port}"\nca_file = "{site.directory}/other.pem"\n{service}'
    lab = f'[[book.login]]\nname = "lab"\nregister = true\n[book.login.ldap]\nurl = "ldaps://localhost:{slapd.tls_port}"\nca_file = "{site.directory}/ca.pem"\n{service}{GROUPS}'
    own = (
        f'[[book.login]]\nname = "own"\n[book.login.ldap]\nurl = "ldap://localhost:{slapd.port}"\nstart_tls = true\nca_file = "{site.directory}/ca.pem"\n'
        f'bind_as = "uid={{login}},ou=people,dc=lab"\nbase = "ou=people,dc=lab"\n'
    )
    quiet = f'[[book.login]]\nname = "quiet"\n[book.login.ldap]\nurl = "ldap://127.0.0.1:{silent.getsockname()[1]}"\ntimeout_s = 1\n{service}'
    site.begin(distrusted + lab + own + quiet)

    status, zoe, me = site.log_in("Zoe", "of zoe")
    check("a directory whose certificate is not trusted is passed over, and the next one proves the person", status == 200)
    check("the login is the directory's, in its own form", (me["login"], me["full_name"], me["email"]) == ("zoe", "Zoë Müller", "zoe@lab.example"))
    check("a group of a group of a group gives rights, and a circle of groups ends", me["rights"] == {"Shift": ["read", "write"]})
    told = site.explained(zoe)
    check("the rights are explained", told["method"] == "lab (ldap)" and told["groups"] == [{"group": "ops", "from": "cn=shift leaders,ou=groups,dc=lab"}])
    check("the identity is the directory's own", len(told["subject"]) == 36)
    check("groups that name logins count too", site.log_in("max", "of max")[2]["rights"] == {"Shift": ["read"]})
    check("a request with a password is answered", site.basic("zoe", "of zoe")[0] == 200)

    for login, password in [("zoe", "wrong"), ("*", "of zoe"), ("zoe)(uid=*", "of zoe"), ("nobody", "x"), ("zoe,ou=people", "of zoe")]:
        status = site.log_in(login, password)[0]
        check(f"'{login}' with '{password}' is not admitted ({status})", status in (401, 503))
    check("an empty password is none", site.log_in("zoe", "")[0] == 401)
    check("a person with the login of a local user is not that user", site.log_in("local", "of another")[0] == 401)
    check("nor in another spelling", (lambda said: said[0] == 403 and said[2]["type"].endswith("not-bound"))(site.log_in("Local", "of another")))

    owner = {"Authorization": f"Bearer {site.token}"}
    # Directories have codes of their own for accounts in an odd state. Each try has another password, which nothing remembers.
    for login, times in [("idle", 2), ("many", 2), ("guessed", 3), ("double", 2)]:
        site.ask("POST", "/api/v1/users", {"login": login}, owner)
        check(f"'{login}' is bound to the directory", site.ask("PUT", f"/api/v1/users/{login}/method", {"method": "lab"}, owner)[0] == 200)
        told = [site.log_in(login, f"guess {at} of {login}")[0] for at in range(times)] + [site.log_in(login, f"of {login}")[0]]
        # A password that was right within the last minutes is remembered, until the user changes.
        site.ask("PATCH", "/api/v1/users/max", {"full_name": login}, owner)
        check(f"an account in an odd state, '{login}', is not admitted: {told}", set(told) == {401})
        check("and others are, at once", site.log_in("max", "of max")[0] == 200)
    until("the log has the reasons", lambda: any("the login method 'lab' refuses '" in record["message"] for record in site.warnings()), 30)

    bind = lambda method: site.ask("PUT", "/api/v1/users/max/method", {"method": method}, owner)[0]
    check("an administrator binds a user to another method", bind("own") == 200)
    status, headers, _ = site.log_in("max", "of max")
    check("StartTLS, and a bind by a name made of the login", status == 200 and site.explained(headers)["method"] == "own (ldap)")
    check("and back again", bind("quiet") == 200)
    begun = time.monotonic()
    logins = [threading.Thread(target=site.log_in, args=("max", "of max")) for _ in range(3)]
    for login in logins:
        login.start()
    check("a local user logs in while a directory is silent", site.log_in("local", PASSWORD)[0] == 200)
    for login in logins:
        login.join()
    status, _, problem = site.log_in("max", "of max")
    check(f"a silent directory is no more than a clear answer ({problem['detail']})", status == 503 and "'quiet'" in problem["detail"])
    check(f"within seconds ({time.monotonic() - begun:.1f} s)", time.monotonic() - begun < 15)

    slapd.stop()
    # A password that was right within the last minutes is remembered for requests that carry it.
    site.ask("PATCH", "/api/v1/users/max", {"full_name": "Max"}, owner)
    status, _, problem = site.log_in("nobody", "x")
    check("without the directory its users are told so", status == 503 and problem["type"].endswith("no-answer"))
    check("local users log in", site.log_in("local", PASSWORD)[0] == 200)
    check("open sessions go on", site.ask("GET", "/api/v1/whoami", headers=zoe)[2]["login"] == "zoe")
    # A record is in the archive a moment after it was logged.
    until("the log names the directory and the reason", lambda: any(
        "the directory of the login method 'lab' does not respond" in record["message"] for record in site.warnings()), 30)
    slapd.start()
    site.processes.append(slapd.process)
    until("the directory is asked again", lambda: site.log_in("zoe", "of zoe ")[0] == 401, 30)
    site.ask("PATCH", "/api/v1/users/zoe", {"inactive": True}, owner)
    check("a disabled user stays out", site.log_in("zoe", "of zoe")[0] == 401)
    check("and the session has ended", site.ask("GET", "/api/v1/whoami", headers=zoe)[2]["by"] == "guest")


main()
