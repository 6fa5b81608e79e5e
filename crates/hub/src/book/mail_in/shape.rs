//! The shape of a mail, looked at before it is parsed: how many parts it can have at most.
//!
//! The parser makes a value for each part, and one inside the other for mails in mails. Some bytes can announce a part, so
//! a mail of a few megabytes can take gigabytes, or a stack of 100 000 levels. Whoever reaches the MTA can send it.

/// Most headers with a type. A mail in a mail needs one, so it also bounds their depth.
const TYPED: usize = 1000;
/// Most lines that can begin a part.
const BOUNDARIES: usize = 10_000;
/// Longest line that begins a part: two dashes, a boundary of 70 characters, two more dashes (RFC 2046).
const BOUNDARY_LINE: usize = 2 + 70 + 2;

/// Returns why a mail is too complex to read, if it is. It counts too much rather than too little: text that looks like a
/// header or a boundary counts too.
pub fn too_complex(mail: &[u8]) -> Option<String> {
    let typed = mail.windows(12).filter(|bytes| bytes.eq_ignore_ascii_case(b"content-type")).take(TYPED + 1).count();
    if typed > TYPED {
        return Some(format!("the mail has more than {TYPED} parts with a type of their own"));
    }
    let begins = |line: &&[u8]| line.starts_with(b"--") && line.trim_ascii_end().len() <= BOUNDARY_LINE;
    let boundaries = mail.split(|byte| *byte == b'\n').filter(begins).take(BOUNDARIES + 1).count();
    (boundaries > BOUNDARIES).then(|| format!("the mail has more than {BOUNDARIES} lines that can begin a part"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_mails_are_read_and_bombs_are_not() {
        let usual = "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\n\r\nText\r\n--x--\r\n";
        assert_eq!(too_complex(usual.as_bytes()), None);
        let text = format!(
            "\r\n{}",
            "-- a long line of a text that begins with two dashes, and is no boundary of any mail\r\n".repeat(20_000)
        );
        assert_eq!(too_complex(text.as_bytes()), None);
        let nested = "content-TYPE: message/rfc822\r\n\r\n".repeat(TYPED + 1);
        assert!(too_complex(nested.as_bytes()).is_some_and(|why| why.contains("1000 parts")));
        let digest = format!("Content-Type: multipart/digest; boundary=x\n\n{}", "--x\n\n".repeat(BOUNDARIES + 1));
        assert!(too_complex(digest.as_bytes()).is_some_and(|why| why.contains("begin a part")));
    }
}
