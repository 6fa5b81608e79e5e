//! Options of lists, of searches and of the page of all books.

use super::{BookSettings, ListMode, has};
use crate::{option_values::days, pages::charset};

/// The default entries of a page.
const PER_PAGE: usize = 20;
/// Entries of a page at most.
pub const MAX_PER_PAGE: usize = 1000;
/// The hours for which a login is kept by default.
const LOGIN_HOURS: f64 = 744.0;

impl BookSettings {
    /// `Display mode`, and `Start page` if it has a mode.
    pub fn mode(&self) -> ListMode {
        self.get("Display mode").and_then(|mode| ListMode::named(mode.trim())).unwrap_or_default()
    }

    /// `List drafts`: true if a list begins with the drafts of the user who reads it.
    pub fn list_drafts(&self) -> bool {
        self.is_on("List drafts", true) && self.save_drafts()
    }

    /// `Save drafts`: true if a form saves a draft while it is filled in.
    pub fn save_drafts(&self) -> bool {
        self.is_on("Save drafts", true)
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
}
