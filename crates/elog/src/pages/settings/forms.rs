//! The settings of forms and of their submission.

use tampu_logbook::entry::Encoding;

use crate::pages::settings::{BookSettings, FormOccasion};

impl BookSettings {
    /// `Message comment`, above the text.
    pub fn message_comment(&self, set: &[String]) -> &str {
        self.under("Message comment", set).unwrap_or_default()
    }

    /// `Attachment comment`, beside the fields for files.
    pub fn attachment_comment(&self) -> &str {
        self.text("Attachment comment")
    }

    /// `Reply comment`, above the text of a reply.
    pub fn reply_comment(&self, set: &[String]) -> &str {
        self.under("Reply comment", set).unwrap_or_default()
    }

    /// `Fix text`: true if an edit leaves the text as it is.
    pub fn fix_text(&self) -> bool {
        self.is_on("Fix text", false)
    }

    /// `Hard wrap`: true if the browser ends the lines of a text where its field does.
    pub fn hard_wrap(&self) -> bool {
        self.is_on("Hard wrap", false)
    }

    /// `Message width` and `Message height` of the field for the text.
    pub fn message_size(&self) -> (u32, u32) {
        let within = |name: &str, otherwise: u32| self.number::<u32>(name).unwrap_or(otherwise).clamp(2, 500);
        (within("Message width", 112), within("Message height", 20))
    }

    /// `Admin textarea`: columns and rows of the field for the configuration.
    pub fn admin_textarea(&self) -> (u32, u32) {
        let mut said = self.text("Admin textarea").split(',').map(|number| number.trim().parse::<u32>().ok());
        let mut next = |otherwise: u32| said.next().flatten().unwrap_or(otherwise).clamp(2, 500);
        (next(120), next(30))
    }

    /// `Enable attachments`, and `Show attachments` in lists and pages.
    pub fn attachments(&self) -> bool {
        self.is_on("Enable attachments", true)
    }

    /// `Show attachments`: true if pages of entries show them.
    pub fn show_attachments(&self) -> bool {
        self.is_on("Show attachments", true)
    }

    /// `Preview attachments`: true if a form shows the images that the entry has.
    pub fn preview_attachments(&self) -> bool {
        self.is_on("Preview attachments", true)
    }

    /// `Attachment lines`: the lines of a text file that a page of an entry shows. Pages of books that do not come from ELOG
    /// show none.
    pub fn attachment_lines(&self) -> usize {
        let usual = if self.options.is_empty() { 0 } else { 300 };
        self.number("Attachment lines").unwrap_or(usual).min(10_000)
    }

    /// `Enable smileys`: true if ELCode shows smileys as images.
    pub fn smileys(&self) -> bool {
        self.is_on("Enable smileys", !self.options.is_empty())
    }

    /// `Thumbnail size`: the largest side of an image in a page, in pixels; 0 for no images.
    pub fn thumbnail(&self) -> u32 {
        let size = self.text("Thumbnail size");
        size.split(|c: char| !c.is_ascii_digit()).find_map(|digits| digits.parse().ok()).unwrap_or(300)
    }

    /// `Default encoding`: 0 ELCode, 1 plain, 2 HTML, and 3 Markdown, which elogd does not know. Books that do not come from ELOG have Markdown.
    pub fn encoding(&self) -> Encoding {
        match self.number::<u8>("Default encoding") {
            Some(1) => Encoding::Plain,
            Some(2) => Encoding::Html,
            Some(3) => Encoding::Markdown,
            Some(_) => Encoding::ElCode,
            None if self.options.is_empty() => Encoding::Markdown,
            None => Encoding::ElCode,
        }
    }

    /// `Allowed encoding`: the sum of 1 plain, 2 ELCode and 4 HTML, and 8 Markdown, which elogd does not know; `Allow HTML = 0` removes HTML.
    pub fn encodings(&self) -> Vec<Encoding> {
        if self.options.is_empty() {
            return Encoding::ALL.to_vec();
        }
        let bits = self.number::<u8>("Allowed encoding").filter(|bits| bits & 15 != 0).unwrap_or(7);
        let bits = if self.is_on("Allow HTML", true) { bits } else { bits & !4 };
        let known = [(8, Encoding::Markdown), (2, Encoding::ElCode), (1, Encoding::Plain), (4, Encoding::Html)];
        known.into_iter().filter(|(bit, _)| bits & bit != 0).map(|(_, encoding)| encoding).collect()
    }

    /// `Allow HTML = 1`: `Display` and comments contain HTML, which is sanitised, instead of text.
    pub fn allows_html(&self) -> bool {
        self.is_on("Allow HTML", false)
    }

    /// `Resubmit default`: 0 keeps the entry's number, 1 makes it a new entry, 2 hides the choice.
    pub fn resubmit(&self) -> u8 {
        self.number("Resubmit default").unwrap_or(0)
    }

    /// `Preset text`, the first text of a new entry.
    pub fn preset_text(&self, set: &[String]) -> &str {
        self.under("Preset text", set).unwrap_or_default()
    }

    /// `Quote on reply` and `Reply string`: the mark before quoted lines; `None` if a reply quotes nothing.
    pub fn quote(&self) -> Option<&str> {
        let string = self.options.get("reply string").and_then(|found| found.first()).map_or("> ", |(_, value)| value.as_str());
        let quoted = self.is_on("Quote on reply", true);
        // The value was trimmed; a quotation reads badly without the blank.
        quoted.then_some(if string == ">" { "> " } else { string })
    }

    /// `Prepend on reply`, `Append on reply`, `Prepend on edit`, `Append on edit`.
    pub fn around(&self, occasion: FormOccasion) -> (&str, &str) {
        match occasion {
            FormOccasion::Edit => (self.text("Prepend on edit"), self.text("Append on edit")),
            FormOccasion::Reply | FormOccasion::FirstReply => (self.text("Prepend on reply"), self.text("Append on reply")),
            FormOccasion::New | FormOccasion::Duplicate => ("", ""),
        }
    }

    /// `List after submit`: true if a post redirects to the list.
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
