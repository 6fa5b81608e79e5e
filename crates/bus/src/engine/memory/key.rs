//! Keys and patterns, compared as zenoh compares them.

/// Whether the key falls under the pattern: `*` is one chunk, `**` any number of chunks, `$*` any characters in a chunk.
pub fn matches(pattern: &str, key: &str) -> bool {
    matches_rest(Some(pattern), Some(key))
}

/// The same for what is left of both after some chunks; `None` is nothing.
fn matches_rest(pattern: Option<&str>, key: Option<&str>) -> bool {
    let Some(pattern) = pattern else { return key.is_none() };
    let (chunk, rest) = first_chunk(pattern);
    if chunk == "**" {
        // It stands for no chunk here, or for one and then again for any number.
        return matches_rest(rest, key) || key.is_some_and(|key| matches_rest(Some(pattern), first_chunk(key).1));
    }
    key.is_some_and(|key| {
        let (first, others) = first_chunk(key);
        matches_chunk(chunk, first) && matches_rest(rest, others)
    })
}

fn first_chunk(path: &str) -> (&str, Option<&str>) {
    path.split_once('/').map_or((path, None), |(first, others)| (first, Some(others)))
}

fn matches_chunk(pattern: &str, chunk: &str) -> bool {
    if pattern == "*" {
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
