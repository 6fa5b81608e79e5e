//! Keys and patterns, compared as zenoh compares them.

/// Reports if the key matches the pattern: `*` is one chunk, `**` any number of chunks, `$*` any characters in a chunk.
/// A question's key may have `*` for a chunk too.
pub fn matches(pattern: &str, key: &str) -> bool {
    tampu_types::glob::matches_path(pattern, key, matches_chunk)
}

fn matches_chunk(pattern: &str, chunk: &str) -> bool {
    if pattern == "*" || chunk == "*" {
        return true;
    }
    match pattern.split_once("$*") {
        None => pattern == chunk,
        Some((start, rest)) => chunk
            .strip_prefix(start)
            .is_some_and(|tail| (0..=tail.len()).any(|at| tail.is_char_boundary(at) && matches_chunk(rest, &tail[at..]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_zenoh_says_they_do() {
        let yes = [
            ("a/b", "a/b"),
            ("a/*", "a/b"),
            ("**", "a"),
            ("**", "a/b/c"),
            ("a/**", "a"),
            ("a/**", "a/b/c"),
            ("**/c", "c"),
            ("**/c", "a/b/c"),
            ("a/**/c", "a/c"),
            ("a/**/c", "a/x/y/c"),
            ("a/**/**", "a"),
            ("a/*/**", "a/b"),
            ("a/$*.b.$*", "a/.b."),
            ("a/$*.b.$*", "a/.a.b.c."),
            ("a/x$*", "a/x"),
            ("$*", "anything"),
            ("d/**/$*.op.$*", "d/log/info/.dev.op."),
            ("s/*/2a/log", "s/h/*/log"),
        ];
        let no = [
            ("a/b", "a"),
            ("a/b", "a/b/c"),
            ("a/*", "a"),
            ("a/*", "a/b/c"),
            ("**/c", "a/b"),
            ("a/**", "b"),
            ("a/*/**", "a"),
            ("a/$*.b.$*", "a/.ab."),
            ("a/$*.b.$*", "a/.b./c"),
            ("a/x$*", "a/yx"),
            ("*", "a/b"),
        ];
        for (pattern, key) in yes {
            assert!(matches(pattern, key), "{pattern} should match {key}");
        }
        for (pattern, key) in no {
            assert!(!matches(pattern, key), "{pattern} should not match {key}");
        }
    }
}
