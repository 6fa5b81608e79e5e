//! WebSocket (RFC 6455), the server's side: the handshake, and messages without sockets.
//!
//! Decision: our own code, because it is one page: no extension is negotiated, and messages have a bound. Rejected: a
//! crate, which brings its own sockets and handshake beside those of the HTTP server.
//!
//! ```text
//!  u8  FIN 1 bit, 0 3 bits, kind 4 bits     u8  mask 1 bit, length 7 bits
//!  u16 length if it is 126, u64 if it is 127     u8[4] mask of a client     the payload
//! ```

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderMap, Method, Version, header, request::Parts};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::headers::all_lines;

/// The text that RFC 6455 appends to the key of a client.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Longest payload of a control frame.
const CONTROL: usize = 125;

/// Reason for which a request begins no WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoHandshake {
    /// The request is an ordinary one.
    #[error("this address speaks WebSocket: send Connection: Upgrade, Upgrade: websocket and a Sec-WebSocket-Key of 16 bytes")]
    Ordinary,
    /// The version is another one.
    #[error("the version of WebSocket is 13")]
    Version,
    /// The client does not offer the subprotocol.
    #[error("offer the subprotocol '{0}' in Sec-WebSocket-Protocol")]
    Protocol(&'static str),
}

/// Checks the handshake of a client for this subprotocol; returns the value of `Sec-WebSocket-Accept`.
pub fn accept(head: &Parts, protocol: &'static str) -> Result<String, NoHandshake> {
    let has = |name, wanted: &str| words(&head.headers, name).any(|word| word.eq_ignore_ascii_case(wanted));
    let is_upgrade = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
    let keys = all_lines(&head.headers, header::SEC_WEBSOCKET_KEY, ",");
    let is_key = STANDARD.decode(keys.trim()).is_ok_and(|key| key.len() == 16);
    if head.method != Method::GET || head.version != Version::HTTP_11 || !is_upgrade || !is_key {
        return Err(NoHandshake::Ordinary);
    }
    if !words(&head.headers, header::SEC_WEBSOCKET_VERSION).eq(["13".to_owned()]) {
        return Err(NoHandshake::Version);
    }
    if !words(&head.headers, header::SEC_WEBSOCKET_PROTOCOL).any(|offered| offered == protocol) {
        return Err(NoHandshake::Protocol(protocol));
    }
    // SHA-1 proves nothing here; the protocol has it.
    let text = format!("{}{GUID}", keys.trim());
    Ok(STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes())))
}

fn words(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = String> {
    let all = all_lines(headers, name, ",");
    all.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>().into_iter()
}

/// A message of a client, or a control frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A message of bytes.
    Binary(Vec<u8>),
    /// A message of text.
    Text(String),
    /// A question whether this side lives, to be returned.
    Ping(Vec<u8>),
    /// The answer to one.
    Pong,
    /// The end of the connection.
    Close,
}

/// Reason for which bytes are no WebSocket's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
    /// A frame is not as RFC 6455 has it.
    #[error("{0}")]
    Frame(&'static str),
    /// A message is longer than the receiver takes.
    #[error("a message of {length} bytes; at most {limit} are taken")]
    Long {
        /// Length so far.
        length: u64,
        /// Longest length that is taken.
        limit: usize,
    },
    /// A text is not UTF-8.
    #[error("a text message is not UTF-8")]
    Utf8,
}

impl BadMessage {
    /// Returns the code of the closing frame.
    pub fn code(self) -> u16 {
        match self {
            BadMessage::Frame(_) => 1002,
            BadMessage::Utf8 => 1007,
            BadMessage::Long { .. } => 1009,
        }
    }
}

/// Makes messages of the bytes of a client. Memory grows with what arrives, not with what is announced.
#[derive(Debug, Default)]
pub struct MessageReader {
    input: Vec<u8>,
    /// Bytes of the input that are read.
    at: usize,
    message: Vec<u8>,
    /// The kind of the message that has begun: 1 for text, 2 for bytes.
    begun: Option<u8>,
}

/// The head of a frame.
struct Head {
    is_last: bool,
    kind: u8,
    mask: [u8; 4],
    /// Length of the head.
    size: usize,
    payload: usize,
}

impl MessageReader {
    /// Appends bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
        } else if self.at > 1 << 16 {
            self.input.drain(..self.at);
            self.at = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// Returns the next message; `None` before it has arrived as a whole. `limit` is the longest that is taken.
    pub fn next(&mut self, limit: usize) -> Result<Option<Message>, BadMessage> {
        loop {
            let Some(head) = self.head(limit)? else { return Ok(None) };
            let from = self.at + head.size;
            let Some(payload) = self.input.get_mut(from..from + head.payload) else { return Ok(None) };
            for (byte, mask) in payload.iter_mut().zip(head.mask.iter().cycle()) {
                *byte ^= mask;
            }
            self.at = from + head.payload;
            match head.kind {
                8 => return Ok(Some(Message::Close)),
                9 => return Ok(Some(Message::Ping(payload.to_vec()))),
                10 => return Ok(Some(Message::Pong)),
                kind => {
                    self.begun.get_or_insert(kind);
                    self.message.extend_from_slice(payload);
                }
            }
            if head.is_last {
                let message = std::mem::take(&mut self.message);
                return match self.begun.take() {
                    Some(1) => String::from_utf8(message).map(|text| Some(Message::Text(text))).map_err(|_| BadMessage::Utf8),
                    _ => Ok(Some(Message::Binary(message))),
                };
            }
        }
    }

    fn head(&self, limit: usize) -> Result<Option<Head>, BadMessage> {
        let bytes = &self.input[self.at..];
        let Some(&[first, second]) = bytes.first_chunk() else { return Ok(None) };
        let (kind, is_last) = (first & 15, first & 0x80 != 0);
        if first & 0x70 != 0 {
            return Err(BadMessage::Frame("a frame uses an extension that was not agreed"));
        }
        if second & 0x80 == 0 {
            return Err(BadMessage::Frame("a client's frame has no mask"));
        }
        match (kind, self.begun) {
            (8..=10, _) if is_last && usize::from(second & 127) <= CONTROL => {}
            (8..=10, _) => return Err(BadMessage::Frame("a control frame is long or in parts")),
            (0, Some(_)) | (1 | 2, None) => {}
            (0..=2, _) => return Err(BadMessage::Frame("a message is in parts of another order")),
            _ => return Err(BadMessage::Frame("a frame has an unknown kind")),
        }
        let (length, size) = match second & 127 {
            126 => match bytes.get(2..).and_then(<[u8]>::first_chunk) {
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
                None => return Ok(None),
            },
            127 => match bytes.get(2..).and_then(<[u8]>::first_chunk) {
                Some(length) => (u64::from_be_bytes(*length), 10),
                None => return Ok(None),
            },
            length => (u64::from(length), 2),
        };
        let whole = length.saturating_add(self.message.len() as u64);
        if kind <= 2 && whole > limit as u64 {
            return Err(BadMessage::Long { length: whole, limit });
        }
        let Some(mask) = bytes.get(size..).and_then(<[u8]>::first_chunk) else { return Ok(None) };
        // It is at most the limit.
        let payload = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Some(Head { is_last, kind, mask: *mask, size: size + 4, payload }))
    }
}

/// Appends the head of a frame of the server, whose payload follows. `kind` is 1 for text, 2 for bytes.
pub fn put_head(out: &mut Vec<u8>, kind: u8, payload: usize) {
    out.push(0x80 | kind);
    match payload {
        0..=125 => out.push(payload as u8),
        126..=0xffff => {
            out.push(126);
            out.extend_from_slice(&(payload as u16).to_be_bytes());
        }
        _ => {
            out.push(127);
            out.extend_from_slice(&(payload as u64).to_be_bytes());
        }
    }
}

/// Appends the answer to a ping.
pub fn put_pong(out: &mut Vec<u8>, payload: &[u8]) {
    put_head(out, 10, payload.len());
    out.extend_from_slice(payload);
}

/// Appends the closing frame.
pub fn put_close(out: &mut Vec<u8>, code: u16) {
    put_head(out, 8, 2);
    out.extend_from_slice(&code.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_head(&mut bytes, first & 15, payload.len());
        bytes[0] = first;
        bytes[1] |= 0x80;
        let mask = [1, 2, 3, 0xff];
        bytes.extend_from_slice(&mask);
        bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Message>, BadMessage> {
        let mut reader = MessageReader::default();
        let mut found = Vec::new();
        for byte in bytes {
            reader.push(&[*byte]);
            found.extend(reader.next(70_000)?);
        }
        Ok(found)
    }

    #[test]
    fn the_handshake_is_that_of_the_rfc() {
        let head = |change: &dyn Fn(&mut HeaderMap)| {
            let mut request = http::Request::builder()
                .header("connection", "keep-alive, Upgrade")
                .header("upgrade", "websocket")
                .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
                .header("sec-websocket-version", "13")
                .header("sec-websocket-protocol", "chat, tampu-gateway-1")
                .body(())
                .unwrap();
            change(request.headers_mut());
            request.into_parts().0
        };
        let accept = |change: &dyn Fn(&mut HeaderMap)| super::accept(&head(change), "tampu-gateway-1");
        // The example of RFC 6455, 1.3.
        assert_eq!(accept(&|_| {}), Ok("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=".to_owned()));
        assert_eq!(accept(&|headers| drop(headers.remove("upgrade"))), Err(NoHandshake::Ordinary));
        assert_eq!(
            accept(&|headers| drop(headers.insert("sec-websocket-key", "c2hvcnQ=".parse().unwrap()))),
            Err(NoHandshake::Ordinary)
        );
        assert_eq!(
            accept(&|headers| drop(headers.insert("sec-websocket-version", "8".parse().unwrap()))),
            Err(NoHandshake::Version)
        );
        let other = accept(&|headers| drop(headers.insert("sec-websocket-protocol", "chat".parse().unwrap())));
        assert_eq!(other, Err(NoHandshake::Protocol("tampu-gateway-1")));
    }

    #[test]
    fn messages_of_all_lengths_and_in_parts_are_read_byte_by_byte() {
        let long = vec![7; 66_000];
        let mut bytes = [frame(0x82, b"a"), frame(0x82, &long[..300]), frame(0x82, &long), frame(0x81, "é".as_bytes())].concat();
        // A control frame may come between the parts of a message.
        bytes.extend(
            [frame(0x02, b"one"), frame(0x89, b"ping"), frame(0x00, b" and "), frame(0x80, b"two"), frame(0x88, b"")].concat(),
        );
        let found = read(&bytes).unwrap();
        let expected = [
            Message::Binary(b"a".to_vec()),
            Message::Binary(long[..300].to_vec()),
            Message::Binary(long.clone()),
            Message::Text("é".to_owned()),
            Message::Ping(b"ping".to_vec()),
            Message::Binary(b"one and two".to_vec()),
            Message::Close,
        ];
        assert!(found == expected, "{} messages", found.len());
    }

    #[test]
    fn bad_frames_are_named_before_their_payload_comes() {
        let is_frame = |bytes: &[u8]| matches!(read(bytes), Err(BadMessage::Frame(_)));
        assert!(is_frame(&[0x82, 1]), "no mask");
        assert!(is_frame(&[0xc2, 0x81]), "an extension");
        assert!(is_frame(&[0x83, 0x81]), "an unknown kind");
        assert!(is_frame(&[0x80, 0x81]), "a part of nothing");
        assert!(is_frame(&[0x89, 0xfe]), "a long ping");
        assert!(is_frame(&[frame(0x02, b"a"), frame(0x82, b"b")].concat()), "a message in a message");
        assert_eq!(read(&frame(0x81, &[0xff])), Err(BadMessage::Utf8));
        let huge = [0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(read(&huge), Err(BadMessage::Long { length: u64::MAX, limit: 70_000 }));
        let parts = [frame(0x02, &[0; 69_000]), vec![0x80, 0xfe, 0x10, 0]].concat();
        assert!(matches!(read(&parts), Err(BadMessage::Long { length: 73_096, .. })));
    }
}
