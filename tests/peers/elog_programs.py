"""What ELOG's programs send, byte by byte, and what they make of the answers.

`ElogCommand` is the `elog` command of ELOG 3.1.5: HTTP/1.0, boundary lines without the two dashes, a file that ends where the boundary
begins, no end. `PyElog` is py_elog: multipart as `requests` writes it, the text as a file without a name, Latin-1, XPath on pages. Neither
program can be had from a registry, so these are our own, made after how they behave; where the real py_elog can be imported as
`elog`, the test beside this file runs that one too.
"""

import http.client
import random
import re
import socket
import time
import urllib.parse

LINE = "=" * 40


def refused(text):
    """Raises what a program tells its user."""
    raise RuntimeError(text)


class ElogCommand:
    """`elog -h host -p port [-d subdir] -l book [-u user password]`."""

    def __init__(self, host, port, book, user=None, digest=None, subdir=""):
        self.host, self.port, self.book, self.user, self.digest, self.subdir = host, port, book, user, digest, subdir

    def _send(self, request):
        with socket.create_connection((self.host, self.port), timeout=30) as connection:
            connection.sendall(request)
            answer = b""
            # The command reads until the other side closes.
            while piece := connection.recv(65536):
                answer += piece
        return answer

    def _path(self):
        subdir = self.subdir + "/" if self.subdir else ""
        return "/" + subdir + urllib.parse.quote_plus(self.book) + "/"

    def retrieve(self, number):
        """`-w`: the head's lines and the text."""
        cookie = ""
        if self.user:
            cookie = f"Cookie: unm={self.user};upwd={self.digest};\r\n"
        request = f"GET {self._path()}{number}?cmd=download HTTP/1.0\r\nHost: {self.host}:{self.port}\r\nUser-Agent: ELOG\r\n{cookie}\r\n"
        answer = self._send(request.encode("latin-1"))
        if b"$@MID@$:" not in answer:
            refused(f"Error transmitting message: {answer[:500]}")
        text = answer[answer.index(b"$@MID@$:"):].decode()
        head, text = text.split(LINE + "\n", 1)
        lines = [line.split(":", 1) for line in head.splitlines()[1:] if ":" in line]
        return [(name, value.lstrip(" ")) for name, value in lines], text

    def submit(self, attributes, text="", files=(), reply=0, edit=0, encoding="ELCode", suppress=False):
        """Posts, with `-r` answers, with `-e` changes; the number of the entry."""
        attributes = dict(attributes)
        if edit or reply:
            lines, old = self.retrieve(edit or reply)
            given = {name.lower(): value for name, value in attributes.items()}
            dropped = ("reply to", "date") if reply else ()
            attributes = {name: given.get(name.lower(), value) for name, value in lines if name.lower() not in dropped}
            if edit and not text:
                text = old
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        boundary = "---------------------------" + "".join(f"{random.getrandbits(31):04X}" for _ in range(3))
        parts = [("cmd", "Submit")]
        if self.user:
            parts += [("unm", self.user), ("upwd", self.digest)]
        parts.append(("exp", self.book))
        if reply:
            parts.append(("reply_to", str(reply)))
        if edit:
            parts += [("edit_id", str(edit)), ("skiplock", "1")]
        if suppress:
            parts.append(("suppress", "1"))
        parts.append(("encoding", encoding))
        parts += [(re.sub("[^0-9a-zA-Z]", "_", name), value) for name, value in attributes.items()]
        body = b""
        for name, value in parts:
            body += f'{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value.encode() + b"\r\n"
        if text:
            body += f'{boundary}\r\nContent-Disposition: form-data; name="Text"\r\n\r\n'.encode() + text.encode() + f"\r\n{boundary}\r\n".encode()
        for number, (name, content) in enumerate(files, 1):
            body += f'Content-Disposition: form-data; name="attfile{number}"; filename="{name}"\r\n\r\n'.encode() + content
            body += f"{boundary}\r\n".encode()
        head = (
            f"POST {self._path()} HTTP/1.0\r\nContent-Type: multipart/form-data; boundary={boundary}\r\n"
            f"Host: {self.host}:{self.port}\r\nUser-Agent: ELOG\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return self._outcome(self._send(head.encode() + body).decode("latin-1"))

    @staticmethod
    def _outcome(answer):
        if "302 Found" in answer:
            place = re.search(r"Location: ([^\r\n?]*)", answer, re.IGNORECASE)
            if "has moved" in answer:
                refused("Error: elogd server has moved to another location")
            if "fail" in answer:
                refused("Error: Invalid user name or password")
            # The command looks for this spelling and no other.
            if "Location:" not in answer:
                refused("Error: no place was told")
            return int(place.group(1).rsplit("/", 1)[-1])
        if "Logbook Selection" in answer:
            refused("Error: No logbook specified")
        if "Error: Attribute" in answer:
            begin = answer.index("Error: Attribute")
            if "not existing" in answer:
                refused('Error: Non existing attribute option "%s"' % answer[begin + 27:].split("<")[0])
            refused('Error: Missing required attribute "%s"' % answer[begin + 20:].split("<")[0])
        if "form name=form1" in answer:
            refused("Error: Missing or invalid user name/password")
        refused("Error transmitting message: " + answer[:500])


class PyElog:
    """py_elog's `Logbook`."""

    def __init__(self, host, port, book, user=None, password=None, subdir=""):
        self.host, self.port, self.book, self.user, self.password = host, port, book, user, password
        self.path = ("/" + subdir + "/" + book + "/").replace("//", "/")

    def _ask(self, method, path, body=None, headers=None):
        headers = {"User-Agent": "python-requests/2.32.3", "Accept-Encoding": "gzip, deflate", "Accept": "*/*", **(headers or {})}
        if method == "GET" and (self.user or self.password):
            headers["Cookie"] = f"unm={self.user};upwd={self.password};"
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            connection.request(method, urllib.parse.quote(self.path) + path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            return self._validated(answer.status, answer.getheader("Location"), content), content
        finally:
            connection.close()

    @staticmethod
    def _validated(status, location, content):
        """The number that the answer leads to."""
        if status not in (200, 302):
            told = re.findall('<td.*?class="errormsg".*?>.*?</td>', content.decode("utf-8", "ignore"), flags=re.DOTALL)
            refused("Rejected because of: " + re.sub("(?:<.*?>)", "", told[0]) if told else "Rejected because of unknown error.")
        number = None
        if location is not None:
            if "has moved" in location:
                refused("Logbook server has moved to another location.")
            if "fail" in location:
                refused("Invalid username or password.")
            number = int(urllib.parse.urlsplit(location).path.split("/")[-1])
        if b"form name=form1" in content or b"type=password" in content:
            refused("Invalid username or password.")
        return number

    def _check(self, number):
        _, content = self._ask("GET", str(number))
        if re.findall('<td.*?class="errormsg".*?>.*?</td>', content.decode("utf-8", "ignore"), flags=re.DOTALL):
            refused(f"Message with ID: {number} does not exist on logbook.")

    def post(self, message, msg_id=None, reply=False, attributes=None, attachments=()):
        fields = dict(attributes or {})
        if msg_id and reply:
            self._check(msg_id)
            fields["reply_to"] = str(msg_id)
        elif msg_id:
            fields.update(edit_id=str(msg_id), skiplock="1")
            _, old, files = self.read(msg_id)
            for number, url in enumerate(filter(None, files)):
                fields[f"attachment{number}"] = url.rsplit("/", 1)[-1]
            fields = {**old, **fields}
        else:
            fields.setdefault("When", str(int(time.time())))
        for reserved in ("Date", "Attachment", "Text"):
            fields.pop(reserved, None)
        fields.update(cmd="Submit", exp=self.book)
        if self.user:
            fields["unm"] = self.user
        if self.password:
            fields["upwd"] = self.password
        boundary = "%032x" % random.getrandbits(128)
        body = b""
        for name, value in fields.items():
            name = re.sub("[^0-9a-zA-Z]", "_", name)
            body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + str(value).encode("utf-8") + b"\r\n"
        for number, (name, content) in enumerate(attachments, 1):
            body += f'--{boundary}\r\nContent-Disposition: form-data; name="attfile{number}"; filename="{name}"\r\n\r\n'.encode() + content + b"\r\n"
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="Text"; filename=""\r\n\r\n'.encode() + message.encode("utf-8") + b"\r\n"
        body += f"--{boundary}--\r\n".encode()
        number, _ = self._ask("POST", "", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        if not number or number < 1:
            refused(f"Invalid message ID: {number} returned")
        return number

    def read(self, number):
        self._check(number)
        _, content = self._ask("GET", f"{number}?cmd=download")
        lines = content.decode("utf-8", "ignore").splitlines()
        end = lines.index(LINE)
        attributes, attachments = {}, []
        for line in lines[:end]:
            name, *rest = line.split(": ")
            if name == "Attachment":
                attachments = ["".join(rest)] if not rest else [f"{self.path}{file}" for file in "".join(rest).split(",")]
            else:
                attributes[name] = "".join(rest)
        return "\n".join(lines[end + 1:]), attributes, attachments

    def delete(self, number):
        self._check(number)
        led, _ = self._ask("GET", f"{number}?cmd=Delete&confirm=Yes")
        if led is None:
            refused("Cannot process delete command (only logbooks in English supported).")

    def search(self, term, count=20, scope="subtext"):
        query = urllib.parse.urlencode({"mode": "full", "reverse": "1", "npp": max(count, 1), scope: term})
        return self._ids(self._ask("GET", "?" + query)[1])

    def get_message_ids(self):
        return self._ids(self._ask("GET", "page")[1])

    @staticmethod
    def _ids(content):
        from lxml import html

        found = html.fromstring(content).xpath('(//tr/td[@class="list1" or @class="list2"][1])/a/@href')
        return [int(address.split("/")[-1]) for address in found]

    def download(self, name):
        """An attachment's bytes, as a browser would get them."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        try:
            cookie = {"Cookie": f"unm={self.user};upwd={self.password};"} if self.user else {}
            connection.request("GET", urllib.parse.quote(name), headers=cookie)
            return connection.getresponse().read()
        finally:
            connection.close()
