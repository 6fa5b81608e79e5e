//! Marks that distinguish measured records from others: their domain, and the start of their texts.

use std::io::{self, BufRead, BufReader, Read};

/// The installation's name.
pub const DOMAIN: &str = "bench";
/// First word of every measured text.
pub const TEXT: &str = "antenna";

/// Counts the lines with a mark. A program may print other lines as well.
pub fn lines(from: impl Read) -> io::Result<u64> {
    let mut from = BufReader::with_capacity(1 << 20, from);
    let (mut line, mut count) = (Vec::new(), 0);
    loop {
        line.clear();
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(count);
        }
        count += u64::from(line.windows(TEXT.len()).any(|words| words == TEXT.as_bytes()));
    }
}

/// Returns the number of logged records that were not found. Records that were found twice are an error, because they
/// are worse than lost ones.
pub fn missing(logged: u64, found: u64) -> Result<u64, String> {
    logged.checked_sub(found).ok_or_else(|| format!("{found} records are found of {logged} that were logged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_were_measured_count() {
        let text = b"begins\n12:00 Info antenna 0 at 0 is idle\nmonitor point read\n antenna 1 at 7 is idle antenna\nantenna";
        assert_eq!(lines(&text[..]).ok(), Some(3));
        assert_eq!(lines(&b""[..]).ok(), Some(0));
    }
}
