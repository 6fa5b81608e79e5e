//! The first frame of a message: the key of its samples, with the host at the end.
//!
//! ZeroMQ compares subscriptions with the beginning of the first frame. In a key the sending host comes before the topic,
//! so no prefix of a key would choose a topic on all hosts.

use super::super::OWN_HOST;

/// Number of chunks before the host: `tampu`, the domain, the kind.
const BEFORE_HOST: usize = 3;

/// Longest first frame and subscription that is taken from others, in bytes. Names in keys are shorter.
pub const LONGEST: usize = 2048;

/// Reports if a first frame has only the characters of keys: with a wildcard in it, it would match the patterns of others.
pub fn is_sound(frame: &[u8]) -> bool {
    frame.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.-/".contains(byte))
}

/// Kinds of keys under which samples travel: to all readers, to those of one host, to a multicast group.
const KINDS: [&str; 3] = ["d", "h", "g"];

/// Reports if messages under this key, or under some key of this pattern, are samples.
pub fn is_of_samples(key: &str) -> bool {
    key.split('/').nth(BEFORE_HOST - 1).is_some_and(|kind| KINDS.contains(&kind))
}

/// Splits a key or pattern at its host: what stands before it, the host, and what follows.
fn at_host(key: &str) -> Option<(&str, &str, &str)> {
    let (start, _) = key.match_indices('/').nth(BEFORE_HOST - 1)?;
    let (before, rest) = (&key[..start], &key[start + 1..]);
    let (host, after) = rest.split_once('/')?;
    Some((before, host, after))
}

/// Returns the first frame for this key: the host stands behind the last chunk.
pub fn from_key(key: &str, own_host: &str) -> Option<Vec<u8>> {
    let (before, host, after) = at_host(key)?;
    let host = if host == OWN_HOST { own_host } else { host };
    Some(format!("{before}/{after}/{host}").into_bytes())
}

/// Returns the key of a first frame.
pub fn to_key(frame: &[u8]) -> Option<String> {
    let frame = std::str::from_utf8(frame).ok()?;
    let (start, _) = frame.match_indices('/').nth(BEFORE_HOST - 1)?;
    let (before, rest) = (&frame[..start], &frame[start + 1..]);
    let (after, host) = rest.rsplit_once('/')?;
    Some(format!("{before}/{host}/{after}"))
}

/// Returns the longest prefix of all first frames whose keys match the pattern.
pub fn prefix(pattern: &str) -> Vec<u8> {
    let Some((before, _, after)) = at_host(pattern).filter(|(before, host, _)| *host != "**" && !before.contains('*')) else {
        return literal(pattern).as_bytes().to_vec();
    };
    format!("{before}/{}", literal(after)).into_bytes()
}

/// Returns the beginning of a pattern without a wildcard. `**` also stands for no chunk at all, so the `/` before it may be
/// absent.
fn literal(pattern: &str) -> &str {
    let end = pattern.find('*').unwrap_or(pattern.len());
    let literal = pattern[..end].strip_suffix('$').unwrap_or(&pattern[..end]);
    if pattern[end..].starts_with("**") { literal.strip_suffix('/').unwrap_or(literal) } else { literal }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::super::memory::matches, *};

    #[test]
    fn the_host_moves_to_the_end_and_back() {
        let frame = from_key("tampu/lab/d/@/log/info/.op.", "mast").unwrap();
        assert_eq!(frame, b"tampu/lab/d/log/info/.op./mast");
        assert_eq!(to_key(&frame).unwrap(), "tampu/lab/d/mast/log/info/.op.");
        for short in ["", "tampu", "tampu/lab/d", "tampu/lab/d/mast"] {
            assert_eq!((from_key(short, "-"), to_key(short.as_bytes())), (None, None), "{short}");
        }
        assert_eq!(to_key(b"tampu/lab/d/\xff/mast"), None);
    }

    #[test]
    fn a_frame_with_a_wildcard_is_not_sound() {
        assert!(is_sound(b"tampu/lab/d/log/info/.op./mast-1_x"));
        for bad in ["tampu/lab/d/log/*/./-", "tampu/lab/d/log/x$*/./-", "Tampu/lab", "tampu/l b"] {
            assert!(!is_sound(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn samples_are_told_from_what_travels_beside_them() {
        for key in ["tampu/lab/d/@/log/info/.", "tampu/lab/h/*/0000002a/**", "tampu/lab/g/@/0000002a/1/**"] {
            assert!(is_of_samples(key), "{key}");
        }
        for key in ["tampu/lab/c/@/-/x", "tampu/lab/s/*/x/log", "tampu/lab", "d/d"] {
            assert!(!is_of_samples(key), "{key}");
        }
    }

    /// The rows of a table in the specification, whose cells are code.
    fn rows(title: &str) -> Vec<[String; 2]> {
        let page = include_str!("../../../../../spec/wire/zmq.md");
        let table = page.split_once(title).unwrap().1;
        let cells = |line: &str| line.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
        table.lines().skip(2).map_while(|line| cells(line).try_into().ok()).collect()
    }

    #[test]
    fn keys_and_patterns_become_what_the_specification_says() {
        let frames = rows("| key | first frame |");
        for [key, frame] in &frames {
            assert_eq!(from_key(key, "-").unwrap(), frame.as_bytes());
            assert_eq!(to_key(frame.as_bytes()).as_ref(), Some(key));
        }
        let subscriptions = rows("| pattern | subscription |");
        for [pattern, start] in &subscriptions {
            assert_eq!(prefix(pattern), start.as_bytes(), "{pattern}");
        }
        assert_eq!((frames.len(), subscriptions.len()), (3, 4));
        assert_eq!(prefix("tampu/lab/d/**"), b"tampu/lab/d");
        assert_eq!(prefix("tampu/*/d/*/log/."), b"tampu/");
    }

    proptest! {
        /// No key that matches a pattern has a frame that the pattern's subscription misses.
        #[test]
        fn a_prefix_misses_no_key(chunks in prop::collection::vec("[ab]{1,2}|\\*|\\*\\*|a\\$\\*", 2..5), key in prop::collection::vec("[ab]{1,2}", 2..6)) {
            let (pattern, key) = (format!("tampu/lab/d/*/{}", chunks.join("/")), format!("tampu/lab/d/h/{}", key.join("/")));
            if matches(&pattern, &key) {
                prop_assert!(from_key(&key, "-").unwrap().starts_with(&prefix(&pattern)), "{pattern} {key}");
            }
        }
    }
}
