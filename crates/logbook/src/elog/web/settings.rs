//! What a book's configuration says, as values: every option of ELOG's that has an effect on its pages is asked for here and nowhere else.
//!
//! A book keeps its section, its group's and `[global]`'s, already laid over one another ([`crate::elog::config`]). An option can have a
//! condition, `{a}Preset Subject = ...`: it holds while the value of some attribute sets `a`, as `Options Type = Routine{a}` has it, and
//! then it goes before the one without.

use std::collections::HashMap;

use super::command::{Command, ENTRY_MENU, LIST_MENU};
use crate::{
    book::{AttributeDef, AttributeKind, Book, same_name},
    elog::config::list,
    entry::Encoding,
};

/// Entries of a page, where a book says nothing.
const PER_PAGE: usize = 20;
/// Entries of a page at most.
pub const MAX_PER_PAGE: usize = 1000;

/// A condition: any of these, each of which is several together.
type Condition = Vec<Vec<String>>;

/// What a book's configuration says.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// By name, in lower case with single blanks.
    options: HashMap<String, Vec<(Condition, String)>>,
    /// Names as they stand, for the page that shows them.
    attributes: Vec<String>,
}

/// How a list shows entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// A line each.
    #[default]
    Summary,
    /// With their texts.
    Full,
    /// Answers below what they answer.
    Threaded,
}

impl Mode {
    /// As it is named in an address, without case.
    pub fn named(name: &str) -> Option<Mode> {
        [Mode::Summary, Mode::Full, Mode::Threaded].into_iter().find(|mode| mode.name().eq_ignore_ascii_case(name))
    }

    /// In an address.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Summary => "summary",
            Mode::Full => "full",
            Mode::Threaded => "threaded",
        }
    }
}

/// For what a form is filled in before somebody sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// A new entry.
    New,
    /// An answer.
    Reply,
    /// The first answer to an entry.
    FirstReply,
    /// A change.
    Edit,
    /// A new entry like another one.
    Duplicate,
}

/// The conditions that are set, as `a`.
pub type Set = Vec<String>;

impl Settings {
    /// Those of a book.
    pub fn of(book: &Book) -> Settings {
        let mut options: HashMap<String, Vec<(Condition, String)>> = HashMap::with_capacity(book.elog.len());
        for (name, value) in &book.elog {
            let (condition, name) = split(name);
            options.entry(key(name)).or_default().push((condition, value.clone()));
        }
        Settings { options, attributes: book.attributes.iter().map(|attribute| attribute.name.clone()).collect() }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.under(name, &[])
    }

    /// The value under conditions that are set.
    fn under(&self, name: &str, set: &[String]) -> Option<&str> {
        let found = self.options.get(&key(name))?;
        let holds = |condition: &Condition| {
            condition.iter().any(|together| together.iter().all(|one| set.iter().any(|set| set.eq_ignore_ascii_case(one))))
        };
        let conditional = found.iter().find(|(condition, _)| holds(condition));
        let found = conditional.or_else(|| found.iter().find(|(condition, _)| condition.is_empty()));
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn list(&self, name: &str) -> Option<Vec<String>> {
        self.get(name).map(list)
    }

    fn is_on(&self, name: &str, otherwise: bool) -> bool {
        self.get(name).map_or(otherwise, |value| value.trim() != "0")
    }

    fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.get(name)?.trim().parse().ok()
    }

    fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    // The whole page.

    /// `Page Title`, or that of a list or a form.
    pub fn page_title(&self, of: &str) -> Option<&str> {
        let own = match of {
            "list" => self.get("List Page Title"),
            "edit" => self.get("Edit Page Title"),
            _ => None,
        };
        own.or_else(|| self.get("Page Title"))
    }

    /// `Welcome Title`, above the list of books.
    pub fn welcome_title(&self) -> Option<&str> {
        self.get("Welcome Title")
    }

    /// `Main Tab`: what the tab of all books says, and where it leads if not there.
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

    /// See [`Settings::top_text`].
    pub fn bottom_text(&self) -> &str {
        self.text("Bottom text")
    }

    /// `Theme`.
    pub fn theme(&self) -> &str {
        self.get("Theme").unwrap_or("default")
    }

    /// `CSS`: files of styles that are added.
    pub fn css(&self) -> Vec<String> {
        self.list("CSS").unwrap_or_default()
    }

    /// `Title image` and `Title image URL`.
    pub fn title_image(&self) -> (&str, &str) {
        (self.text("Title image"), self.text("Title image URL"))
    }

    /// `Help URL`.
    pub fn help_url(&self) -> Option<&str> {
        self.get("Help URL")
    }

    /// `Refresh`: after so many seconds a list is loaded again.
    pub fn refresh(&self) -> Option<u32> {
        self.number("Refresh").filter(|seconds| *seconds > 0)
    }

    /// `URL`: where the site is for the world.
    pub fn url(&self) -> Option<&str> {
        self.get("URL")
    }

    // Dates.

    /// `Time format`, of an attribute if it has its own.
    pub fn time_format(&self, attribute: Option<&str>) -> &str {
        let own = attribute.and_then(|name| self.get(&format!("Time format {name}")));
        own.or_else(|| self.get("Time format")).unwrap_or(super::clock::TIME_FORMAT)
    }

    /// `Date format`, of an attribute if it has its own.
    pub fn date_format(&self, attribute: Option<&str>) -> &str {
        let own = attribute.and_then(|name| self.get(&format!("Date format {name}")));
        own.or_else(|| self.get("Date format")).unwrap_or(super::clock::DATE_FORMAT)
    }

    // Lists.

    /// `Display mode`, and `Start page` where that says more.
    pub fn mode(&self) -> Mode {
        self.get("Display mode").and_then(|mode| Mode::named(mode.trim())).unwrap_or_default()
    }

    /// `Start page`: what a book's address stands for, as the rest of an address: `?mode=full`, `last20`, `0?cmd=New`.
    pub fn start_page(&self) -> Option<&str> {
        self.get("Start page").map(str::trim).filter(|page| !page.is_empty())
    }

    /// `Entries per page`.
    pub fn per_page(&self) -> usize {
        self.number("Entries per page").unwrap_or(PER_PAGE).clamp(1, MAX_PER_PAGE)
    }

    /// `All display limit`: entries up to which all of a book's can be shown at once.
    pub fn all_limit(&self) -> u64 {
        self.number("All display limit").unwrap_or(500)
    }

    /// `Reverse sort`: the newest first.
    pub fn reverse(&self) -> bool {
        self.is_on("Reverse sort", false)
    }

    /// `Sort Attributes`: what a list is sorted by.
    pub fn sort_attributes(&self) -> Vec<String> {
        self.list("Sort Attributes").unwrap_or_default()
    }

    /// `Show text`: whether a line of a list has some of the text, and a form a field for it.
    pub fn show_text(&self) -> bool {
        self.is_on("Show text", true)
    }

    /// `Summary lines`: how many lines of it.
    pub fn summary_lines(&self) -> usize {
        self.number("Summary lines").unwrap_or(3)
    }

    /// `Summary line length`: characters after which a line of it is broken.
    pub fn summary_line_length(&self) -> usize {
        self.number("Summary line length").unwrap_or(40).max(1)
    }

    /// `List display`: the columns of a list; `ID`, `Date` and attributes. `Guest list display` for guests.
    pub fn columns(&self, guest: bool) -> Vec<String> {
        let own = if guest { self.list("Guest list display") } else { None };
        own.or_else(|| self.list("List display"))
            .unwrap_or_else(|| ["ID", "Date"].into_iter().map(str::to_owned).chain(self.attributes.iter().cloned()).collect())
    }

    /// `Show attributes`: what an entry's page shows; all if nothing is said. `Guest display` for guests.
    pub fn shows(&self, attribute: &str, guest: bool) -> bool {
        let own = if guest { self.list("Guest display") } else { None };
        own.or_else(|| self.list("Show attributes")).is_none_or(|shown| has(&shown, attribute))
    }

    /// `ID display` and `Thread display`: how an entry's number, and its line in a thread, are written.
    pub fn id_display(&self) -> Option<&str> {
        self.get("ID display")
    }

    /// See [`Settings::id_display`].
    pub fn thread_display(&self) -> Option<&str> {
        self.get("Thread display")
    }

    /// `Expand default`: how much of threads is shown: 0 their first entries, 1 all in a line each, 2 and 3 with their texts.
    pub fn expand(&self) -> u8 {
        self.number("Expand default").unwrap_or(1)
    }

    /// `Show last default`: days a list goes back, unless somebody says more.
    pub fn show_last(&self) -> Option<i64> {
        self.number("Show last default").filter(|days| *days > 0)
    }

    /// `Search all logbooks`: whether a search can be of all books; `2` if it is one unless somebody says otherwise.
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

    /// `Link display`: the columns that lead to the entry; all if nothing is said.
    pub fn links(&self, column: &str) -> bool {
        self.list("Link display").is_none_or(|linked| has(&linked, column))
    }

    /// `Cell Style <attribute> <value>`.
    pub fn cell_style(&self, attribute: &str, value: &str) -> &str {
        self.text(&format!("Cell Style {attribute} {value}"))
    }

    /// `Search slave`: whether this serves searches beside an elogd, and changes nothing.
    pub fn search_slave(&self) -> bool {
        self.is_on("Search slave", false)
    }

    // Menus, and who may what.

    /// `Menu commands`, `List Menu commands`, and those of guests, with whether they were configured.
    pub fn menu(&self, of_list: bool, guest: bool) -> (Vec<String>, bool) {
        let names: &[&str] = match (of_list, guest) {
            (true, true) => &["Guest List Menu commands", "Guest Menu commands", "List Menu commands"],
            (true, false) => &["List Menu commands"],
            (false, true) => &["Guest Menu commands", "Menu commands"],
            (false, false) => &["Menu commands"],
        };
        if let Some(own) = names.iter().find_map(|name| self.list(name)) {
            return (own, true);
        }
        let default: &[Command] = if of_list { &LIST_MENU } else { &ENTRY_MENU };
        (default.iter().map(|command| command.name().to_owned()).collect(), false)
    }

    /// Whether the menus let a command be used: a menu that is configured has to list it.
    pub fn menus_allow(&self, command: Command, guest: bool) -> bool {
        if !command.is_in_menus() {
            return true;
        }
        let menus = [self.menu(false, guest), self.menu(true, guest)];
        let lists = |commands: &[String]| commands.iter().any(|name| Command::named(name) == Some(command));
        // Where the entries' menu is not configured, nobody has said what is not allowed.
        !menus[0].1 || menus.iter().any(|(commands, _)| lists(commands))
    }

    /// `Allow <command>`: who may, if it is said.
    pub fn allowed(&self, command: Command) -> Option<Vec<String>> {
        self.list(&format!("Allow {}", command.name()))
    }

    /// `Deny <command>`: who may not.
    pub fn denied(&self, command: Command) -> Vec<String> {
        self.list(&format!("Deny {}", command.name())).unwrap_or_default()
    }

    /// `Admin user`.
    pub fn admins(&self) -> Vec<String> {
        self.list("Admin user").unwrap_or_default()
    }

    /// `Login user`: who may log in at all, if it is said.
    pub fn login_users(&self) -> Option<Vec<String>> {
        self.list("Login user")
    }

    /// `Guest menu commands`: whether the book is open to guests, if it says so.
    pub fn guest_menu(&self) -> Option<Vec<String>> {
        self.list("Guest Menu commands")
    }

    /// `Self register`: whether people who come can make an account for themselves.
    pub fn self_register(&self) -> bool {
        self.number::<u8>("Self register").is_some_and(|level| level > 0)
    }

    /// `Restrict edit`: whether only who wrote an entry changes it.
    pub fn restrict_edit(&self) -> bool {
        self.is_on("Restrict edit", false)
    }

    /// `Restrict edit time`, or `Admin restrict edit time`: hours after which nobody changes an entry.
    pub fn edit_hours(&self, admin: bool) -> Option<f64> {
        let name = if admin { "Admin restrict edit time" } else { "Restrict edit time" };
        self.number(name).filter(|hours| *hours > 0.0)
    }

    /// `Use Lock`.
    pub fn use_lock(&self) -> bool {
        self.is_on("Use Lock", false)
    }

    // Attributes.

    /// The conditions that these values set.
    pub fn set_by<'v>(&self, value_of: impl Fn(&str) -> Option<&'v str>) -> Set {
        let mut set = Set::new();
        for attribute in &self.attributes {
            let Some(value) = value_of(attribute) else { continue };
            for kind in ["Options", "MOptions", "ROptions"] {
                let Some(options) = self.get(&format!("{kind} {attribute}")) else { continue };
                for (option, conditions) in list(options).iter().filter_map(|option| conditional(option)) {
                    if value.split(" | ").any(|value| value == option) {
                        set.extend(conditions.split(',').map(|one| one.trim().to_owned()));
                    }
                }
            }
        }
        set
    }

    /// Whether choosing a value of this attribute can change what else a form has.
    pub fn sets_conditions(&self, attribute: &str) -> bool {
        let kinds = ["Options", "MOptions", "ROptions"];
        let options = kinds.iter().find_map(|kind| self.get(&format!("{kind} {attribute}")));
        options.is_some_and(|options| list(options).iter().any(|option| conditional(option).is_some()))
    }

    /// An attribute as it is under conditions: its kind, options, and whether it is required, locked or extendable.
    pub fn attribute(&self, def: &AttributeDef, set: &[String]) -> AttributeDef {
        let mut def = def.clone();
        let kinds =
            [("Options", AttributeKind::Options), ("MOptions", AttributeKind::Multiple), ("ROptions", AttributeKind::Radio)];
        for (option, kind) in kinds {
            let found = self.options.get(&key(&format!("{option} {}", def.name))).map_or(&[][..], Vec::as_slice);
            let Some(now) = self.under(&format!("{option} {}", def.name), set) else { continue };
            if !found.iter().any(|(condition, _)| !condition.is_empty()) {
                continue;
            }
            // Of a book's options those that people have added hold under every condition.
            let configured: Vec<String> = found.iter().flat_map(|(_, options)| plain_options(options)).collect();
            let added = def.options.iter().filter(|option| !configured.contains(option));
            def.options = plain_options(now).into_iter().chain(added.cloned()).collect();
            def.kind = kind;
        }
        if set.is_empty() {
            return def;
        }
        let listed = |option: &str, otherwise: bool| match self.under(option, set) {
            Some(value) if self.get(option) != Some(value) => has(&list(value), &def.name),
            _ => otherwise,
        };
        (def.required, def.locked, def.extendable) = (
            listed("Required Attributes", def.required),
            listed("Locked Attributes", def.locked),
            listed("Extendable Options", def.extendable),
        );
        if let Some(comment) = self.under(&format!("Comment {}", def.name), set) {
            def.comment = comment.to_owned();
        }
        def
    }

    /// `Show Attributes Edit`: whether a form has this attribute.
    pub fn in_form(&self, attribute: &str, set: &[String]) -> bool {
        self.under("Show Attributes Edit", set).is_none_or(|shown| has(&list(shown), attribute))
    }

    /// `Fixed Attributes Edit`, `Fixed Attributes Reply`: whether a form shows it and does not let it be changed.
    pub fn is_fixed(&self, attribute: &str, occasion: Occasion) -> bool {
        let name = match occasion {
            Occasion::Edit => "Fixed Attributes Edit",
            Occasion::Reply | Occasion::FirstReply => "Fixed Attributes Reply",
            Occasion::New | Occasion::Duplicate => return false,
        };
        self.list(name).is_some_and(|fixed| has(&fixed, attribute))
    }

    /// `Preset <attribute>` and its kin: what a field has before somebody writes into it.
    pub fn preset(&self, attribute: &str, occasion: Occasion, set: &[String]) -> Option<&str> {
        let of = |pattern: &str| self.under(&format!("{pattern} {attribute}"), set);
        match occasion {
            Occasion::New => of("Preset"),
            Occasion::Reply => of("Preset on reply"),
            Occasion::FirstReply => of("Preset on first reply").or_else(|| of("Preset on reply")),
            Occasion::Edit => of("Preset on edit"),
            Occasion::Duplicate => of("Preset on duplicate"),
        }
    }

    /// `Subst <attribute>` and its kin: what a value becomes.
    pub fn subst(&self, attribute: &str, occasion: Occasion, set: &[String]) -> Option<&str> {
        let pattern = match occasion {
            Occasion::New | Occasion::Duplicate => "Subst",
            Occasion::Reply | Occasion::FirstReply => "Subst on reply",
            Occasion::Edit => "Subst on edit",
        };
        self.under(&format!("{pattern} {attribute}"), set)
    }

    /// `Remove on reply`: what an answer does not take over.
    pub fn is_removed_on_reply(&self, attribute: &str) -> bool {
        self.list("Remove on reply").is_some_and(|removed| has(&removed, attribute))
    }

    /// `Display <attribute>`: how a value is shown.
    pub fn display(&self, attribute: &str) -> Option<&str> {
        self.get(&format!("Display {attribute}"))
    }

    /// `Tooltip <attribute>`.
    pub fn tooltip(&self, attribute: &str, set: &[String]) -> &str {
        self.under(&format!("Tooltip {attribute}"), set).unwrap_or_default()
    }

    /// `Format <attribute>`: flags, a class for its cell, a class for its field, the field's width, rows.
    pub fn format(&self, attribute: &str) -> Format {
        let parts = self.list(&format!("Format {attribute}")).unwrap_or_default();
        let part = |at: usize| parts.get(at).map(String::as_str).unwrap_or_default();
        let class = |text: &str| text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).collect();
        Format {
            flags: part(0).parse().unwrap_or(0),
            class: class(part(1)),
            field_class: class(part(2)),
            width: part(3).parse().ok().filter(|width| (1..=500).contains(width)),
            rows: part(4).parse().ok().filter(|rows| (1..=100).contains(rows)),
        }
    }

    // Forms.

    /// `Message comment`, `Attachment comment`.
    pub fn message_comment(&self) -> &str {
        self.text("Message comment")
    }

    /// See [`Settings::message_comment`].
    pub fn attachment_comment(&self) -> &str {
        self.text("Attachment comment")
    }

    /// `Reply comment`, above the text of an answer.
    pub fn reply_comment(&self) -> &str {
        self.text("Reply comment")
    }

    /// `Message width` and `Message height` of the field for the text.
    pub fn message_size(&self) -> (u32, u32) {
        let within = |name: &str, otherwise: u32| self.number::<u32>(name).unwrap_or(otherwise).clamp(2, 500);
        (within("Message width", 112), within("Message height", 20))
    }

    /// `Enable attachments`, and `Show attachments` in lists and pages.
    pub fn attachments(&self) -> bool {
        self.is_on("Enable attachments", true)
    }

    /// See [`Settings::attachments`].
    pub fn show_attachments(&self) -> bool {
        self.is_on("Show attachments", true)
    }

    /// `Thumbnail size`: the largest side of a picture in a page, in pixels; 0 for none.
    pub fn thumbnail(&self) -> u32 {
        let size = self.text("Thumbnail size");
        size.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok()).unwrap_or(300)
    }

    /// `Default encoding`: 0 ELCode, 1 plain, 2 HTML. Books that do not come from ELOG have Markdown.
    pub fn encoding(&self) -> Encoding {
        match self.number::<u8>("Default encoding") {
            Some(1) => Encoding::Plain,
            Some(2) => Encoding::Html,
            Some(_) => Encoding::ElCode,
            None if self.options.is_empty() => Encoding::Markdown,
            None => Encoding::ElCode,
        }
    }

    /// `Allowed encoding`: 1 plain, 2 ELCode, 4 HTML, added up; `Allow HTML = 0` takes HTML away.
    pub fn encodings(&self) -> Vec<Encoding> {
        if self.options.is_empty() {
            return Encoding::ALL.to_vec();
        }
        let bits = self.number::<u8>("Allowed encoding").filter(|bits| bits & 7 != 0).unwrap_or(7);
        let bits = if self.is_on("Allow HTML", true) { bits } else { bits & !4 };
        let known = [(2, Encoding::ElCode), (1, Encoding::Plain), (4, Encoding::Html)];
        known.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, encoding)| encoding).collect()
    }

    /// `Allow HTML = 1`: whether what `Display` and comments say is HTML, which is cleaned, and not text.
    pub fn allows_html(&self) -> bool {
        self.is_on("Allow HTML", false)
    }

    /// `Suppress default`: 0 mail is sent, 1 not, 2 the form does not ask and it is sent, 3 does not ask and it is not.
    pub fn suppress(&self) -> u8 {
        self.number("Suppress default").unwrap_or(0)
    }

    /// `Resubmit default`: 0 an edit stays where it is, 1 it becomes a new entry, 2 the form does not ask.
    pub fn resubmit(&self) -> u8 {
        self.number("Resubmit default").unwrap_or(0)
    }

    /// `Preset text`.
    pub fn preset_text(&self) -> &str {
        self.text("Preset text")
    }

    /// `Quote on reply` and `Reply string`: what is before the lines that an answer quotes; `None` if it quotes nothing.
    pub fn quote(&self) -> Option<&str> {
        let string = self.options.get("reply string").and_then(|found| found.first()).map_or("> ", |(_, value)| value.as_str());
        let quoted = self.is_on("Quote on reply", true);
        // The value was trimmed as every value is; a quotation reads badly without the blank.
        quoted.then_some(if string == ">" { "> " } else { string })
    }

    /// `Prepend on reply`, `Append on reply`, `Prepend on edit`, `Append on edit`.
    pub fn around(&self, occasion: Occasion) -> (&str, &str) {
        match occasion {
            Occasion::Edit => (self.text("Prepend on edit"), self.text("Append on edit")),
            Occasion::Reply | Occasion::FirstReply => (self.text("Prepend on reply"), self.text("Append on reply")),
            Occasion::New | Occasion::Duplicate => ("", ""),
        }
    }

    /// `List after submit`: whether a post leads back to the list.
    pub fn list_after_submit(&self) -> bool {
        self.is_on("List after submit", false)
    }

    /// `Max content length`: bytes of a post, if the book has a limit of its own.
    pub fn max_content(&self) -> Option<u64> {
        self.number("Max content length")
    }

    /// `RSS Title` and `RSS Entries`.
    pub fn rss(&self) -> (Option<&str>, usize) {
        (self.get("RSS Title"), self.number("RSS Entries").unwrap_or(15))
    }
}

/// How an attribute is laid out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Format {
    /// 1: on the same line as the one before. 2: options in one line. 4 and more: see ELOG.
    pub flags: u32,
    /// The class of its cell.
    pub class: String,
    /// The class of its field.
    pub field_class: String,
    /// Characters of its field.
    pub width: Option<u32>,
    /// Rows of its field.
    pub rows: Option<u32>,
}

/// Options without the conditions they set.
fn plain_options(value: &str) -> Vec<String> {
    list(value).iter().map(|option| conditional(option).map_or(option.as_str(), |(plain, _)| plain).to_owned()).collect()
}

/// Whether a list has a name.
pub fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|known| same_name(known, name))
}

fn key(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for word in name.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&word.to_lowercase());
    }
    out
}

/// `{a,b&c}Preset Subject` is a condition and a name.
fn split(name: &str) -> (Condition, &str) {
    let Some((condition, name)) = name.strip_prefix('{').and_then(|rest| rest.split_once('}')) else { return (vec![], name) };
    let together = |part: &str| part.split('&').map(|one| one.trim().to_owned()).collect();
    (condition.split(',').map(together).collect(), name.trim())
}

/// `Routine{a}` is an option and the conditions it sets.
fn conditional(option: &str) -> Option<(&str, &str)> {
    let (plain, conditions) = option.strip_suffix('}')?.split_once('{')?;
    Some((plain.trim(), conditions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elog::config;

    fn settings(text: &str) -> Settings {
        let config = config::parse(format!("[b]\n{text}").as_bytes());
        Settings::of(&config.logbooks()[0].book())
    }

    #[test]
    fn a_book_goes_before_its_group_before_all() {
        let text = "[global]\nTheme = g\nEntries per page = 7\nTop group X = b\n[global X]\nEntries per page = 8\nReverse sort=1\n\
            [b]\nREVERSE  SORT = 0\n";
        let config = config::parse(text.as_bytes());
        let settings = Settings::of(&config.logbooks()[0].book());
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
        let preset = |set: &[String]| settings.preset("Subject", Occasion::New, set);
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
        assert!(free.menus_allow(Command::Edit, false) && free.menus_allow(Command::CopyTo, false));
        let narrow = settings(
            "Menu commands = List, New, Copy to\nList Menu commands = New, CSV Import\nGuest menu commands = List, Find\n",
        );
        for (command, user, guest) in [
            (Command::New, true, false),
            (Command::CopyTo, true, false),
            (Command::CsvImport, true, false),
            (Command::Edit, false, false),
            (Command::Find, false, true),
            (Command::Download, true, true),
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
