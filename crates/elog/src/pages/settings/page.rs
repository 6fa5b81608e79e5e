//! Options of whole pages: titles, tabs, styles, languages, times.

use super::BookSettings;

impl BookSettings {
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
}
