//! Requests to a writer for missing samples. The answer's parts are batches as they were sent; the last part is a
//! [`Shelf`].

use super::cursor::{BadMessage, Cursor};

const REQUEST: [u8; 4] = [b'T', b'Q', 1, 0];
const SHELF: [u8; 4] = [b'T', b'S', 1, 0];

/// Request for samples `from..to` of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refetch {
    /// Number of the stream.
    pub stream: u32,
    /// First requested sample.
    pub from: u64,
    /// Sample after the last requested one.
    pub to: u64,
    /// Limit of the answer in bytes.
    pub limit: u32,
}

/// Extent of the writer's cache: all samples in `lowest..next`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shelf {
    /// Number of the stream.
    pub stream: u32,
    /// Oldest sample kept.
    pub lowest: u64,
    /// Number after the last sent sample.
    pub next: u64,
}

impl Refetch {
    /// Encodes the request.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = REQUEST.to_vec();
        out.extend_from_slice(&self.stream.to_le_bytes());
        out.extend_from_slice(&self.limit.to_le_bytes());
        out.extend_from_slice(&self.from.to_le_bytes());
        out.extend_from_slice(&self.to.to_le_bytes());
        out
    }

    /// Decodes a request.
    pub fn decode(bytes: &[u8]) -> Result<Refetch, BadMessage> {
        let mut cursor = Cursor::new(bytes);
        if cursor.bytes(4, "kind")? != REQUEST {
            return Err(BadMessage::Senseless("kind"));
        }
        let (stream, limit) = (cursor.u32("stream")?, cursor.u32("limit")?);
        let (from, to) = (cursor.u64("from")?, cursor.u64("to")?);
        if from <= to { Ok(Refetch { stream, from, to, limit }) } else { Err(BadMessage::Senseless("range")) }
    }
}

impl Shelf {
    /// Encodes the extent.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = SHELF.to_vec();
        out.extend_from_slice(&self.stream.to_le_bytes());
        out.extend_from_slice(&self.lowest.to_le_bytes());
        out.extend_from_slice(&self.next.to_le_bytes());
        out
    }

    /// Decodes an extent; `None` if the bytes are not one, such as a batch.
    pub fn decode(bytes: &[u8]) -> Option<Shelf> {
        let mut cursor = Cursor::new(bytes);
        if cursor.bytes(4, "kind").ok()? != SHELF {
            return None;
        }
        let shelf = Shelf { stream: cursor.u32("").ok()?, lowest: cursor.u64("").ok()?, next: cursor.u64("").ok()? };
        (shelf.lowest <= shelf.next).then_some(shelf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lead_back_and_nothing_else_does() {
        let refetch = Refetch { stream: 1, from: 2, to: 3, limit: 4 };
        assert_eq!(Refetch::decode(&refetch.encode()), Ok(refetch));
        assert!(Refetch::decode(&Refetch { from: 9, ..refetch }.encode()).is_err());
        let shelf = Shelf { stream: 1, lowest: 2, next: 3 };
        assert_eq!(Shelf::decode(&shelf.encode()), Some(shelf));
        assert_eq!(Shelf::decode(&refetch.encode()), None);
        assert_eq!(Shelf::decode(b"TS"), None);
    }
}
