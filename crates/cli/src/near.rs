//! Known names similar to an unknown name.

/// The number of characters to insert, delete or replace that makes one text of the other.
pub fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, from) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = index + 1;
        for (place, to) in other.iter().enumerate() {
            let replaced = before + usize::from(from != *to);
            before = row[place + 1];
            row[place + 1] = replaced.min(before + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

/// The names that a person may have meant, the nearest first, in any case; also names of which this is a part.
pub fn near<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>, most: usize) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let folded = name.to_lowercase();
            let distance = distance(&wanted, &folded);
            let part = wanted.len() >= 3 && folded.contains(&wanted);
            (part || distance <= wanted.len() / 5 + 1).then_some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.truncate(most);
    near.into_iter().map(|(_, name)| name).collect()
}

/// The nearest of the names, if one is near.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    near(wanted, names, 1).first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_near_are_found() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("pressure", "pressure"), 0);
        assert_eq!(distance("presure", "pressure"), 1);
        assert_eq!(distance("pressrue", "pressure"), 2);
        assert_eq!(distance("a/b/c/d", "a/b/x/d"), 1);
        assert_eq!(near("dv1", ["CONTROL/DV01", "DV01", "CORR"], 5), ["DV01"]);
        assert_eq!(near("dv01", ["CONTROL/DV01", "DV01", "CORR"], 5), ["DV01", "CONTROL/DV01"]);
        assert_eq!(nearest("xyzzy", ["CORR"]), None);
    }
}
