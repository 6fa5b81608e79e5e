//! The page of metrics as a service of the hub's HTTP server.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header, request::Parts};
use tampu_tls::ServerCertificate;
use tampu_workers::{Stop, host::host_name};

use crate::http::{
    admission::WorkKind,
    auth::foreign_host,
    body::{HttpRequest, ResponseBody},
    client_address::Proxies,
    headers::set,
    route::{HttpService, Matched},
    server::{Limits, Listener, Server, plain_rejection},
};

/// The media type of Prometheus's text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The media type of other responses.
const PLAIN: &str = "text/plain; charset=utf-8";
/// Bytes of a request's body; a longer one is rejected.
const MAX_BODY: u64 = 4 << 10;
/// Maximum number of connections. Few are needed: one page for few readers.
const CONNECTIONS: usize = 8;
/// Maximum number of connections of one address, so that a slow reader keeps no other one out.
const CONNECTIONS_OF_ONE: usize = 4;
/// Bytes of a request's head.
const HEAD_BYTES: usize = 8 << 10;
/// Time limit of a request, and of its response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the page anew for each request.
pub(crate) type Page = Box<dyn Fn() -> String + Send + Sync>;

/// A page of metrics.
struct MetricsService {
    page: Page,
    /// Names of this host that requests may name, in lower case.
    names: Vec<String>,
}

/// Serves a page at an address to requests that name this host. Each connection gets one response and is closed.
pub(crate) fn serve(
    address: SocketAddr,
    names: &[String],
    certificate: Option<Arc<ServerCertificate>>,
    page: Page,
) -> std::io::Result<Server> {
    let limits = Limits {
        connections: CONNECTIONS,
        connections_of_one: CONNECTIONS_OF_ONE,
        threads: 1,
        head_bytes: HEAD_BYTES,
        wait: PATIENCE,
        head: PATIENCE,
        stall: PATIENCE,
        handshake: PATIENCE,
    };
    let own = ["localhost".to_owned(), host_name()];
    let names = own.iter().chain(names).map(|name| name.to_ascii_lowercase()).collect();
    let listener = Listener::plain(TcpListener::bind(address)?, Arc::new(MetricsService { page, names }));
    Server::start(vec![Listener { certificate, ..listener }], Proxies::default(), limits)
}

impl MetricsService {
    fn answer(&self, method: &Method, path: &str) -> Response<ResponseBody> {
        if !matches!(*method, Method::GET | Method::HEAD) {
            let mut response = response(StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET and HEAD\n".to_owned());
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match path {
            "/metrics" => response(StatusCode::OK, METRICS, (self.page)()),
            "/" => response(StatusCode::OK, PLAIN, "the metrics of a Tampu hub are at /metrics\n".to_owned()),
            _ => response(StatusCode::NOT_FOUND, PLAIN, "there is only /metrics\n".to_owned()),
        }
    }
}

impl HttpService for MetricsService {
    fn find(self: Arc<Self>, _: &Parts) -> Matched {
        let handler = move |request: HttpRequest<'_>, _: &Stop| match foreign_host(&request.head, &self.names) {
            // A page of another site, whose name leads here, must not read the names of sources.
            Some(host) => {
                let text = format!("unknown name '{}' of this hub; add it to [metrics] hosts\n", host.escape_debug());
                response(StatusCode::MISDIRECTED_REQUEST, PLAIN, text)
            }
            None => self.answer(&request.head.method, request.head.uri.path()),
        };
        Matched::for_all(WorkKind::Quick, MAX_BODY, plain_rejection, Box::new(handler))
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Whole(Bytes::from(text)));
    *response.status_mut() = status;
    set(response.headers_mut(), header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpStream,
    };

    use super::*;

    fn start() -> Server {
        serve("127.0.0.1:0".parse().unwrap(), &["a".to_owned()], None, Box::new(|| "x 1\n".to_owned())).unwrap()
    }

    fn ask(server: &Server, pieces: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        for piece in pieces {
            // The server may close its end before it has read everything.
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    #[test]
    fn only_the_page_is_served() {
        let server = start();
        let status = |request: &[u8]| ask(&server, &[request]).lines().next().unwrap_or_default().to_owned();
        let answer = ask(&server, &[b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"]);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.contains("\r\nContent-Length: 4\r\n") && answer.ends_with("\r\n\r\nx 1\n"), "{answer}");
        assert!(ask(&server, &[b"HEAD /metrics HTTP/1.0\r\n\r\n"]).ends_with("\r\n\r\n"));
        assert_eq!(status(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK");
        assert_eq!(status(b"GET /metricsx HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 404 Not Found");
        let refused = ask(&server, &[b"POST /metrics HTTP/1.1\r\nHost: a\r\n\r\n"]);
        assert!(refused.starts_with("HTTP/1.1 405 Method Not Allowed") && refused.contains("Allow: GET, HEAD"), "{refused}");
        for broken in [&b"GET /metrics\r\n\r\n"[..], b"GET /metrics HTTP/2\r\n\r\n", b"\xff\0 \n\n", b"GET  HTTP/1.1\n\n"] {
            assert_eq!(status(broken), "HTTP/1.1 400 Bad Request", "{broken:?}");
        }
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".to_vec(), vec![b'x'; 2 * HEAD_BYTES]].concat();
        assert!(status(&long).starts_with("HTTP/1.1 431"));
    }

    #[test]
    fn a_request_names_this_host() {
        let server = start();
        let own = host_name();
        for host in ["a", "A:7448", "127.0.0.1:7448", "[::1]:7448", "localhost", "hub.localhost", own.as_str()] {
            let answer = ask(&server, &[format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()]);
            assert!(answer.starts_with("HTTP/1.1 200"), "{host}: {answer}");
        }
        for host in ["evil.example:7448", "a.evil.example", "localhost.evil.example"] {
            let answer = ask(&server, &[format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()]);
            assert!(answer.starts_with("HTTP/1.1 421") && answer.contains("[metrics] hosts"), "{host}: {answer}");
        }
    }

    #[test]
    fn slow_readers_of_one_address_hold_half_of_the_connections() {
        let server = start();
        let at = server.addresses()[0];
        let begun: Vec<TcpStream> = (0..CONNECTIONS_OF_ONE)
            .map(|_| {
                let mut stream = TcpStream::connect(at).unwrap();
                stream.write_all(b"GET /met").unwrap();
                stream
            })
            .collect();
        // A further connection of that address takes the place of one of them.
        let answer = ask(&server, &[b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"]);
        assert!(answer.ends_with("x 1\n"), "{answer}");
        drop(begun);
    }

    #[test]
    fn a_connection_is_answered_once_and_closed() {
        let server = start();
        // A silent client does not delay other clients.
        let _silent = TcpStream::connect(server.addresses()[0]).unwrap();
        for end in [&b"\r\n\r\n"[..], b"\n\n"] {
            let answer = ask(&server, &[b"GET /met", b"rics HTTP/1.1\r\nHost: a", end]);
            assert!(answer.ends_with("\r\n\r\nx 1\n"), "{answer}");
        }
    }
}
