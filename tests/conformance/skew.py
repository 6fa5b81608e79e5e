"""Other versions of the gateway's protocol: old and new clients at this hub, and each language's client at old and new hubs."""

import json
import pathlib
import socket
import struct
import subprocess
import threading

from hub import Place, check

import drivers

HEAD = 24
HELLO, WELCOME, BYE = 1, 2, 4
# Lists of versions that a client may offer, and whether this hub has one of them.
OFFERED = [([0], False), ([2], False), ([], False), ([2, 3], False), ([0, 1, 2], True), ([1], True)]
# Answers of other hubs: the kind of the frame, its body, and the version of the hub in them.
ANSWERS = [
    (BYE, {"code": "version", "error": "this hub of release 0.0.9 speaks version 0"}, "version 0"),
    (BYE, {"code": "version", "error": "this hub of release 7.0.0 speaks version 2"}, "version 2"),
    (WELCOME, {"version": 2, "session": "5" * 32, "resumed": False, "received": "0", "beat_ms": 4000}, "version 2"),
]


def frame(kind, body):
    """A frame with a JSON object."""
    text = json.dumps(body).encode()
    return struct.pack("<IBBHIIQ", len(text), kind, 0, 0, 0, 0, 0) + text


def read_frame(connection):
    """The kind and the object of the next frame."""
    head = connection.recv(HEAD, socket.MSG_WAITALL)
    length, kind = struct.unpack_from("<IB", head)
    return kind, json.loads(connection.recv(length, socket.MSG_WAITALL))


def gateway_of(place):
    """The path of the gateway's socket in a place."""
    return pathlib.Path(place.directory, "run", place.environment["TAMPU_DOMAIN"], "gateway.sock")


def clients(place):
    """Clients of other versions at this hub."""
    wrong = []
    for versions, fits in OFFERED:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(drivers.PATIENCE)
            connection.connect(str(gateway_of(place)))
            connection.sendall(frame(HELLO, {"versions": versions, "client": "skew 1", "source": "conf/skew"}))
            kind, body = read_frame(connection)
        if fits:
            good = (kind, body.get("version")) == (WELCOME, 1)
        else:
            said = body.get("error", "")
            offered = ", ".join(map(str, versions)) or "none"
            good = (kind, body.get("code")) == (BYE, "version") and "speaks version 1 " in said and said.endswith(f"offered {offered}")
        if not good:
            wrong.append(f"a client that offers {versions} gets {kind}, {body}")
    for line in wrong:
        print(f"    {line}")
    check("a client with a common version is welcome, and another one is told the versions of both", not wrong)


def hubs(commands):
    """The client of each language at hubs of other versions: a short program fails, and names both versions and the way out."""
    languages = [language for language in commands if drivers.LANGUAGES[language]["gateway"]]
    wrong = []
    for kind, body, hub in ANSWERS:
        place = Place("skew")
        try:
            path = gateway_of(place)
            path.parent.mkdir(parents=True, mode=0o700)
            server = socket.socket(socket.AF_UNIX)
            server.bind(str(path))
            server.listen()
            threading.Thread(target=serve, args=(server, frame(kind, body)), daemon=True).start()
            environment = {**place.environment, "TAMPU_GATEWAY": str(path)}
            for language in languages:
                arguments = [*commands[language], f"conf/{language}"]
                done = subprocess.run(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, timeout=drivers.PATIENCE, check=False)  # fmt: skip
                missing = [word for word in (hub, "speaks 1:", "update the hub") if word not in done.stderr]
                if done.returncode == 0 or missing or '"ready"' in done.stdout:
                    wrong.append(f"{language} at a hub that answers {body}: exit code {done.returncode}, without {missing}: {done.stderr}")
            server.close()
        finally:
            place.close()
    for line in wrong:
        print(f"    {line}")
    check(f"a client in {' and in '.join(languages)} at a hub of another version ends, and names both versions and the way out", not wrong)


def serve(server, answer):
    """Answers each client's first frame with this one."""
    kept = []
    while True:
        try:
            connection = server.accept()[0]
            kept.append(connection)
            read_frame(connection)
            connection.sendall(answer)
        except (OSError, struct.error):
            # The server is closed, or a client has gone.
            if server.fileno() < 0:
                return


def features(place):
    """A client hears of the features that both sides have; one without them, as of an earlier release, goes on working."""
    wrong = []
    for offered, wanted in [([], []), (["serve"], ["serve"]), (["later", "serve"], ["serve"]), (None, [])]:
        hello = {"versions": [1], "client": "skew 1", "source": "conf/skew"}
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(drivers.PATIENCE)
            connection.connect(str(gateway_of(place)))
            connection.sendall(frame(HELLO, hello if offered is None else {**hello, "features": offered}))
            kind, body = read_frame(connection)
        if (kind, body.get("features")) != (WELCOME, wanted):
            wrong.append(f"a client with the features {offered} gets {kind}, {body}")
    for line in wrong:
        print(f"    {line}")
    check("a client is told which of its features the hub has", not wrong)


def all_of(kit):
    """All of the above."""
    clients(kit.place)
    features(kit.place)
    hubs(kit.commands)
