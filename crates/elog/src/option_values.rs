//! Values of ELOG's options that are numbers or spans of time, as ELOG reads them.

pub use tampu_logbook::book::elog_options::leading_number;

/// Returns a text as a value of TOML.
pub fn quoted(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    format!("\"{}\"", plain.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The value of a parameter that stands for all values, or all days, in the addresses of ELOG's forms.
pub const ALL: &str = "_all_";

/// Spans of time that a list can go back, by ELOG's names in its forms.
pub const SPANS: [(i64, &str); 7] =
    [(1, "Day"), (3, "3 Days"), (7, "Week"), (31, "Month"), (92, "3 Months"), (182, "6 Months"), (364, "Year")];

/// Returns a number of days, from a number or the name of a span; 0 means all.
pub fn days(text: &str) -> Option<i64> {
    let text = text.trim().trim_matches('-').trim();
    let named = || SPANS.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|(days, _)| *days);
    let all = || ["all", "none"].iter().any(|all| all.eq_ignore_ascii_case(text)).then_some(0);
    text.parse().ok().or_else(named).or_else(all)
}
