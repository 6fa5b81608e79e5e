//! Numbers of things, in words.

/// `1 entry`, `2 entries`, `3 classes`.
pub fn counted(number: u64, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {}", several(one)) }
}

/// Returns the plural of a regular English noun.
fn several(one: &str) -> String {
    let last = |letters: &str| one.ends_with(|letter| letters.contains(letter));
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if last("sxz") || one.ends_with("ch") || one.ends_with("sh") => format!("{one}es"),
        _ => format!("{one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(counted(1, "entry"), "1 entry");
        assert_eq!(counted(0, "entry"), "0 entries");
        assert_eq!(counted(2, "process"), "2 processes");
        assert_eq!(counted(3, "subscriber"), "3 subscribers");
    }
}
