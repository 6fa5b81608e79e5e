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
    option_values::{days, leading_number},
    pages::{
        charset,
        command::{ENTRY_MENU, LIST_MENU, PageCommand},
    },
};

mod attributes;
mod forms;
mod mail;
mod threads;

pub use attributes::AttributeFormat;
pub use mail::{MailForm, MailParts};

/// The default entries of a page.
const PER_PAGE: usize = 20;
/// Entries of a page at most.
pub const MAX_PER_PAGE: usize = 1000;

/// The hours for which a login is kept by default.
const LOGIN_HOURS: f64 = 744.0;

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

    // The whole page.

    /// `Page Title` of an entry, `List Page Title` of a list, or `Edit Page Title` of a form. As in elogd, a list does not
    /// have the title of entries.
    pub fn page_title(&self, of: &str) -> Option<&str> {
        match of {
            "list" => self.get("List Page Title"),
            "edit" => self.get("Edit Page Title"),
            _ => self.get("Page Title"),
        }
    }

    /// `Welcome Title`, above the list of books.
    pub fn welcome_title(&self) -> Option<&str> {
        self.get("Welcome Title")
    }

    /// `Main Tab`: the text of the tab of all books, and its address if configured.
    pub fn main_tab(&self) -> Option<(&str, Option<&str>)> {
        self.get("Main Tab").map(|tab| (tab, self.get("Main Tab URL")))
    }

    /// `Logbook Tabs`: whether the other books are in a row above a page.
    pub fn logbook_tabs(&self) -> bool {
        self.is_on("Logbook Tabs", true)
    }

    /// `Hidden`: whether the book is neither in that row nor on the page of all books.
    pub fn hidden(&self) -> bool {
        self.is_on("Hidden", false)
    }

    /// `Show top groups`: whether the page of all books has the groups first.
    pub fn show_top_groups(&self) -> bool {
        self.is_on("Show top groups", true)
    }

    /// `Top text` and `Bottom text`, above and below a page.
    pub fn top_text(&self) -> &str {
        self.text("Top text")
    }

    /// `Bottom text`, below a page.
    pub fn bottom_text(&self) -> &str {
        self.text("Bottom text")
    }

    pub fn theme(&self) -> &str {
        self.get("Theme").unwrap_or("default")
    }

    /// `CSS`: files of styles that are added.
    pub fn css(&self) -> &str {
        self.text("CSS")
    }

    /// `Title image` and `Title image URL`.
    pub fn title_image(&self) -> (&str, &str) {
        (self.text("Title image"), self.text("Title image URL"))
    }

    pub fn help_url(&self) -> Option<&str> {
        self.get("Help URL")
    }

    /// `Refresh`: the number of seconds after which a list is loaded again.
    pub fn refresh(&self) -> Option<u32> {
        self.number("Refresh").filter(|seconds| *seconds > 0)
    }

    /// `URL`: the public address of the site.
    pub fn url(&self) -> Option<&str> {
        self.get("URL")
    }

    /// `Language`: the name of the language of the pages.
    pub fn language(&self) -> Option<&str> {
        self.get("Language")
    }

    // Dates.

    /// `Time format`, of an attribute if it has its own.
    pub fn time_format(&self, attribute: Option<&str>) -> &str {
        let own = attribute.and_then(|name| self.get(&format!("Time format {name}")));
        own.or_else(|| self.get("Time format")).unwrap_or(crate::pages::clock::TIME_FORMAT)
    }

    /// `Date format`, of an attribute if it has its own.
    pub fn date_format(&self, attribute: Option<&str>) -> &str {
        let own = attribute.and_then(|name| self.get(&format!("Date format {name}")));
        own.or_else(|| self.get("Date format")).unwrap_or(crate::pages::clock::DATE_FORMAT)
    }

    // Lists.

    /// `Display mode`, and `Start page` if it has a mode.
    pub fn mode(&self) -> ListMode {
        self.get("Display mode").and_then(|mode| ListMode::named(mode.trim())).unwrap_or_default()
    }

    /// `Mode commands`: true if a list offers its modes.
    pub fn mode_commands(&self) -> bool {
        self.is_on("Mode commands", true)
    }

    /// `Start page`: the address that a book's bare address stands for: `?mode=full`, `last20`, `0?cmd=New`.
    pub fn start_page(&self) -> Option<&str> {
        self.get("Start page").map(str::trim).filter(|page| !page.is_empty())
    }

    /// `Entries per page`.
    pub fn per_page(&self) -> usize {
        self.number("Entries per page").unwrap_or(PER_PAGE).clamp(1, MAX_PER_PAGE)
    }

    /// `All display limit`: the maximum number of entries of a book that can be shown at once.
    pub fn all_limit(&self) -> u64 {
        self.number("All display limit").unwrap_or(500)
    }

    /// `Reverse sort`: the newest first.
    pub fn reverse(&self) -> bool {
        self.is_on("Reverse sort", false)
    }

    /// `Sort Attributes`: the attributes that a list is sorted by.
    pub fn sort_attributes(&self) -> Vec<String> {
        self.list("Sort Attributes").unwrap_or_default()
    }

    /// `Show text`: true if a line of a list has some of the text, and a form a field for it.
    pub fn show_text(&self) -> bool {
        self.is_on("Show text", true)
    }

    /// `Summary lines`: the number of these lines.
    pub fn summary_lines(&self) -> usize {
        self.number("Summary lines").unwrap_or(3)
    }

    /// `Summary line length`: the number of characters after which such a line is broken.
    pub fn summary_line_length(&self) -> usize {
        self.number("Summary line length").unwrap_or(40).max(1)
    }

    /// `List display`: the columns of a list; `ID`, `Date` and attributes. `Guest list display` for guests.
    pub fn columns(&self, guest: bool) -> Vec<String> {
        let own = if guest { self.list("Guest list display") } else { None };
        own.or_else(|| self.list("List display"))
            .unwrap_or_else(|| ["ID", "Date"].into_iter().map(str::to_owned).chain(self.attributes.iter().cloned()).collect())
    }

    /// `Show attributes`: the attributes of an entry's page; all by default. `Guest display` for guests.
    pub fn shows(&self, attribute: &str, guest: bool) -> bool {
        let own = if guest { self.list("Guest display") } else { None };
        own.or_else(|| self.list("Show attributes")).is_none_or(|shown| has(&shown, attribute))
    }

    /// `ID display`: the format of an entry's number.
    pub fn id_display(&self) -> Option<&str> {
        self.get("ID display")
    }

    /// `Thread display`: the format of an entry's line in a thread.
    pub fn thread_display(&self) -> Option<&str> {
        self.get("Thread display")
    }

    /// `Expand default`: the shown part of threads: 0 their first entries, 1 all in one line each, 2 and 3 with their
    /// texts.
    pub fn expand(&self) -> u8 {
        self.number("Expand default").unwrap_or(1)
    }

    /// `Last default`: the days that a list goes back by default; a number, or a name of ELOG's form.
    pub fn last(&self) -> Option<i64> {
        self.get("Last default").and_then(days).filter(|days| *days > 0)
    }

    /// `Show last default`: the days that the form of a search goes back by default.
    pub fn show_last(&self) -> Option<i64> {
        self.get("Show last default").and_then(days).filter(|days| *days > 0)
    }

    /// `Search all logbooks`: 0 if a search cannot cover all books, 2 if it does by default.
    pub fn search_all(&self) -> u8 {
        self.number("Search all logbooks").unwrap_or(1)
    }

    /// `Case sensitive search`.
    pub fn case_sensitive(&self) -> bool {
        self.is_on("Case sensitive search", false)
    }

    /// `Quick filter`: attributes, or `Date`, that can be chosen above a list.
    pub fn quick_filters(&self) -> Vec<String> {
        self.list("Quick filter").unwrap_or_default()
    }

    /// `Link display`: the columns that link to the entry; all by default.
    pub fn links(&self, column: &str) -> bool {
        self.list("Link display").is_none_or(|linked| has(&linked, column))
    }

    /// `IOptions <attribute>`: true if the values of an attribute are images.
    pub fn is_icon(&self, attribute: &str) -> bool {
        self.get(&format!("IOptions {attribute}")).is_some()
    }

    /// `Icon <attribute> <value>`: the image before a value.
    pub fn icon(&self, attribute: &str, value: &str) -> Option<&str> {
        self.get(&format!("Icon {attribute} {value}"))
    }

    /// `Icon comment <image>`: the meaning of an image.
    pub fn icon_comment<'s>(&'s self, image: &'s str) -> &'s str {
        self.get(&format!("Icon comment {image}")).unwrap_or(image)
    }

    /// `Thread icon`: the attribute whose image is at the line of an entry in a thread.
    pub fn thread_icon(&self) -> Option<&str> {
        self.get("Thread icon")
    }

    /// `Welcome page`: the name of a page that precedes the list.
    pub fn welcome_page(&self) -> Option<&str> {
        self.get("Welcome page")
    }

    /// `Submit page`: the name of a page that follows a new entry.
    pub fn submit_page(&self) -> Option<&str> {
        self.get("Submit page")
    }

    /// `Selection page` in place of the page of all books, for guests `Guest Selection page`.
    pub fn selection_page(&self, guest: bool) -> Option<&str> {
        let own = if guest { self.get("Guest Selection page") } else { None };
        own.or_else(|| self.get("Selection page"))
    }

    /// `Menu text`, `List Menu text` with its old name `Find menu text`: the name of a page below the menu.
    pub fn menu_text(&self, of_list: bool) -> Option<&str> {
        if of_list { self.get("List Menu text").or_else(|| self.get("Find menu text")) } else { self.get("Menu text") }
    }

    /// `Filter Menu text`: the name of a page beside the quick filters.
    pub fn filter_menu_text(&self) -> Option<&str> {
        self.get("Filter Menu text")
    }

    /// `Cell Style <attribute> <value>`.
    pub fn cell_style(&self, attribute: &str, value: &str) -> &str {
        self.text(&format!("Cell Style {attribute} {value}"))
    }

    /// `charset`: true if pages are sent in ISO-8859-1.
    pub fn is_latin1(&self) -> bool {
        self.get("charset").is_some_and(charset::is_latin1)
    }

    /// `Style <attribute> <value>`: the style of the line of an entry with this value.
    pub fn line_style(&self, attribute: &str, value: &str) -> Option<&str> {
        self.get(&format!("Style {attribute} {value}"))
    }

    /// `Enable browsing`: true if the page of an entry leads to the next one.
    pub fn browsing(&self) -> bool {
        self.is_on("Enable browsing", true)
    }

    /// `Filtered browsing`: true if the page of an entry can lead to the next one with the same value.
    pub fn filtered_browsing(&self) -> bool {
        self.is_on("Filtered browsing", false)
    }

    /// `Back to main`: true if the command List leads to the page of all books.
    pub fn back_to_main(&self) -> bool {
        self.is_on("Back to main", false)
    }

    /// `Logout to URL`, and `Logout to main`, which is an empty address here.
    pub fn after_logout(&self) -> Option<&str> {
        self.get("Logout to URL").or_else(|| self.is_on("Logout to main", false).then_some(""))
    }

    /// `Login expiration`: the hours for which a login is kept if the user wants it.
    pub fn login_hours(&self) -> f64 {
        self.number("Login expiration").filter(|hours: &f64| hours.is_finite() && *hours >= 0.0).unwrap_or(LOGIN_HOURS)
    }

    /// `Last submission`: the format of the newest entry on the page of all books.
    pub fn last_submission(&self) -> Option<&str> {
        self.get("Last submission")
    }

    /// `Expand selection page`: true if the page of all books shows the books of all groups.
    pub fn expand_selection(&self) -> bool {
        self.is_on("Expand selection page", true)
    }

    /// `protect selection page`: true if only users see the page of all books.
    pub fn protect_selection(&self) -> bool {
        self.is_on("Protect selection page", false)
    }

    /// `Hide comments`: true if the page of all books has no descriptions.
    pub fn hide_comments(&self) -> bool {
        self.is_on("Hide comments", false)
    }

    /// `Bottom text login`, below the form to log in.
    pub fn login_text(&self) -> &str {
        self.text("Bottom text login")
    }

    /// `Allow branching`: true if an entry can have several replies.
    pub fn branching(&self) -> bool {
        self.is_on("Allow branching", true)
    }

    /// `Copy to` and `Move to`: true if entries can go to this book.
    pub fn goes_to(&self, book: &str, moving: bool) -> bool {
        let targets = if moving { self.list("Move to") } else { self.list("Copy to") };
        targets.is_none_or(|targets| has(&targets, book))
    }

    /// `Search slave`: true if this site serves searches beside an elogd, and changes nothing.
    pub fn search_slave(&self) -> bool {
        self.is_on("Search slave", false)
    }

    // Menus and permissions.

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
        let format = settings("Format Subject = 1, big\"<x>, field, 80, 3").format("subject");
        assert_eq!((format.flags, format.width, format.rows), (1, None, None), "a quotation that is not closed holds the commas");
        let format = settings("Format Subject = 1, b<i>g, field, 80, 3").format("subject");
        assert_eq!(
            (format.class.as_str(), format.field_class.as_str(), format.width, format.rows),
            ("big", "field", Some(80), Some(3))
        );
    }
}
