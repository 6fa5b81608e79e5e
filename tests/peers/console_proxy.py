"""A proxy that shows a hub below a path, as a site's web server does; also its WebSockets."""

import socket
import socketserver
import threading


class Proxy:
    """Passes connections on to a port of this host, without the path's beginning."""

    def __init__(self, to, prefix):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = self.request.recv(65536)
                    if not piece:
                        return
                    head += piece
                line, rest = head.split(b"\r\n", 1)
                method, path, version = line.split(b" ")
                if not path.startswith(prefix.encode()):
                    self.request.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    return
                if b"upgrade: websocket" not in rest.lower():
                    # One request a connection, so that each is rewritten.
                    rest = rest.replace(b"Connection: keep-alive", b"Connection: close")
                path = path[len(prefix):] or b"/"
                with socket.create_connection(("127.0.0.1", to)) as hub:
                    hub.sendall(b" ".join([method, path, version]) + b"\r\n" + rest)
                    back = threading.Thread(target=pass_on, args=(hub, self.request))
                    back.start()
                    pass_on(self.request, hub)
                    back.join()

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def pass_on(source, target):
    """Passes bytes on until one side ends."""
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
    except OSError:
        pass
    for one, way in [(source, socket.SHUT_RD), (target, socket.SHUT_WR)]:
        try:
            one.shutdown(way)
        except OSError:
            pass
