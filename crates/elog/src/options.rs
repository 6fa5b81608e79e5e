//! The verdict on every option of `elogd.cfg`.
//!
//! One catalogue, `options.txt`, has all options. The import, `tampu book config check` and the page
//! `docs/reference/elog-options.md` are made from it, so they cannot say different things.

use std::{fmt::Write as _, sync::LazyLock};

use tampu_logbook::book::elog_options::key;
use tampu_types::named_enum;

mod check;
mod values;

pub use check::{CheckedOption, ConfigCheck, check};
pub use values::{mail_setting, unreadable};

/// Sections, and lines `name | verdict | remark`. `*` in a name is an attribute, a group, a command or a value; `{}` before
/// it means that a condition can precede it.
const CATALOGUE: &str = include_str!("options.txt");

named_enum! {
    /// The verdict on an option.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OptionVerdict("verdict") {
        /// It has the effect that it has in ELOG, within the limits that the remark names.
        Honoured => "honoured",
        /// A setting of Tampu, which the remark names, has this effect.
        Replaced => "replaced",
        /// It has no effect, for the reason in the remark.
        NotApplicable => "not applicable",
        /// ELOG does not have this option.
        Unknown => "unknown",
    }
}

/// An option of ELOG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownOption {
    /// The subject it belongs to.
    pub section: &'static str,
    /// The name; `*` at its end is an attribute, a group, a command or a value.
    pub name: &'static str,
    pub verdict: OptionVerdict,
    /// The limits, the setting or the reason.
    pub remark: &'static str,
    /// True if the option can have a condition: `{a}Preset Subject`.
    pub conditional: bool,
}

static OPTIONS: LazyLock<Vec<KnownOption>> = LazyLock::new(|| {
    let mut section = "";
    let mut options = Vec::new();
    for line in CATALOGUE.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            section = title;
        }
        let mut parts = line.splitn(3, '|').map(str::trim);
        let (Some(name), Some(verdict), Some(remark)) = (parts.next(), parts.next(), parts.next()) else { continue };
        let verdict = match verdict {
            "honoured" => OptionVerdict::Honoured,
            "replaced" => OptionVerdict::Replaced,
            _ => OptionVerdict::NotApplicable,
        };
        let (name, conditional) = name.strip_prefix("{}").map_or((name, false), |name| (name, true));
        options.push(KnownOption { section, name, verdict, remark, conditional });
    }
    options
});

/// Returns all options of ELOG, by subject.
pub fn catalogue() -> &'static [KnownOption] {
    &OPTIONS
}

/// Splits `{a}Preset Subject` into whether there is a condition, and the name.
fn without_condition(name: &str) -> (bool, &str) {
    let bare = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    bare.map_or((false, name), |(_, bare)| (true, bare.trim()))
}

/// Returns the option of the catalogue with this name. One with its own name, such as `Allow branching`, precedes the
/// pattern `Allow *`, and a long pattern precedes a short one.
fn find(name: &str) -> Option<&'static KnownOption> {
    let words: Vec<&str> = name.split_whitespace().collect();
    let found = OPTIONS.iter().filter(|known| fits(known.name, &words));
    found.max_by_key(|known| (!known.name.ends_with('*'), known.name.len()))
}

/// Returns the verdict on an option as a file has it, with a condition or without, and the remark.
pub fn verdict(name: &str) -> (OptionVerdict, String) {
    let (condition, bare) = without_condition(name);
    match find(bare) {
        Some(known) if condition && !known.conditional && known.verdict == OptionVerdict::Honoured => {
            (OptionVerdict::NotApplicable, "a condition holds only for options of forms".to_owned())
        }
        Some(known) => (known.verdict, known.remark.to_owned()),
        None => (OptionVerdict::Unknown, nearest(bare).map_or_else(String::new, |known| format!("did you mean `{known}`?"))),
    }
}

/// Returns the option whose name is the most like this one, if it is like it at all.
fn nearest(name: &str) -> Option<String> {
    let words: Vec<String> = key(name).split(' ').map(str::to_owned).collect();
    let near = |known: &'static KnownOption| {
        let fixed = known.name.trim_end_matches(" *");
        let count = fixed.split(' ').count();
        let (begin, rest) = words.split_at(count.min(words.len()));
        // An attribute or a value is the site's own word.
        let open = known.name.ends_with('*');
        let compared = if open { begin.join(" ") } else { words.join(" ") };
        let distance = strsim::damerau_levenshtein(&compared, &fixed.to_lowercase());
        let shown = if open && !rest.is_empty() { format!("{fixed} {}", rest.join(" ")) } else { known.name.to_owned() };
        (distance <= 1 + fixed.len() / 6 && (!open || !rest.is_empty())).then_some((distance, shown))
    };
    OPTIONS.iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// Returns true if these words match a pattern, whose `*` stands for one or more words.
fn fits(pattern: &str, name: &[&str]) -> bool {
    let pattern: Vec<&str> = pattern.split_whitespace().collect();
    let open = pattern.last() == Some(&"*");
    let fixed = pattern.len() - usize::from(open);
    let fits = if open { name.len() > fixed } else { name.len() == fixed };
    fits && name.iter().zip(&pattern[..fixed]).all(|(a, b)| a.eq_ignore_ascii_case(b))
}

/// Returns the catalogue as a page of the documentation.
pub fn page() -> String {
    let count = |verdict| OPTIONS.iter().filter(|known| known.verdict == verdict).count();
    let mut out = format!(
        "# Options of ELOG\nEvery option of `elogd.cfg` has one of three verdicts. `tampu book config check elogd.cfg` prints them for a \
         file.\n\n| verdict | meaning | options |\n|-|-|-|\n\
         | honoured | has the effect that it has in ELOG, within the limits named here | {} |\n\
         | replaced | a setting of Tampu has this effect | {} |\n\
         | not applicable | has no effect, for the reason named here | {} |\n\n\
         `*` is an attribute, a group, a command or a value. `{{}}` marks an option that can have a condition:\n\
         `{{a}}Preset Subject`. All options stay with their logbook, and an export writes them.\n",
        count(OptionVerdict::Honoured),
        count(OptionVerdict::Replaced),
        count(OptionVerdict::NotApplicable),
    );
    let mut section = "";
    for known in OPTIONS.iter() {
        if known.section != section {
            section = known.section;
            // Writing into a string cannot fail.
            let _ = write!(out, "\n## {section}\n| option | verdict | remark |\n|-|-|-|\n");
        }
        let condition = if known.conditional { "{}" } else { "" };
        let _ = writeln!(out, "| `{condition}{}` | {} | {} |", known.name, known.verdict, known.remark);
    }
    out
}

#[cfg(test)]
mod tests;
