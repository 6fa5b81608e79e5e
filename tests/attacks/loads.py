"""Loads that attackers put on a hub. Each is a function of a site, an event that ends it, and a generator of random numbers.

The tests of this directory run one of them at a time, `latency.py` measures under each, and `soak.py` runs all of them at once.
A load takes whatever answer it gets; the tests look at other clients, at the memory and at what is kept.
"""

import base64
import contextlib
import json
import os
import socket
import threading
import zlib

BODY = "Content-Type: application/json\r\n"


def address(chance):
    """Returns one of many addresses of loopback for an attacker."""
    return f"127.0.{chance.randrange(1, 4)}.{chance.randrange(1, 255)}"


def many(ended, number, act):
    """Repeats an act in a number of threads until the load ends; returns when all have ended."""
    def run(at):
        while not ended.is_set():
            try:
                act(at)
            except (OSError, ValueError):
                ended.wait(0.05)
            except Exception as error:  # http.client has errors of its own for what a hub cuts off
                if "http.client" not in type(error).__module__:
                    raise
                ended.wait(0.05)

    threads = [threading.Thread(target=run, args=(at,), daemon=True) for at in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def connect(site, source, timeout=30):
    """Opens a plain connection to the logbook from an address."""
    return socket.create_connection(("127.0.0.1", site.port), timeout=timeout, source_address=(source, 0))


def attachment_misses(site, ended, _):
    """Guests ask for an attachment that no entry has, by the kind of name that needed a search."""
    many(ended, 16, lambda at: site.ask("/elog/B/080910_002050_-", source=f"127.0.1.{at % 4 + 1}"))


def trickled_uploads(site, ended, _):
    """Bodies arrive in pieces, slowly, from callers who may write nothing, from several addresses."""
    def act(at):
        with connect(site, f"127.0.1.{at % 4 + 1}") as stream:
            stream.sendall(b"POST /api/v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\n" + BODY.encode() + b"Transfer-Encoding: chunked\r\n\r\n")
            stream.settimeout(0.2)
            while not ended.is_set():
                stream.sendall(b"1\r\nx\r\n")
                with contextlib.suppress(TimeoutError):
                    if not stream.recv(65536):
                        return
                    return

    many(ended, 16, act)


def idle_connections(site, ended, _):
    """One address opens more connections than the hub has, and leaves them idle; a second trickles heads."""
    held = []

    def act(at):
        if len(held) > 560:
            with contextlib.suppress(OSError):
                held.pop(0).close()
        stream = connect(site, "127.0.1.1" if at else "127.0.1.2")
        if at == 0:
            stream.sendall(b"GET /api/v1/whoami HTTP/1.1\r\nHo")
        held.append(stream)
        ended.wait(0.002)

    try:
        many(ended, 2, act)
    finally:
        for stream in held:
            stream.close()


def endless_counts(site, ended, _):
    """Guests count matches of an expression that the index does not help with."""
    many(ended, 8, lambda at: site.ask("/search?q=/s.*m.*x.*z.*q/&count=100000000", source=f"127.0.1.{at % 2 + 1}"))


def wrong_passwords(site, ended, chance):
    """Many addresses try passwords, for logins that exist and that do not."""
    def act(at):
        login = "zoe" if chance.random() < 0.3 else f"u{chance.randrange(1000)}"
        secret = base64.b64encode(f"{login}:bad{chance.randrange(1000)}".encode()).decode()
        site.ask("/whoami", headers={"Authorization": "Basic " + secret}, source=address(chance))

    many(ended, 32, act)


def silent_streams(site, ended, _):
    """Connections to the syslog input that send nothing."""
    held = []
    try:
        while not ended.is_set() and len(held) < 400:
            with contextlib.suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", site.syslog_tcp), timeout=5, source_address=("127.0.1.1", 0)))
        ended.wait()
    finally:
        for stream in held:
            stream.close()


def far_dates(site, ended, chance):
    """Syslog datagrams whose times lie centuries apart."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with contextlib.closing(out):
        while not ended.is_set():
            for _ in range(100):
                day = f"{chance.randrange(1700, 2200)}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
                out.sendto(f"<13>1 {day}T00:00:00Z h{chance.randrange(50)} a - - - x".encode(), ("127.0.0.1", site.syslog))
            ended.wait(0.05)


def markup_bombs():
    """Returns texts that are dear to render, with their encodings."""
    bombs = {
        "markdown": ["[" * 100_000, "`" * 100_000, "*a_" * 50_000, ">" * 50_000, "\n".join(f"[x{n}]: http://a/{n}" for n in range(20_000)),
                     "|" + "a|" * 20_000 + "\n|" + "-|" * 20_000, "&amp;" * 200_000, "![a](b)" * 30_000, "- " * 50_000,
                     "- [ ] x\n" + "[" * 12_000_000],
        "html": ["<b>" * 50_000, "<table>" * 20_000, "<a href='x' " + "title=y " * 50_000 + ">", "&amp;" * 200_000, "°" * 500_000, "<i><b>" * 30_000],
        "elcode": ["[quote]" * 50_000, "[b][i]" * 50_000, "[url=http://a]" * 30_000, "[table]" * 20_000],
    }
    return [(kind, text) for kind, texts in bombs.items() for text in texts]


def render_bombs(site, ended, chance):
    """Entries that are dear to render are shown, one by one and in a list, by readers who leave early."""
    if not getattr(site, "bombs", None):
        site.bombs = [site.post(text, encoding=kind) for kind, text in markup_bombs()]

    def act(at):
        number = chance.choice(site.bombs)
        path = chance.choice([f"/api/v1/books/B/entries/{number}?html=true", f"/elog/B/{number}", "/elog/B/?mode=full&npp=100",
                              "/elog/B/?mode=summary", "/api/v1/search?q=", "/elog/B/elog.rdf"])
        if chance.random() < 0.5:
            with connect(site, f"127.0.1.{at % 2 + 1}") as stream:
                stream.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
                ended.wait(0.1)
        else:
            site.ask(path, source=f"127.0.1.{at % 2 + 1}")

    many(ended, 8, act)


def png(width, height, depth=1, kind=0, extra=b"", data=None):
    """Returns a PNG of one colour, with any size in its head."""
    def chunk(name, body):
        return len(body).to_bytes(4, "big") + name + body + zlib.crc32(name + body).to_bytes(4, "big")

    head = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([depth, kind, 0, 0, 0])
    if data is None:
        channels = {0: 1, 2: 3, 6: 4}[kind]
        row = b"\0" * (1 + (width * depth * channels + 7) // 8)
        squeeze = zlib.compressobj(1)
        data = b"".join(squeeze.compress(row) for _ in range(height)) + squeeze.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def pictures():
    """Returns pictures that are small as files and large as pictures, by name."""
    squeeze = zlib.compressobj(9)
    zeros = b"".join(squeeze.compress(b"\0" * (1 << 20)) for _ in range(256)) + squeeze.flush()
    profile = b"x\0\0" + zeros
    chunk = len(profile).to_bytes(4, "big") + b"iCCP" + profile + zlib.crc32(b"iCCP" + profile).to_bytes(4, "big")
    frame = b"\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x4c\x01\0"
    return {
        "wide.png": png(60_000, 60_000, data=zlib.compress(b"\0" * 1000)),
        "huge.png": png(2**31 - 1, 2**31 - 1, data=zlib.compress(b"\0")),
        "large.png": png(4000, 4000, 8, 2),
        "profile.png": png(16, 16, 8, 2, extra=chunk),
        "frames.gif": b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff" + frame * 100_000 + b"\x3b",
        "wide.gif": b"GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff" + frame + b"\x3b",
        "wide.bmp": b"BM" + (54).to_bytes(4, "little") + b"\0" * 4 + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
        + (2**31 - 1).to_bytes(4, "little") * 2 + b"\x01\0\x18\0" + b"\0" * 24,
        "some.tiff": b"II*\0\x08\0\0\0" + b"\xff" * 64,
        "lossless.webp": b"RIFF\x20\0\0\0WEBPVP8L\x10\0\0\0\x2f\xff\xff\xff\x0f" + b"\0" * 11,
        "half.jpg": b"\xff\xd8\xff\xc2\0\x11\x08\xff\xff\xff\xff\x03\x01\x22\0\x02\x11\x01\x03\x11\x01" + b"\0" * 100,
    }


def attach(site, number, name, body):
    """Attaches bytes to an entry."""
    return site.ask(f"/books/B/entries/{number}/attachments?name={name}", body, token=site.owner,
                    headers={"If-Match": "*", "Content-Type": "application/octet-stream"})


def picture_bombs(site, ended, chance):
    """Previews of pictures that are large once they are unpacked."""
    if not getattr(site, "gallery", None):
        entry = site.post("pictures")
        for name, body in pictures().items():
            attach(site, entry, name, body)
        site.gallery = (entry, len(pictures()))
    entry, number = site.gallery
    many(ended, 6, lambda at: site.ask(
        f"/books/B/entries/{entry}/attachments/{chance.randrange(number)}/preview?size={chance.randrange(16, 400)}",
        source=f"127.0.1.{at % 2 + 1}"))


def odd_requests():
    """Returns requests at the edges of HTTP, with the statuses that are right; None stands for a closed connection."""
    get = b"GET /api/v1/whoami HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    post = b"POST /api/v1/check?q=x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    parts = b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 20_000
    form = b"POST /elog/B/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    return {
        "a head of 1 MiB": (get + b"X: " + b"y" * 1_048_576 + b"\r\n\r\n", {431, None}),
        "10 000 headers": (get + b"X: y\r\n" * 10_000 + b"\r\n", {431, None}),
        "two lengths": (post + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", {400, None}),
        "a length with a sign": (post + b"Content-Length: +3\r\n\r\nabc", {400, None}),
        "a negative length": (post + b"Content-Length: -3\r\n\r\nabc", {400, None}),
        "a length of 2^64": (post + b"Content-Length: 18446744073709551616\r\n\r\nabc", {400, 413, 431, None}),
        "chunks and a length": (post + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", {200, 400, 422, None}),
        "a chunk that is no number": (post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", {400, None}),
        "a chunk that is cut": (post + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab", {400, None}),
        "a chunk of 2^64": (post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc", {400, 413, None}),
        "a body that is cut": (post + b"Content-Length: 100\r\n\r\nabc", {400, None}),
        "no host": (b"GET /api/v1/whoami HTTP/1.1\r\nConnection: close\r\n\r\n", {400}),
        "two hosts": (get + b"Host: 127.0.0.1\r\n\r\n", {400}),
        "a foreign host": (b"GET /api/v1/whoami HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", {421}),
        "an absolute form": (b"GET http://evil.example/api/v1/whoami HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", {400, 421}),
        "a folded header": (get + b"X: a\r\n b\r\n\r\n", {400, None}),
        "a NUL in a header": (get + b"X: a\0b\r\n\r\n", {400, None}),
        "a space before the colon": (get + b"X : a\r\n\r\n", {400, None}),
        "a path with dots": (b"GET /api/v1/books/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", {401, 404}),
        "a path with a NUL": (b"GET /api/v1/books/%00 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", {400, 401, 404}),
        "a path that is no UTF-8": (b"GET /api/v1/books/%c0%ae HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", {400, 401, 404}),
        "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 505, None}),
        "a form of 20 000 parts": (form + b"Content-Length: %d\r\n\r\n" % len(parts) + parts, {400, 413, None}),
        "a part's head of 1 MiB": (form + b"Content-Length: 1048600\r\n\r\n--x\r\nX: " + b"y" * 1_048_591, {400, 413, None}),
        "a range past the end": (b"GET /api/v1/books/B/entries/1/attachments/0 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                 b"Range: bytes=18446744073709551615-\r\n\r\n", {200, 404, 416}),
        "an empty range": (b"GET /api/v1/books/B/entries/1/attachments/0 HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=-0\r\n\r\n",
                           {200, 404, 416}),
        "the old protocol": (b"GET /api/v1/whoami HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", {200, 505}),
    }


def send_raw(site, request, source, patience=1.0):
    """Sends bytes and returns the statuses of the answers; an empty list is a closed connection.

    The writing side is closed only if nothing came for a while, because a client that closes it has left for the hub.
    """
    got = b""
    with connect(site, source, patience) as stream, contextlib.suppress(ConnectionError, BrokenPipeError):
        with contextlib.suppress(ConnectionError, TimeoutError):
            stream.sendall(request)
        try:
            while piece := stream.recv(65536):
                got += piece
        except TimeoutError:
            stream.settimeout(60)
            stream.shutdown(socket.SHUT_WR)
            while piece := stream.recv(65536):
                got += piece
    return [int(line.split()[1]) for line in got.split(b"\r\n") if line.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))]


def http_edges(site, ended, chance):
    """Requests at the edges of HTTP, and random changes of them."""
    requests = [request for request, _ in odd_requests().values()]

    def act(at):
        request = bytearray(chance.choice(requests))
        for _ in range(chance.randrange(4)):
            request[chance.randrange(min(len(request), 400))] = chance.randrange(256)
        send_raw(site, bytes(request), f"127.0.2.{at + 1}", 0.1)

    many(ended, 4, act)


QUERIES = [
    "(" * 5000 + "a" + ")" * 5000, "(" * 5000, " OR ".join(["a"] * 10_000), "/(a*)*b/", "/(?:x{1000}){1000}/", "/" + "a?" * 500 + "a" * 500 + "/",
    "*a*b*c*d*e*f*g*h*", "date:>=9999999-12-31", "date:<0001-01-01", "date:2026-13-45", "id:18446744073709551616", "NOT " * 5000 + "a",
    "\"" * 999, "a" * 65_000, "author:" * 500, "\0", "\u202e", "-" * 1000, "*" * 1000 + "x", "/[/", "a AND", "OR",
]


def queries(site, ended, chance):
    """Queries that are large, deep, dear or wrong, by a guest."""
    from urllib.parse import quote

    def act(at):
        query = quote(chance.choice(QUERIES))[:60_000]
        more = chance.choice(["", "&sort=nope", "&after=forged", "&count=18446744073709551615", "&limit=1000&text=true", "&limit=-1", "&book=none"])
        site.ask(f"/search?q={query}{more}", source=f"127.0.2.{at + 1}")

    many(ended, 4, act)


def wrong_callers(site, ended, chance):
    """Guests, wrong tokens and other people's routes."""
    paths = ["/users", "/groups", "/tokens", "/drafts", "/books/B/access", "/uploads/" + "0" * 64, "/users/zoe/password", "/password"]

    def act(at):
        site.ask(chance.choice(paths), {"x": 1}, chance.choice(["GET", "PUT", "POST", "DELETE"]),
                 token=chance.choice([None, "x" * 43]), source=f"127.0.2.{at + 10}")

    many(ended, 4, act)


def imports(site, ended, chance):
    """ELOG's files with random faults are imported through the hub."""
    directory = os.path.join(site.directory, "elog-load")
    count = 0
    while not ended.is_set():
        count += 1
        folder = os.path.join(directory, str(count), "L")
        os.makedirs(folder)
        body = bytearray(elog_file(chance, range(1, 40)))
        for _ in range(chance.randrange(20)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        with open(os.path.join(folder, "080910a.log"), "wb") as file:
            file.write(body)
        site.run("book", "import-elog", os.path.join(directory, str(count)), "--errors", "1", check=False)
        ended.wait(0.2)


def elog_file(chance, numbers):
    """Returns a day of ELOG's entries."""
    entries = []
    for number in numbers:
        entries.append(
            f"$@MID@$: {number}\nDate: Wed, 10 Sep 2008 00:{number % 60:02}:50 +0200\nEncoding: plain\nAuthor: a{chance.randrange(9)}\n"
            + (f"In reply to: {number - 1}\n" if number % 7 == 0 else "")
            + f"{'=' * 40}\nsome text {chance.random()} of entry {number}\n"
        )
    return "".join(entries).encode()


def syslog_flood(site, ended, chance):
    """Broken and ever new syslog messages."""
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with contextlib.closing(out):
        while not ended.is_set():
            for _ in range(50):
                body = f"<{chance.randrange(999)}>1 - h{chance.randrange(10**6)} a{chance.randrange(10**6)} - - [x y=\"\x1b[2J\"] \u202e".encode()
                out.sendto(bytearray(body)[: chance.randrange(1, len(body))], ("127.0.0.1", site.syslog))
            ended.wait(0.02)


# The loads by the words that a table of figures shows.
LOADS = {
    "searches for attachments": attachment_misses,
    "trickled bodies": trickled_uploads,
    "idle connections": idle_connections,
    "endless counts": endless_counts,
    "wrong passwords": wrong_passwords,
    "silent syslog streams": silent_streams,
    "far dates": far_dates,
    "entries dear to render": render_bombs,
    "large pictures": picture_bombs,
    "edges of HTTP": http_edges,
    "queries": queries,
    "wrong callers": wrong_callers,
    "broken imports": imports,
    "broken syslog": syslog_flood,
}


@contextlib.contextmanager
def under(load, site, chance):
    """Runs a load while the block runs."""
    ended = threading.Event()
    thread = threading.Thread(target=load, args=(site, ended, chance), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(90)


def fill(site, entries, chance, book="B"):
    """Imports a number of entries into a logbook through ELOG's files, which takes less time than posts."""
    folder = os.path.join(site.directory, "fill", book)
    os.makedirs(folder)
    for first in range(1, entries + 1, 1000):
        name = f"08{first // 27_000 + 1:02}{first // 1000 % 27 + 1:02}a.log"
        with open(os.path.join(folder, name), "ab") as file:
            file.write(elog_file(chance, range(first, min(first + 1000, entries + 1))))
    done = site.run("book", "import-elog", os.path.dirname(folder), "--json")
    return json.loads(done.stdout.splitlines()[-1])
