"""Publishers of many attributes over the unix socket of a gateway, for tests and benches of what shows them."""

import contextlib
import json
import math
import select
import socket
import struct
import threading
import time

HELLO, WELCOME, ACK, BYE, DECLARE, PUBLISH, OPENED, ENDED = 1, 2, 3, 4, 19, 20, 32, 42
# Attributes of a session; a hub takes 1024.
MOST = 1000


def reading(value, quality=0):
    """A reading of a DevDouble as a sample of type 4 (spec/wire/event.md). A list is a spectrum, a list of lists an image."""
    if not isinstance(value, list):
        form, shape, values = 0, (1, 0), [value]
    elif isinstance(value[0], list):
        form, shape, values = 2, (len(value[0]), len(value)), [element for row in value for element in row]
    else:
        form, shape, values = 1, (len(value), 0), value
    body = struct.pack("<IIQQIBBBBIIII", 0, 0, 0, 0, 0, quality, form, 0, 0, *shape, 10, len(values))
    body += struct.pack(f"<{len(values)}d", *values) + bytes(4)
    return bytes((0, 9, 0, 0)) + struct.pack("<I", len(body)) + body


class Session:
    """A session of the gateway that publishes attributes of doubles."""

    def __init__(self, path, source, attributes):
        """`attributes` are configurations as in `event/list`."""
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.number = 0
        self.received = 0
        self.lock = threading.Lock()
        self.opened = threading.Semaphore(0)
        self.refusal = None
        self._send(HELLO, 0, json.dumps({"versions": [1], "client": "test", "source": source}).encode(), counted=False)
        self._receive()
        threading.Thread(target=self._read, daemon=True).start()
        for nth, attribute in enumerate(attributes):
            config = {"data_type": "DevDouble", "format": "scalar", **attribute}
            self._send(DECLARE, nth + 1, json.dumps({"attribute": config, "receipts": "none"}).encode())
        for _ in attributes:
            self.opened.acquire()
            if self.refusal:
                raise RuntimeError(self.refusal)

    def publish(self, nth, value, quality=0):
        """Publishes a reading of one attribute."""
        sample = reading(value, quality)
        self._send(PUBLISH, nth + 1, struct.pack("<I", len(sample)) + sample + bytes(-len(sample) % 4))

    def close(self):
        """Ends without a word, as a process that dies."""
        self.socket.close()

    def leave(self):
        """Ends in order."""
        self._send(BYE, 0, b"{}", counted=False)
        self.socket.close()

    def _send(self, kind, key, body, counted=True):
        with self.lock:
            self.number += counted
            head = struct.pack("<IBBHQQ", len(body), kind, 0, 0, key, self.number if counted else 0)
            self.socket.sendall(head + body)

    def _receive(self):
        def exactly(length):
            found = b""
            while len(found) < length:
                piece = self.socket.recv(length - len(found))
                if not piece:
                    raise OSError("the session ended")
                found += piece
            return found

        length, kind, _, _, _, number = struct.unpack("<IBBHQQ", exactly(24))
        self.received = max(self.received, number)
        return kind, exactly(length)

    def _read(self):
        with contextlib.suppress(OSError, ValueError):
            beaten = time.monotonic()
            while True:
                if select.select([self.socket], [], [], 1)[0]:
                    kind, body = self._receive()
                    if kind in (ENDED, BYE):
                        self.refusal = body.decode()
                    if kind in (OPENED, ENDED, BYE):
                        self.opened.release()
                if time.monotonic() - beaten > 1:
                    self._send(ACK, 0, struct.pack("<Q", self.received), counted=False)
                    beaten = time.monotonic()


def sessions(path, source, attributes):
    """As many sessions as these attributes need."""
    parts = [attributes[first:first + MOST] for first in range(0, len(attributes), MOST)]
    return [Session(path, f"{source}/{nth}", part) for nth, part in enumerate(parts)]


class Waves:
    """A thread that publishes a wave to each attribute of a session, with a frequency."""

    def __init__(self, session, count, hertz):
        self.session, self.count, self.hertz = session, count, hertz
        self.is_over = False
        self.published = 0
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        begun = time.monotonic()
        turn = 0
        with contextlib.suppress(OSError):
            while not self.is_over:
                for nth in range(self.count):
                    self.session.publish(nth, 10 * nth + math.sin(turn / 40 + nth) + math.sin(turn * 1.7) / 10)
                self.published += self.count
                turn += 1
                time.sleep(max(0.0, begun + turn / self.hertz - time.monotonic()))

    def stop(self):
        """Stops after the present turn."""
        self.is_over = True
        self.thread.join()
