//! The settings of mails about entries.

use tampu_logbook::book::elog_options::list;

use crate::pages::settings::{BookSettings, FormOccasion};

/// Bytes of the longest attachment that is sent by default.
const ATTACHMENT: u64 = 10_000_000;

/// `Email format`: the parts of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailParts {
    /// 1: the first line.
    pub heading: bool,
    /// 2: the attributes.
    pub attributes: bool,
    /// 4: the address of the entry.
    pub url: bool,
    /// 8: the text.
    pub text: bool,
    /// 16: the attachments.
    pub files: bool,
    /// 32: the name of the logbook.
    pub logbook: bool,
    /// 64: the names of the attachments.
    pub file_names: bool,
}

/// `Email encoding`: the forms of a mail. A part in plain text is always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailForm {
    /// 1: plain text alone.
    Plain,
    /// 2: HTML that looks like the plain text.
    Simple,
    /// 4: HTML with a table of the attributes.
    Table,
}

impl BookSettings {
    /// `Suppress default`, or `Suppress Email on edit` for a change: 0 sends mail, 1 sends none. 2 sends mail and hides the
    /// choice, 3 sends none and hides the choice.
    pub fn suppress(&self, occasion: FormOccasion) -> u8 {
        let option = if occasion == FormOccasion::Edit { "Suppress Email on edit" } else { "Suppress default" };
        self.number(option).unwrap_or(0)
    }

    /// Returns true if an option of the book names recipients.
    pub fn names_recipients(&self) -> bool {
        const OTHERS: [&str; 3] = ["email format", "email encoding", "email attributes"];
        self.options.keys().any(|name| name.starts_with("email ") && !OTHERS.contains(&name.as_str()))
    }

    /// `Email <attribute> <value>` and `Email All`: the recipients of an entry with these attributes and values.
    pub fn recipients<'v>(&self, values: impl Iterator<Item = (&'v str, &'v str)>, set: &[String]) -> Vec<String> {
        let quoted = |text: &str| if text.contains(' ') { format!("\"{text}\"") } else { text.to_owned() };
        let of_value = |(name, value): (&str, &str)| {
            let names = [format!("Email {} {}", quoted(name), quoted(value)), format!("Email {name} {value}")];
            names.iter().find_map(|name| self.under(name, set)).map(list)
        };
        let mut found: Vec<String> = values.filter(|(_, value)| !value.is_empty()).filter_map(of_value).flatten().collect();
        found.extend(self.under("Email All", set).map(list).unwrap_or_default());
        found
    }

    /// `Email attributes`: the attributes in a mail, in their order; `None` stands for all.
    pub fn mail_attributes(&self) -> Option<Vec<String>> {
        self.list("Email attributes")
    }

    /// `Email format`.
    pub fn mail_parts(&self) -> MailParts {
        let bits = self.number::<u32>("Email format").unwrap_or(63);
        let has = |bit: u32| bits & bit != 0;
        MailParts {
            heading: has(1),
            attributes: has(2),
            url: has(4),
            text: has(8),
            files: has(16),
            logbook: has(32),
            file_names: has(64),
        }
    }

    /// `Email encoding`; `None` if the entry's encoding decides.
    pub fn mail_form(&self) -> Option<MailForm> {
        let bits = self.number::<u32>("Email encoding").filter(|bits| bits & 7 != 0)?;
        Some(match bits {
            bits if bits & 4 != 0 => MailForm::Table,
            bits if bits & 2 != 0 => MailForm::Simple,
            _ => MailForm::Plain,
        })
    }

    /// `Use Email Subject`, and `Use Email Subject Edit` for a change.
    pub fn mail_subject(&self, edited: bool, set: &[String]) -> Option<&str> {
        let of_edit = if edited { self.under("Use Email Subject Edit", set) } else { None };
        of_edit.or_else(|| self.under("Use Email Subject", set))
    }

    /// `Use Email heading`, and `Use Email heading edit` for a change.
    pub fn mail_heading(&self, edited: bool, set: &[String]) -> Option<&str> {
        let of_edit = if edited { self.under("Use Email heading edit", set) } else { None };
        of_edit.or_else(|| self.under("Use Email heading", set))
    }

    /// `Use Email from`, the sender of all mails.
    pub fn mail_from(&self, set: &[String]) -> Option<&str> {
        self.under("Use Email from", set)
    }

    /// `Default Email from`, the sender of mails about entries of people without an address.
    pub fn default_mail_from(&self) -> Option<&str> {
        self.get("Default Email from")
    }

    /// `Use Email URL`: the address of the site in mails.
    pub fn mail_url(&self) -> Option<&str> {
        self.get("Use Email URL")
    }

    /// `Omit Email to`: true if no recipient sees the others.
    pub fn hides_recipients(&self) -> bool {
        self.is_on("Omit Email to", false)
    }

    /// `Suppress email to users`: true if only the recipients of options get mail.
    pub fn mails_no_users(&self) -> bool {
        self.is_on("Suppress email to users", false)
    }

    /// `Display email recipients`: true if the page after a post names them.
    pub fn displays_recipients(&self) -> bool {
        self.is_on("Display email recipients", true)
    }

    /// `Max email attachment size`, in bytes.
    pub fn max_mail_attachment(&self) -> u64 {
        self.number("Max email attachment size").unwrap_or(ATTACHMENT)
    }
}
