//! The policy file: reading with line numbers, and changes that keep its comments.
//!
//! ```toml
//! defaults = "usual"
//!
//! [groups]
//! shift = ["user:zoe", "host:pc*"]
//!
//! [[deny]]
//! who = "key"
//! may = ["write"]
//! what = "event/sr/vacuum/**"
//! why = "only this host's servers publish the vacuum"
//! ```

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use tampu_bus::access::{BadRule, Defaults, Effect, Place, Rule, Who};
use toml::Spanned;

use crate::untrusted_file::{self, Link};

/// Longest policy file in bytes.
const LONGEST: u64 = 1 << 20;

/// Text of a file whose last rule was removed.
const WITHOUT_RULES: &str = "defaults = \"usual\"\n";

/// Errors of a policy file.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read or written.
    #[error("the policy file {path}: {why}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        why: io::Error,
    },
    /// A line is invalid.
    #[error("the policy file {path}, line {line}: {why}")]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The reason, in words.
        why: String,
    },
    /// The file is gone or empty, and had rules before.
    #[error(
        "the policy file {path} is gone or empty, and had rules: put it back; 'defaults = \"usual\"' alone is a file without \
         rules"
    )]
    Gone {
        /// Path of the file.
        path: PathBuf,
    },
    /// A rule of the hub's configuration is invalid.
    #[error("an [[allow]] of the hub's configuration: {0}")]
    Setting(#[from] BadRule),
    /// No rule begins at that line.
    #[error("no rule begins at line {line} of {path}; 'tampu access list' shows the lines")]
    NoRule {
        /// Path of the file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PolicyText {
    defaults: Defaults,
    allow: Vec<Spanned<RuleText>>,
    deny: Vec<Spanned<RuleText>>,
    groups: BTreeMap<String, Vec<Who>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    #[serde(default)]
    who: Who,
    may: Vec<String>,
    what: String,
    why: Option<String>,
}

/// Content of a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyFile {
    /// Decisions without a rule.
    pub defaults: Defaults,
    /// The rules, in the order of their lines.
    pub rules: Vec<Rule>,
    /// Members of each group.
    pub groups: BTreeMap<String, Vec<Who>>,
}

fn line_at(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

impl PolicyFile {
    /// Reads a file. Returns `None` for a missing or empty one.
    pub fn read(path: &Path) -> Result<Option<PolicyFile>, PolicyError> {
        let read = text(path).map_err(|why| PolicyError::Io { path: path.to_owned(), why })?;
        read.map(|text| PolicyFile::parse(&text, path)).transpose()
    }

    /// Reads a file's text. The path is for messages and for the places of rules.
    pub fn parse(text: &str, path: &Path) -> Result<PolicyFile, PolicyError> {
        let at = |line, why| PolicyError::Line { path: path.to_owned(), line, why };
        let PolicyText { defaults, allow, deny, groups } = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            at(line_at(text, offset), error.message().trim().replace('\n', "; "))
        })?;
        let mut rules = Vec::new();
        for (effect, all) in [(Effect::Allow, allow), (Effect::Deny, deny)] {
            for one in all {
                let line = line_at(text, one.span().start);
                let RuleText { who, may, what, why } = one.into_inner();
                let rule = Rule::new(effect, who, &may, &what).and_then(|rule| rule.with_groups(&groups));
                let rule = rule.map_err(|why| at(line, why.to_string()))?;
                rules.push(Rule { why, place: Some(Place { file: path.to_owned(), line }), ..rule });
            }
        }
        rules.sort_by_key(|rule| rule.place.as_ref().map(|place| place.line));
        Ok(PolicyFile { defaults, rules, groups })
    }

    /// Adds a rule at the end of the file, and returns its line.
    pub fn add(path: &Path, rule: &Rule) -> Result<usize, PolicyError> {
        let mut text = text_of(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let line = line_at(&text, text.len());
        text.push_str(&written(rule));
        // Checked before it is written, as every change.
        PolicyFile::parse(&text, path)?;
        write(path, &text)?;
        Ok(line)
    }

    /// Removes the rule that begins at a line, and returns it.
    pub fn remove(path: &Path, line: usize) -> Result<Rule, PolicyError> {
        let text = text_of(path)?;
        let before = PolicyFile::parse(&text, path)?;
        let at = |rule: &Rule| rule.place.as_ref().map(|place| place.line);
        let no_rule = || PolicyError::NoRule { path: path.to_owned(), line };
        let index = before.rules.iter().position(|rule| at(rule) == Some(line)).ok_or_else(no_rule)?;
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_header = |text: &str| text.trim_start().starts_with('[');
        let rest = lines.get(line..).unwrap_or_default();
        let length = rest.iter().position(|text| is_header(text)).unwrap_or(rest.len());
        // Comments directly above the next table belong to it.
        let kept = rest[..length].iter().rev().take_while(|text| text.trim_start().starts_with('#')).count();
        lines.drain(line - 1..line + length - kept);
        let after = lines.concat();
        let same = |rules: &[Rule]| rules.iter().map(|rule| (rule.to_string(), rule.why.clone())).collect::<Vec<_>>();
        let mut expected = before.rules.clone();
        let removed = expected.remove(index);
        let found = PolicyFile::parse(&after, path)?;
        // A file in another style of TOML is left to its author.
        if same(&found.rules) != same(&expected) || found.defaults != before.defaults {
            let why = "the rule cannot be removed without touching others; edit the file".to_owned();
            return Err(PolicyError::Line { path: path.to_owned(), line, why });
        }
        // An empty file is one that an editor has not finished.
        write(path, if after.is_empty() { WITHOUT_RULES } else { &after })?;
        Ok(removed)
    }
}

/// Returns the text of a policy file; `None` for a missing or empty one.
pub fn text(path: &Path) -> io::Result<Option<String>> {
    // Administrators may link it.
    untrusted_file::text(path, LONGEST, Link::Followed)
}

fn text_of(path: &Path) -> Result<String, PolicyError> {
    match fs::read_to_string(path) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|why| PolicyError::Io { path: path.to_owned(), why }),
    }
}

/// Returns a rule as a table of the file.
fn written(rule: &Rule) -> String {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let verbs: Vec<String> = rule.may.iter().map(|verb| quoted(verb.name())).collect();
    let mut text = format!(
        "[[{}]]\nwho = {}\nmay = [{}]\nwhat = {}\n",
        rule.effect.name(),
        quoted(&rule.who.to_string()),
        verbs.join(", "),
        quoted(&rule.what)
    );
    if let Some(why) = &rule.why {
        text.push_str(&format!("why = {}\n", quoted(why)));
    }
    text
}

/// Replaces the file in one step, so that no reader sees half of it.
fn write(path: &Path, text: &str) -> Result<(), PolicyError> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let failed = |why| PolicyError::Io { path: path.to_owned(), why };
    let fresh = path.with_extension("toml.new");
    let _ = fs::remove_file(&fresh);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    fs::rename(&fresh, path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# The site's rules.\ndefaults = \"usual\"\n\n[[deny]]\nwho = \"key\"\nmay = [\"write\"]\n\
                        what = \"event/sr/**\"\nwhy = \"vacuum\"\n\n# Shift leaders.\n[[allow]]\nwho = \"host:ops*\"\n\
                        may = [\"change\"]\nwhat = \"log/levels\"\n";

    #[test]
    fn rules_know_their_lines_and_a_fault_names_its_line() {
        let path = Path::new("policy.toml");
        let read = PolicyFile::parse(TEXT, path).unwrap();
        let places: Vec<String> = read.rules.iter().map(|rule| rule.place.as_ref().unwrap().to_string()).collect();
        assert_eq!(places, ["policy.toml:4", "policy.toml:11"]);
        assert_eq!(read.rules[0].to_string(), "deny key write event/sr/**");
        let grouped = "[groups]\nshift = [\"user:zoe\", \"host:pc*\"]\n\n[[deny]]\nwho = \"group:shift\"\nmay = [\"read\"]\nwhat = \"**\"\n";
        let grouped = PolicyFile::parse(grouped, path).unwrap();
        assert_eq!((grouped.rules[0].members.len(), grouped.rules[0].to_string().as_str()), (2, "deny group:shift read **"));
        for (text, line) in [
            ("defaults = \"all\"\n", 1),
            ("\n\n[[allow]]\nwho = \"everybody\"\nmay = [\"read\"]\nwhat = \"**\"\n", 4),
            ("[[allow]]\nmay = [\"look\"]\nwhat = \"**\"\n", 1),
            ("[[allow]]\nmay = [\"read\"]\nwhat = \"**\"\n\n[[permit]]\n", 5),
            ("[[allow]\n", 1),
            ("[[deny]]\nwho = \"group:none\"\nmay = [\"read\"]\nwhat = \"**\"\n", 1),
        ] {
            let error = PolicyFile::parse(text, path).unwrap_err();
            assert!(error.to_string().starts_with(&format!("the policy file policy.toml, line {line}: ")), "{error} of {text}");
        }
    }

    #[test]
    fn a_rule_is_added_and_removed_and_comments_stay() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        let rule = Rule::new(Effect::Allow, Who::Key, &["backup"], "backup").unwrap();
        // The first rule makes the file.
        assert_eq!(PolicyFile::add(&path, &rule).unwrap(), 1);
        assert_eq!(PolicyFile::read(&path).unwrap().unwrap().rules.len(), 1);

        fs::write(&path, TEXT).unwrap();
        let line = PolicyFile::add(&path, &Rule { why: Some("a \"quote\"".to_owned()), ..rule.clone() }).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(TEXT), "{text}");
        assert_eq!(text.lines().nth(line - 1), Some("[[allow]]"));
        assert_eq!(PolicyFile::read(&path).unwrap().unwrap().rules[2].why.as_deref(), Some("a \"quote\""));

        assert!(matches!(PolicyFile::remove(&path, 5), Err(PolicyError::NoRule { line: 5, .. })));
        assert_eq!(PolicyFile::remove(&path, 4).unwrap().to_string(), "deny key write event/sr/**");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# The site's rules.\ndefaults = \"usual\"\n\n# Shift leaders.\n[[allow]]\n"), "{text}");
        assert_eq!(PolicyFile::read(&path).unwrap().unwrap().rules.len(), 2);
        // The last rule, at the end of the file.
        let line = PolicyFile::read(&path).unwrap().unwrap().rules[1].place.clone().unwrap().line;
        PolicyFile::remove(&path, line).unwrap();
        assert_eq!(PolicyFile::read(&path).unwrap().unwrap().rules.len(), 1);
    }

    #[test]
    fn a_rule_inside_another_ones_line_is_left_to_the_author() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("policy.toml");
        let text = "allow = [{ may = [\"read\"], what = \"a\" }, { may = [\"read\"], what = \"b\" }]\n";
        fs::write(&path, text).unwrap();
        assert!(PolicyFile::remove(&path, 1).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
