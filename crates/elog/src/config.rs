//! `elogd.cfg`: sections with lines `Name = value`. If a name stands twice in a section, the first line counts.
//!
//! Every section but `[global]` and `[global <top group>]` is a logbook. A missing option is looked up in the section
//! of its top group, and then in `[global]`.

use std::path::{Path, PathBuf};

use tampu_logbook::book::{AttributeDef, AttributeKind, Book, elog_options::list, same_name};

use crate::{decode, options::unreadable};

/// Bytes of a value.
const MAX_VALUE: usize = 10_000;
/// Maximum depth of groups in groups.
const MAX_DEPTH: usize = 8;

/// A parsed `elogd.cfg`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ElogConfig {
    /// Its sections, in order.
    pub sections: Vec<ConfigSection>,
    /// Lines without a meaning: line number and reason.
    pub faults: Vec<(usize, String)>,
    /// All options with their lines, in order.
    pub statements: Vec<ConfigStatement>,
}

/// A line of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigStatement {
    pub line: usize,
    /// The name of its section.
    pub section: String,
    /// The name as written, with its condition.
    pub name: String,
    pub value: String,
    /// True if an earlier line of the section has the same name, so that this one is left out.
    pub again: bool,
}

/// A section of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConfigSection {
    /// The name between the brackets.
    pub name: String,
    /// Names and values as written, with conditions: `{a}Preset Type`.
    pub options: Vec<(String, String)>,
}

impl ConfigSection {
    /// The value of an option, compared without case.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(known, _)| same_option(known, name)).map(|(_, value)| value.as_str())
    }
}

/// Returns true if two names mean the same option: compared without case, and several blanks count as one.
fn same_option(a: &str, b: &str) -> bool {
    a.split_whitespace().map(str::to_lowercase).eq(b.split_whitespace().map(str::to_lowercase))
}

/// Reads a configuration.
pub fn parse(bytes: &[u8]) -> ElogConfig {
    let text = decode(bytes);
    let mut config = ElogConfig::default();
    for (at, line) in text.lines().enumerate() {
        let mut fault = |why: String| config.faults.push((at + 1, why));
        if let Some(name) = line.strip_prefix('[') {
            match name.split_once(']') {
                Some((name, _)) => config.sections.push(ConfigSection { name: name.trim().to_owned(), options: vec![] }),
                None => fault("a section without ']': left out".to_owned()),
            }
            continue;
        }
        if line.trim().is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            fault("a line without '=': left out".to_owned());
            continue;
        };
        let (name, mut value) = (name.trim(), value.trim());
        let Some(section) = config.sections.last_mut() else {
            fault("an option before the first section: left out".to_owned());
            continue;
        };
        if value.len() > MAX_VALUE {
            value = &value[..(0..=MAX_VALUE).rev().find(|&end| value.is_char_boundary(end)).unwrap_or(0)];
            config.faults.push((at + 1, format!("a value of more than {MAX_VALUE} bytes: cut")));
        }
        if let Some(why) = unreadable(name, value) {
            config.faults.push((at + 1, why));
        }
        let again = section.get(name).is_some();
        let (name, value) = (name.to_owned(), value.to_owned());
        config.statements.push(ConfigStatement {
            line: at + 1,
            section: section.name.clone(),
            name: name.clone(),
            value: value.clone(),
            again,
        });
        if !again {
            section.options.push((name, value));
        }
    }
    config
}

/// An option's text without the conditions it sets: `Routine{a}` is `Routine`.
fn without_condition(option: &str) -> String {
    match option.split_once('{') {
        Some((text, rest)) if rest.ends_with('}') => text.trim().to_owned(),
        _ => option.to_owned(),
    }
}

/// A logbook of a configuration.
#[derive(Debug, Clone)]
pub struct ConfiguredLogbook<'a> {
    config: &'a ElogConfig,
    section: &'a ConfigSection,
    group: Option<String>,
}

impl ElogConfig {
    /// Returns the name of the site in its `URL`, if it is a name that other hosts use.
    pub fn public_host(&self) -> Option<String> {
        let url = self.statements.iter().find(|line| same_option(&line.name, "URL"))?.value.trim();
        let host = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', ':']).next()?;
        let is_name = host.parse::<std::net::IpAddr>().is_err() && !host.is_empty() && !same_name(host, "localhost");
        is_name.then(|| host.to_lowercase())
    }

    /// Its logbooks, in order.
    pub fn logbooks(&self) -> Vec<ConfiguredLogbook<'_>> {
        let is_global = |name: &str| same_name(name, "global") || name.to_lowercase().starts_with("global ");
        let mut books: Vec<ConfiguredLogbook<'_>> = Vec::new();
        for section in self.sections.iter().filter(|section| !is_global(&section.name)) {
            if !books.iter().any(|book| same_name(&book.section.name, &section.name)) {
                books.push(ConfiguredLogbook { config: self, section, group: self.group_of(&section.name) });
            }
        }
        books
    }

    pub(crate) fn section(&self, name: &str) -> Option<&ConfigSection> {
        self.sections.iter().find(|section| same_name(&section.name, name))
    }

    fn group_of(&self, book: &str) -> Option<String> {
        self.section("global")?.options.iter().find_map(|(name, value)| {
            let group = name.get(.."Top group ".len()).filter(|start| start.eq_ignore_ascii_case("Top group "))?;
            self.has(&list(value), book, 0).then(|| name[group.len()..].trim().to_owned())
        })
    }

    /// Returns true if a list of logbooks and groups has a book.
    fn has(&self, members: &[String], book: &str, depth: usize) -> bool {
        let within = |member: &String| {
            let group = self.section("global").and_then(|global| global.get(&format!("Group {member}")));
            depth < MAX_DEPTH && group.is_some_and(|group| self.has(&list(group), book, depth + 1))
        };
        members.iter().any(|member| same_name(member, book) || within(member))
    }
}

impl ConfiguredLogbook<'_> {
    pub fn name(&self) -> &str {
        &self.section.name
    }

    /// Returns the value of an option from the book's own section, the top group's section, or `[global]`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.sections().find_map(|section| section.get(name))
    }

    fn sections(&self) -> impl Iterator<Item = &ConfigSection> {
        let group = self.group.as_ref().and_then(|group| self.config.section(&format!("global {group}")));
        [Some(self.section), group, self.config.section("global")].into_iter().flatten()
    }

    /// Returns all options of the logbook, its own first.
    pub fn options(&self) -> Vec<(String, String)> {
        let mut options: Vec<(String, String)> = Vec::new();
        for (name, value) in self.sections().flat_map(|section| &section.options) {
            if !options.iter().any(|(known, _)| same_option(known, name)) {
                options.push((name.clone(), value.clone()));
            }
        }
        options
    }

    /// Returns the directory of its files. `logbooks` replaces the configured `Logbook dir` on this computer.
    pub fn directory(&self, logbooks: &Path) -> PathBuf {
        if let Some(dir) = self.get("Data dir") {
            let dir = Path::new(dir);
            return if dir.is_absolute() { dir.to_owned() } else { logbooks.join(dir.file_name().unwrap_or(dir.as_os_str())) };
        }
        // A subdirectory that begins with / is an absolute path.
        logbooks.join(self.get("Subdir").unwrap_or(self.name()))
    }

    /// Returns the book of the logbook.
    pub fn book(&self) -> Book {
        let names = self.get("Attributes").map(list).unwrap_or_default();
        let names = if names.is_empty() { ["Author", "Type", "Category", "Subject"].map(str::to_owned).to_vec() } else { names };
        let listed = |option: &str| self.get(option).map(list).unwrap_or_default();
        let (required, locked) = (listed("Required Attributes"), listed("Locked Attributes"));
        let extendable = listed("Extendable Options");
        let has = |list: &[String], name: &str| list.iter().any(|member| same_name(member, name));
        let mut attributes: Vec<AttributeDef> = Vec::new();
        for name in names {
            if attributes.iter().any(|known| same_name(&known.name, &name)) {
                continue;
            }
            let (kind, options) = self.kind(&name);
            attributes.push(AttributeDef {
                kind,
                several: kind == AttributeKind::Text && !self.with_conditional(&format!("MOptions {name}"), vec![]).is_empty(),
                options: options.iter().map(|option| without_condition(option)).collect(),
                extendable: has(&extendable, &name),
                required: has(&required, &name),
                locked: has(&locked, &name),
                comment: self.get(&format!("Comment {name}")).unwrap_or_default().to_owned(),
                name,
                ..AttributeDef::default()
            });
        }
        let comment = self.get("Comment").unwrap_or_default().to_owned();
        Book { name: self.name().to_owned(), group: self.group.clone(), comment, attributes, elog: self.options() }
    }

    /// Adds the options that exist only under a condition, because the values of an entry do not depend on its form.
    fn with_conditional(&self, option: &str, mut options: Vec<String>) -> Vec<String> {
        for (name, value) in self.sections().flat_map(|section| &section.options) {
            let bare = name.strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(_, bare)| bare);
            if bare.is_some_and(|bare| same_option(bare, option)) {
                for more in list(value) {
                    if !options.iter().any(|known| without_condition(known) == without_condition(&more)) {
                        options.push(more);
                    }
                }
            }
        }
        options
    }

    fn kind(&self, name: &str) -> (AttributeKind, Vec<String>) {
        let kinds = [
            ("Options", AttributeKind::Options),
            ("MOptions", AttributeKind::Multiple),
            ("ROptions", AttributeKind::Radio),
            ("IOptions", AttributeKind::Radio),
        ];
        for (option, kind) in kinds {
            if let Some(value) = self.get(&format!("{option} {name}")) {
                if value.trim().eq_ignore_ascii_case("boolean") {
                    return (AttributeKind::Boolean, vec![]);
                }
                return (kind, self.with_conditional(&format!("{option} {name}"), list(value)));
            }
        }
        let kind = match self.get(&format!("Type {name}")).unwrap_or_default().to_lowercase().as_str() {
            "date" => AttributeKind::Date,
            "datetime" => AttributeKind::DateTime,
            "numeric" => AttributeKind::Numeric,
            "userlist" => AttributeKind::UserList,
            "muserlist" => AttributeKind::UserLists,
            _ => AttributeKind::Text,
        };
        (kind, vec![])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CONFIG: &str = "; a comment\n[global]\nport = 8080\nTop group Detectors = RICH, \"Muon, big\"\nTheme = default\n\
        [global Detectors]\nTheme = dark\n\
        [RICH]\nTheme=own\nTheme = second\nComment = RICH's book\nAttributes = Author, Type, Day, Systems, Done, Author\n\
        Options Type = Routine{a}, \"Problem, big\", \"with \"\" mark\"\n{a}Preset Subject = x\nType Day = datetime\n\
        {a}MOptions Systems = B, C{x}\n\
        MOptions Systems = A, B\nOptions Done = boolean\nRequired Attributes = author\nExtendable Options = Type\n\
        Locked Attributes = Author\nComment Type = what it was\n\
        no equals sign\n[Muon, big]\nSubdir = muon\n[broken\n[rich]\nPort = 1\n";

    #[test]
    fn logbooks_inherit() {
        let config = parse(CONFIG.as_bytes());
        assert_eq!(config.faults.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [23, 26]);
        let books = config.logbooks();
        assert_eq!(books.iter().map(ConfiguredLogbook::name).collect::<Vec<_>>(), ["RICH", "Muon, big"]);
        assert_eq!(
            (books[0].get("THEME"), books[1].get("theme"), books[1].get("Port")),
            (Some("own"), Some("dark"), Some("8080"))
        );
        assert_eq!(books[1].directory(Path::new("/x")), Path::new("/x/muon"));
        assert_eq!(books[0].directory(Path::new("/x")), Path::new("/x/RICH"));
        let book = books[0].book();
        book.check().unwrap();
        assert_eq!((book.group.as_deref(), book.comment.as_str()), (Some("Detectors"), "RICH's book"));
        let kinds: Vec<_> = book.attributes.iter().map(|attribute| (attribute.name.as_str(), attribute.kind)).collect();
        use AttributeKind::{Boolean, DateTime, Multiple, Options, Text};
        assert_eq!(kinds, [("Author", Text), ("Type", Options), ("Day", DateTime), ("Systems", Multiple), ("Done", Boolean)]);
        assert_eq!(book.attributes[1].options, ["Routine", "Problem, big", "with \" mark"]);
        assert_eq!(book.attributes[3].options, ["A", "B", "C"]);
        assert!(book.attributes[0].required && book.attributes[0].locked && book.attributes[1].extendable);
        let defaults: Vec<_> = books[1].book().attributes.into_iter().map(|attribute| attribute.name).collect();
        assert_eq!(defaults, ["Author", "Type", "Category", "Subject"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_configuration(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "(\\[|\\]|\\{a\\}|=|,|\"|\n|Top group |global|[a-c ]){0,60}") {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                let config = parse(bytes);
                for book in config.logbooks() {
                    let _ = (book.book(), book.options(), book.directory(Path::new("/x")));
                }
            }
        }
    }
}
