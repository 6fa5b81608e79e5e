//! The settings of a book, as values. Every ELOG option that affects its pages is read only here.
//!
//! A book keeps the options of its section, its group and `[global]`, merged by [`crate::config`]. An option can have a
//! condition, `{a}Preset Subject = ...`. The condition holds while the value of an attribute sets `a`, as
//! `Options Type = Routine{a}` does. The option then precedes the one without a condition.

use std::{collections::HashMap, sync::Arc};

use tampu_logbook::book::{
    Book,
    elog_options::{is_on, key, list},
    same_name,
};

use crate::{
    option_values::leading_number,
    pages::command::{ENTRY_MENU, LIST_MENU, PageCommand},
};

mod attributes;
mod forms;
mod lists;
mod mail;
mod page;
mod threads;

pub use attributes::AttributeFormat;
pub use lists::MAX_PER_PAGE;
pub use mail::{MailForm, MailParts};

/// A condition: a list of alternatives, each of which is a list of parts that must all be set.
type Condition = Vec<Vec<String>>;

/// The settings of a book.
#[derive(Debug, Clone, Default)]
pub struct BookSettings {
    /// Options by name, in lower case with single blanks.
    options: Arc<HashMap<String, Vec<(Condition, String)>>>,
    /// The attributes' names as written, for the page of the configuration.
    attributes: Arc<[String]>,
    /// The conditions under which options are read that name none.
    active: ActiveConditions,
}

/// The way a list shows entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListMode {
    /// One line for each entry.
    #[default]
    Summary,
    /// Entries with their texts.
    Full,
    /// Replies below their parents.
    Threaded,
}

impl ListMode {
    /// Returns the mode with this name in an address, without case.
    pub fn named(name: &str) -> Option<ListMode> {
        [ListMode::Summary, ListMode::Full, ListMode::Threaded].into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }

    /// Returns the mode's name in an address.
    pub const fn name(self) -> &'static str {
        match self {
            ListMode::Summary => "summary",
            ListMode::Full => "full",
            ListMode::Threaded => "threaded",
        }
    }
}

/// The purpose for which a form is filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormOccasion {
    /// A new entry.
    New,
    Reply,
    /// The first reply to an entry.
    FirstReply,
    Edit,
    /// A new entry like another one.
    Duplicate,
}

/// The conditions that are set, as `a`.
pub type ActiveConditions = Vec<String>;

impl BookSettings {
    /// Reads the settings of a book.
    pub fn of(book: &Book) -> BookSettings {
        let attributes = book.attributes.iter().map(|attribute| attribute.name.clone()).collect();
        BookSettings { attributes, ..BookSettings::of_options(&book.elog) }
    }

    /// Reads options that belong to no book.
    pub fn of_options(written: &[(String, String)]) -> BookSettings {
        let mut options: HashMap<String, Vec<(Condition, String)>> = HashMap::with_capacity(written.len());
        for (name, value) in written {
            let (condition, name) = split(name);
            options.entry(key(name)).or_default().push((condition, value.clone()));
        }
        BookSettings { options: Arc::new(options), ..BookSettings::default() }
    }

    /// Returns the names of the attributes of the book.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.under(name, &self.active)
    }

    /// Returns the value under the active conditions; `None` if it is empty.
    fn under(&self, name: &str, set: &[String]) -> Option<&str> {
        self.written(name, set).filter(|value| !value.is_empty())
    }

    /// Returns the value under the active conditions, which may be empty.
    fn written(&self, name: &str, set: &[String]) -> Option<&str> {
        let found = self.options.get(&key(name))?;
        let holds = |condition: &Condition| {
            condition.iter().any(|together| together.iter().all(|one| set.iter().any(|set| set.eq_ignore_ascii_case(one))))
        };
        let conditional = found.iter().find(|(condition, _)| holds(condition));
        let found = conditional.or_else(|| found.iter().find(|(condition, _)| condition.is_empty()));
        found.map(|(_, value)| value.as_str())
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        self.get(name).map(list)
    }

    fn is_on(&self, name: &str, otherwise: bool) -> bool {
        self.get(name).map_or(otherwise, is_on)
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        let value = self.get(name)?.trim();
        value.parse().ok().or_else(|| leading_number(value)?.parse().ok())
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// `Menu commands`, `List Menu commands`, and those for guests; also returns whether they were configured.
    pub fn menu(&self, of_list: bool, guest: bool) -> (Vec<String>, bool) {
        let names: &[&str] = match (of_list, guest) {
            // ELOG before 2.0 called the menu of a list that of the command Find.
            (true, true) => &[
                "Guest List Menu commands",
                "Guest Find Menu commands",
                "Guest Menu commands",
                "List Menu commands",
                "Find Menu commands",
            ],
            (true, false) => &["List Menu commands", "Find Menu commands"],
            (false, true) => &["Guest Menu commands", "Menu commands"],
            (false, false) => &["Menu commands"],
        };
        if let Some(own) = names.iter().find_map(|name| self.list(name)) {
            return (own, true);
        }
        let default: &[PageCommand] = if of_list { &LIST_MENU } else { &ENTRY_MENU };
        (default.iter().map(|command| command.name().to_owned()).collect(), false)
    }

    /// Returns true if the menus allow a command: a configured menu has to list it.
    pub fn menus_allow(&self, command: PageCommand, guest: bool) -> bool {
        if !command.is_in_menus() {
            return true;
        }
        let menus = [self.menu(false, guest), self.menu(true, guest)];
        let lists = |commands: &[String]| commands.iter().any(|name| PageCommand::named(name) == Some(command));
        // Without a configured menu of entries, no command is restricted.
        !menus[0].1 || menus.iter().any(|(commands, _)| lists(commands))
    }

    /// `Allow <command>`: the users who may use it, if configured.
    pub fn allowed(&self, command: PageCommand) -> Option<Vec<String>> {
        self.list(&format!("Allow {}", command.name()))
    }

    /// `Deny <command>`: the users who may not use it.
    pub fn denied(&self, command: PageCommand) -> Vec<String> {
        self.list(&format!("Deny {}", command.name())).unwrap_or_default()
    }

    /// `Hosts allow` and `Hosts deny`.
    pub fn hosts(&self) -> (Vec<String>, Vec<String>) {
        (self.list("Hosts allow").unwrap_or_default(), self.list("Hosts deny").unwrap_or_default())
    }

    pub fn admins(&self) -> Vec<String> {
        self.list("Admin user").unwrap_or_default()
    }

    /// `Login user`: the users who may log in at all, if configured.
    pub fn login_users(&self) -> Option<Vec<String>> {
        self.list("Login user")
    }

    /// `Guest menu commands`: the commands of guests, if the book is open to them.
    pub fn guest_menu(&self) -> Option<Vec<String>> {
        self.list("Guest Menu commands")
    }

    /// `Self register`: 0 if nobody may register, 1 if anybody may, 2 if administrators are notified, 3 if an
    /// administrator has to approve.
    pub fn self_register(&self) -> u8 {
        self.number::<u8>("Self register").unwrap_or(0).min(3)
    }

    /// `Allow password change`: true if users may change their own password.
    pub fn allow_password_change(&self) -> bool {
        self.is_on("Allow password change", true)
    }

    /// `Forgot password link`: true if a new password can be requested by mail.
    pub fn forgot_password_link(&self) -> bool {
        self.is_on("Forgot password link", true)
    }

    /// `Restrict edit`: true if only the author can change an entry.
    pub fn restrict_edit(&self) -> bool {
        self.is_on("Restrict edit", false)
    }

    /// `Restrict edit time`, or `Admin restrict edit time`: the hours after which an entry cannot be changed.
    pub fn edit_hours(&self, admin: bool) -> Option<f64> {
        let name = if admin { "Admin restrict edit time" } else { "Restrict edit time" };
        self.number(name).filter(|hours| *hours > 0.0)
    }

    pub fn use_lock(&self) -> bool {
        self.is_on("Use Lock", false)
    }
}

/// Returns true if a list has a name.
pub fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| same_name(known, name))
}

/// Splits `{a,b&c}Preset Subject` into a condition and a name.
fn split(name: &str) -> (Condition, &str) {
    let Some((condition, name)) = name.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return (vec![], name) };
    let together = |part: &str| part.split('&').map(|one| one.trim().to_owned()).collect();
    (condition.split(',').map(together).collect(), name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;
    use tampu_logbook::{book::AttributeDef, entry::Encoding};

    fn settings(text: &str) -> BookSettings {
        let config = config::parse(format!("[b]\n{text}").as_bytes());
        BookSettings::of(&config.logbooks()[0].book())
    }

    #[test]
    fn a_book_goes_before_its_group_before_all() {
        let text = "[global]\nTheme = g\nEntries per page = 7\nTop group X = b\n[global X]\nEntries per page = 8\nReverse sort=1\n\
            [b]\nREVERSE  SORT = 0\n";
        let config = config::parse(text.as_bytes());
        let settings = BookSettings::of(&config.logbooks()[0].book());
        assert_eq!((settings.theme(), settings.per_page(), settings.reverse()), ("g", 8, false));
    }

    #[test]
    fn conditions_hold_alone_and_together() {
        let settings = settings(
            "Attributes = Type, System, Subject\nOptions Type = Routine{a}, Problem{b}, Other\nMOptions System = X{c}, Y\n\
             Preset Subject = plain\n{a}Preset Subject = routine\n{b&c}Preset Subject = both\n{b}Tooltip Type = b\n\
             {b}MOptions System = P, Q\n{b}Required Attributes = Subject\n",
        );
        let set =
            |type_: &'static str, system: &'static str| settings.set_by(|name| Some(if name == "Type" { type_ } else { system }));
        let preset = |set: &[String]| settings.preset("Subject", FormOccasion::New, set);
        assert_eq!(set("Problem", "X | Y"), ["b", "c"]);
        assert_eq!(preset(&set("Other", "")), Some("plain"));
        assert_eq!(preset(&set("Routine", "Y")), Some("routine"));
        assert_eq!(preset(&set("Problem", "Y")), Some("plain"));
        assert_eq!(preset(&set("Problem", "X")), Some("both"));
        assert!(settings.sets_conditions("type") && !settings.sets_conditions("Subject"));
        let b = set("Problem", "");
        assert_eq!((settings.tooltip("Type", &b), settings.tooltip("Type", &[])), ("b", ""));
        let def = |name: &str| AttributeDef { name: name.to_owned(), ..AttributeDef::default() };
        assert_eq!(settings.attribute(&def("System"), &b).options, ["P", "Q"]);
        let base = AttributeDef { options: ["X", "Y", "P", "Q", "new"].map(str::to_owned).to_vec(), ..def("System") };
        assert_eq!(settings.attribute(&base, &[]).options, ["X", "Y", "new"]);
        assert!(settings.attribute(&def("Subject"), &b).required && !settings.attribute(&def("Subject"), &[]).required);
    }

    #[test]
    fn menus_have_to_list_what_is_allowed() {
        let free = settings("");
        assert!(free.menus_allow(PageCommand::Edit, false) && free.menus_allow(PageCommand::CopyTo, false));
        let narrow = settings(
            "Menu commands = List, New, Copy to\nList Menu commands = New, CSV Import\nGuest menu commands = List, Find\n",
        );
        for (command, user, guest) in [
            (PageCommand::New, true, false),
            (PageCommand::CopyTo, true, false),
            (PageCommand::CsvImport, true, false),
            (PageCommand::Edit, false, false),
            (PageCommand::Find, false, true),
            (PageCommand::Download, true, true),
        ] {
            assert_eq!(narrow.menus_allow(command, false), user, "{command:?}");
            assert_eq!(narrow.menus_allow(command, true), guest, "{command:?} guest");
        }
    }

    #[test]
    fn encodings_and_formats() {
        use Encoding::{ElCode, Html, Markdown, Plain};
        assert_eq!((settings("").encoding(), settings("").encodings().len()), (Markdown, 4));
        let some = settings("Default encoding = 1\nAllowed encoding = 5\nFormat Subject = 1, big \"x, field, 80, 3");
        assert_eq!((some.encoding(), some.encodings()), (Plain, vec![Plain, Html]));
        assert_eq!(settings("Allow HTML = 0\n").encodings(), [ElCode, Plain]);
        let markdown = settings("Default encoding = 3\nAllowed encoding = 9\n");
        assert_eq!((markdown.encoding(), markdown.encodings()), (Markdown, vec![Markdown, Plain]));
        let format = settings("Format Subject = 1, big\"<x>, field, 80, 3").format("subject");
        assert_eq!((format.flags, format.width, format.rows), (1, None, None), "a quotation that is not closed holds the commas");
        let format = settings("Format Subject = 1, b<i>g, field, 80, 3").format("subject");
        assert_eq!(
            (format.class.as_str(), format.field_class.as_str(), format.width, format.rows),
            ("big", "field", Some(80), Some(3))
        );
    }
}
