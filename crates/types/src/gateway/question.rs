//! The body of ASK.
//!
//! ```text
//! u32 time in ms | u8 0 the first, 1 all | u8 0 | u16 length of the name | name | question
//! ```

use super::frame::BadFrame;

/// Longest time for an answer, in ms.
pub const LONGEST_MS: u32 = 600_000;

/// A question to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask<'a> {
    /// Time for the answer in ms.
    pub timeout_ms: u32,
    /// True if the parts of all processes count, false for those of the first.
    pub all: bool,
    /// Name of the service.
    pub service: &'a str,
    /// Octets of the question.
    pub question: &'a [u8],
}

impl<'a> Ask<'a> {
    /// Reads the body.
    pub fn decode(body: &'a [u8]) -> Result<Ask<'a>, BadFrame> {
        let ask = Ask::read(body).ok_or(BadFrame::Body("ask"))?;
        if ask.timeout_ms > LONGEST_MS { Err(BadFrame::Body("ask")) } else { Ok(ask) }
    }

    fn read(body: &'a [u8]) -> Option<Ask<'a>> {
        let (head, rest) = body.split_first_chunk::<8>()?;
        let timeout_ms = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let all = match head[4] {
            0 => false,
            1 => true,
            _ => return None,
        };
        let length = u16::from_le_bytes([head[6], head[7]]);
        let (service, question) = rest.split_at_checked(usize::from(length))?;
        Some(Ask { timeout_ms, all, service: std::str::from_utf8(service).ok()?, question })
    }

    /// Appends the body to `out`. The name has at most 65 535 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timeout_ms.to_le_bytes());
        out.extend_from_slice(&[u8::from(self.all), 0]);
        out.extend_from_slice(&(self.service.len() as u16).to_le_bytes());
        out.extend_from_slice(self.service.as_bytes());
        out.extend_from_slice(self.question);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn questions_lead_back(timeout_ms in 0..=LONGEST_MS, all: bool, service in "[a-z/]{0,9}", question: Vec<u8>) {
            let ask = Ask { timeout_ms, all, service: &service, question: &question };
            let mut body = Vec::new();
            ask.encode(&mut body);
            prop_assert_eq!(Ask::decode(&body), Ok(ask));
        }

        #[test]
        fn hostile_questions_are_errors(body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Ask::decode(&body);
        }
    }
}
