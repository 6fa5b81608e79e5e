//! The bodies of ASK, QUESTION and ANSWER.
//!
//! ```text
//! ASK       u32 time in ms | u8 0 the first, 1 all | u8 0 | u16 length of the name | name | question
//! QUESTION  u64 number | u32 time in ms | u16 length of the asker | u16 0 | asker | question
//! ANSWER    u64 number | content
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

/// A question of the bus to a service of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed<'a> {
    /// Number of the question, which the answer repeats.
    pub number: u64,
    /// Time for the answer in ms.
    pub timeout_ms: u32,
    /// Principal that asks, as rules name it.
    pub asker: &'a str,
    /// Octets of the question.
    pub question: &'a [u8],
}

impl<'a> Passed<'a> {
    /// Reads the body.
    pub fn decode(body: &'a [u8]) -> Result<Passed<'a>, BadFrame> {
        Passed::read(body).ok_or(BadFrame::Body("question"))
    }

    fn read(body: &'a [u8]) -> Option<Passed<'a>> {
        let (number, rest) = body.split_first_chunk()?;
        let (head, rest) = rest.split_first_chunk::<8>()?;
        let timeout_ms = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let length = u16::from_le_bytes([head[4], head[5]]);
        let (asker, question) = rest.split_at_checked(usize::from(length))?;
        Some(Passed { number: u64::from_le_bytes(*number), timeout_ms, asker: std::str::from_utf8(asker).ok()?, question })
    }

    /// Appends the body to `out`. The asker has at most 65 535 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.timeout_ms.to_le_bytes());
        out.extend_from_slice(&(self.asker.len() as u16).to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(self.asker.as_bytes());
        out.extend_from_slice(self.question);
    }
}

/// Part of the client's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Number of the question.
    pub number: u64,
    /// Content of the part.
    pub content: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Reads the body.
    pub fn decode(body: &'a [u8]) -> Result<Answer<'a>, BadFrame> {
        let (number, content) = body.split_first_chunk().ok_or(BadFrame::Body("answer"))?;
        Ok(Answer { number: u64::from_le_bytes(*number), content })
    }

    /// Appends the body to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(self.content);
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
        fn passed_questions_and_answers_lead_back(number: u64, timeout_ms: u32, asker in "[a-z:]{0,9}", octets: Vec<u8>) {
            let passed = Passed { number, timeout_ms, asker: &asker, question: &octets };
            let mut body = Vec::new();
            passed.encode(&mut body);
            prop_assert_eq!(Passed::decode(&body), Ok(passed));
            let answer = Answer { number, content: &octets };
            let mut body = Vec::new();
            answer.encode(&mut body);
            prop_assert_eq!(Answer::decode(&body), Ok(answer));
        }

        #[test]
        fn hostile_questions_are_errors(body in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = Ask::decode(&body);
            let _ = Passed::decode(&body);
            let _ = Answer::decode(&body);
        }
    }
}
