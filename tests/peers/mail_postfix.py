#!/usr/bin/env python3
"""A real Postfix as the site's mail server: mails of the logbook by STARTTLS into mailboxes, and mails of people by LMTP into the logbook.

Postfix runs with a configuration, a queue and a port of its own (`postfix -c DIR`). Nothing of the system's configuration is read
or changed. A person's reply to a mail of the logbook is a reply there. Refused mail comes back to its sender with the reason. A
logbook that is away loses no mail and posts none twice.
"""

import email
import email.policy
import glob
import grp
import json
import os
import pwd
import shutil
import smtplib
import socket
import ssl
import subprocess
import sys
import tempfile
from email.message import EmailMessage

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from hub import Place, check, until

PEOPLE = ["zoe", "kim", "stranger"]

MAIN = """compatibility_level = 3.6
queue_directory = {dir}/queue
data_directory = {dir}/state
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = {dir}/postfix.log
maillog_file_prefixes = {dir}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mail.site.test
mydestination =
alias_maps =
local_recipient_maps =
mynetworks = 127.0.0.0/8
smtpd_peername_lookup = no
disable_dns_lookups = yes
notify_classes =
biff = no
smtpd_relay_restrictions = reject_unauth_destination
smtpd_tls_security_level = encrypt
smtpd_tls_cert_file = {dir}/mail.crt
smtpd_tls_key_file = {dir}/mail.key
smtpd_tls_received_header = yes
virtual_mailbox_domains = people.test
virtual_mailbox_base = {dir}/boxes
virtual_mailbox_maps = inline:{{ {boxes} }}
virtual_minimum_uid = 1
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
relay_domains = log.test
relay_recipient_maps =
transport_maps = inline:{{ {{ shift@log.test = lmtp:unix:{dir}/lmtp/lmtp.sock }} }}
queue_run_delay = 1s
minimal_backoff_time = 1s
maximal_backoff_time = 2s
transport_retry_time = 1s
"""

# Of Debian's master.cf the services that these mails need, none of them in a chroot.
MASTER = """127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 1 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
virtual unix - n n - - virtual
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Postfix:
    """Postfix in a directory of its own."""

    def __init__(self):
        if os.geteuid() != 0:
            sys.exit("FAILED: Postfix starts as root only")
        self.dir = tempfile.mkdtemp(prefix="tampu-postfix-")
        # Postfix's users walk through it.
        os.chmod(self.dir, 0o755)
        self.port = free_port()
        mta, nobody = pwd.getpwnam("postfix"), pwd.getpwnam("nobody")
        for name, owner, mode in [("queue", 0, 0o755), ("state", mta.pw_uid, 0o700), ("boxes", nobody.pw_uid, 0o700), ("lmtp", 0, 0o755)]:
            os.mkdir(self.path(name))
            os.chown(self.path(name), owner, 0)
            os.chmod(self.path(name), mode)
        # As docs/operate/mail.md says: what is made there belongs to the group of the mail server.
        os.chown(self.path("lmtp"), 0, grp.getgrnam("postfix").gr_gid)
        os.chmod(self.path("lmtp"), 0o2750)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", self.path("mail.key"), "-out",
             self.path("mail.crt"), "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext",
             "basicConstraints=critical,CA:FALSE"], check=True, capture_output=True)
        boxes = ", ".join(f"{{ {name}@people.test = {name}/ }}" for name in PEOPLE)
        self.write("main.cf", MAIN.format(dir=self.dir, boxes=boxes, uid=nobody.pw_uid, gid=nobody.pw_gid))
        self.write("master.cf", MASTER.format(port=self.port))
        self.command("start")

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def command(self, what, check_it=True):
        done = subprocess.run(["postfix", "-c", self.dir, what], text=True, capture_output=True, check=False, timeout=60)
        if check_it and done.returncode != 0:
            sys.exit(f"FAILED: postfix {what}: {done.stdout}{done.stderr}{self.log()}")

    def log(self):
        try:
            with open(self.path("postfix.log"), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def box(self, name):
        """The mails in a mailbox, oldest first."""
        files = sorted(glob.glob(self.path(f"boxes/{name}/new/*")), key=os.path.getmtime)
        return [email.message_from_bytes(open(file, "rb").read(), policy=email.policy.default) for file in files]

    def waiting(self):
        """The number of mails in the queue."""
        folders = ["incoming", "active", "deferred", "maildrop"]
        return sum(len(names) for folder in folders for _, _, names in os.walk(self.path(f"queue/{folder}")))

    def send(self, sender, to, message):
        """Gives it a mail, as a person's program does."""
        context = ssl.create_default_context(cafile=self.path("mail.crt"))
        with smtplib.SMTP("localhost", self.port, timeout=60) as client:
            client.starttls(context=context)
            client.send_message(message, from_addr=sender, to_addrs=[to])

    def close(self):
        self.command("abort", check_it=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def mail(sender, subject, text, **headers):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = f"{sender}@people.test", "shift@log.test", subject
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message


def main():
    place, mta = Place("mail-postfix"), None
    try:
        mta = Postfix()
        tested(place, mta)
    finally:
        place.close()
        if mta:
            mta.close()


def tested(place, mta):
    config = os.path.join(place.directory, "tampu.toml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"""[book]
listen = "127.0.0.1:0"
min_free_mb = 0
[collector]
min_free_gb = 0
[mail]
host = "localhost"
port = {mta.port}
certificates = "{mta.path('mail.crt')}"
from = "Logbook <logbook@log.test>"
retry_s = 1
[mail.in]
listen = "{mta.path('lmtp/lmtp.sock')}"
books = {{ shift = "Shift" }}
domain = "log.test"
""")
    # The role of the logbook is a process of its own, in its sandbox.
    hub = place.up("--config", config, roles=True)
    place.run("book", "make", "Shift", "-a", "Subject", "-a", "Author")
    for login in ["zoe", "kim"]:
        place.run("book", "users", "add", login, "--email", f"{login}@people.test", input="correct horse\n")

    def entry(number):
        return json.loads(place.run("book", "show", f"Shift/{number}", "--json").stdout)

    def entries():
        return int(place.run("book", "search", "", "--book", "Shift", "--count").stdout.split()[0])

    print("mails of the logbook")
    said = place.run("mail", "test", "zoe@people.test").stdout
    check("Postfix takes a mail by STARTTLS", "queued as" in said)
    until("it is in the mailbox", lambda: mta.box("zoe"))
    got = mta.box("zoe")[0]
    check("encrypted on its way", "using TLSv1.3" in got["Received"] and got["From"] == "Logbook <logbook@log.test>")
    for address, words in [("nobody@people.test", "unknown"), ("zoe@elsewhere.test", "Relay access denied")]:
        refused = place.run("mail", "test", address, check=False)
        check(f"{address}: Postfix's reason is printed ({words})", refused.returncode == 1 and words.lower() in refused.stderr.lower())

    print("mails of people")
    place.run("book", "notify", "add", "--login", "kim", "--book", "Shift")
    place.run("book", "notify", "add", "--login", "zoe", "--about", "replies")
    message = mail("zoe", "HV löst aus", "Kanal 7 löste aus.", Message_ID="<one@people.test>")
    message.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="plot.png")
    mta.send("zoe@people.test", "shift@log.test", message)
    until("the mail is an entry", lambda: entries() == 1)
    first = entry(1)
    check("by its sender, with its file", (first["by"], first["text"], first["attachments"][0]["size"]) == ("zoe", "Kanal 7 löste aus.", 4))
    until("kim hears of it", lambda: mta.box("kim"))
    told = mta.box("kim")[0]
    check("by a mail about the entry", "HV löst aus" in told["Subject"] and "Kanal 7 löste aus." in told.get_content())
    check("which asks for replies to the address of the logbook", told["Reply-To"] == "shift@log.test")
    reply = mail("kim", f"Re: {told['Subject']}", "Ich sehe nach.", In_Reply_To=told["Message-ID"], References=told["Message-ID"])
    mta.send("kim@people.test", "shift@log.test", reply)
    until("the answer is an entry", lambda: entries() == 2)
    check("it is a reply to the entry", (entry(2)["parent"], entry(2)["by"]) == (1, "kim"))
    until("zoe hears of the reply", lambda: len(mta.box("zoe")) == 2)
    check("in the same thread of mails", told["Message-ID"] in mta.box("zoe")[1]["References"])
    mta.send("zoe@people.test", "shift@log.test", message)
    until("the same mail again is delivered", lambda: "it is entry 1 already" in mta.log())
    check("and is no second entry", entries() == 2)

    print("refused mails")
    mta.send("stranger@people.test", "shift@log.test", mail("stranger", "hello", "let me in"))
    until("the mail of a stranger comes back", lambda: mta.box("stranger"))
    back = mta.box("stranger")[0].as_string()
    check("with the logbook's reason", "is not the address of a user of the logbook" in back and entries() == 2)
    mta.send("kim@people.test", "shift@log.test", mail("kim", "Away", "I am on leave.", Auto_Submitted="auto-replied"))
    until("so does one that a program sent", lambda: any("a program sent by itself" in one.as_string() for one in mta.box("kim")))
    mta.send("", "shift@log.test", mail("kim", "Undelivered", "a report"))
    until("a report about a mail ends there", lambda: "a report about another mail is no entry" in mta.log())
    until("nothing goes round", lambda: mta.waiting() == 0)
    check("and none of them is an entry", entries() == 2)

    print("a logbook that is away")
    hub.kill()
    hub.wait()
    until("the logbook is away", lambda: not answers(mta.path("lmtp/lmtp.sock")))
    mta.send("zoe@people.test", "shift@log.test", mail("zoe", "Night", "all quiet", Message_ID="<two@people.test>"))
    until("Postfix keeps the mail", lambda: "status=deferred" in mta.log())
    place.up("--config", config, roles=True)
    until("it is an entry once the logbook is back", lambda: entries() == 3, seconds=120)
    until("the queue is empty", lambda: mta.waiting() == 0)
    check("once", entries() == 3 and entry(3)["text"] == "all quiet")
    check("the mailbox of kim has it", until("the mail", lambda: [one for one in mta.box("kim") if "Night" in one["Subject"]]))
    check("Postfix had nothing to complain about", "fatal" not in mta.log() and "panic" not in mta.log())


def answers(path):
    """Returns true if somebody serves the socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


if __name__ == "__main__":
    main()
