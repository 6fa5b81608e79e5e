//! A finding about a site, and words that findings share.

/// Grade of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grade {
    Ok,
    Warn,
    Fail,
}

/// One finding: its subject, how bad it is, what was found, and the way out.
pub type Finding = (&'static str, Grade, String, &'static str);

/// Lists the first of these names, and says how many more there are.
pub fn few<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    const SHOWN: usize = 5;
    let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}
