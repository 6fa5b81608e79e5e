//! Requests to a hub's API over one persistent connection. The client costs so little that the hub is measured.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::Value;

/// Longest time for a response before the bench fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Client {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

/// Escapes a text for an address.
pub fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

impl Client {
    /// Connects to `http://HOST:PORT`.
    pub fn new(url: &str, token: &str) -> Result<Client, String> {
        let host = url.strip_prefix("http://").ok_or_else(|| format!("invalid hub address {url}"))?;
        let stream = TcpStream::connect(host).map_err(|error| format!("{host}: {error}"))?;
        let set = stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(PATIENCE)));
        set.map_err(|error| error.to_string())?;
        Ok(Client { stream: BufReader::new(stream), host: host.to_owned(), token: token.to_owned() })
    }

    /// Sends a request. A response without success is an error.
    pub fn ask(&mut self, method: &str, path: &str, kind: &str, body: &[u8]) -> Result<Vec<u8>, String> {
        let head = format!(
            "{method} /api/v1{path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.host,
            self.token,
            body.len()
        );
        let answer = self.exchange(head.as_bytes(), body).map_err(|error| format!("{method} {path}: {error}"))?;
        let (status, bytes) = answer;
        if (200..300).contains(&status) {
            Ok(bytes)
        } else {
            Err(format!("{method} {path}: {status}: {}", String::from_utf8_lossy(&bytes)))
        }
    }

    /// Reads a value.
    pub fn get(&mut self, path: &str) -> Result<Value, String> {
        let bytes = self.ask("GET", path, "application/json", b"")?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
    }

    /// Sends a value, and returns the response.
    pub fn post(&mut self, path: &str, value: &Value) -> Result<Value, String> {
        let bytes = self.ask("POST", path, "application/json", value.to_string().as_bytes())?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))
    }

    fn exchange(&mut self, head: &[u8], body: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
        let bad = |what: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned());
        let stream = self.stream.get_mut();
        stream.write_all(&[head, body].concat())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| bad("no status"))?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(bad("the headers do not end"));
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().map_err(|_| bad("no length"))?,
                "transfer-encoding" => is_chunked = value.trim().eq_ignore_ascii_case("chunked"),
                _ => {}
            }
        }
        let mut bytes = Vec::new();
        if !is_chunked {
            bytes.resize(length, 0);
            self.stream.read_exact(&mut bytes)?;
            return Ok((status, bytes));
        }
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| bad("no size of a chunk"))?;
            let begin = bytes.len();
            bytes.resize(begin + size, 0);
            self.stream.read_exact(&mut bytes[begin..])?;
            line.clear();
            self.stream.read_line(&mut line)?;
            if size == 0 {
                return Ok((status, bytes));
            }
        }
    }
}
