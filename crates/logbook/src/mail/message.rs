//! A mail, and its text for the wire.

use std::{io, path::PathBuf, time::SystemTime};

use lettre::{
    Address, Message,
    address::Envelope,
    message::{
        Attachment, Mailbox, MultiPart, SinglePart,
        header::{ContentType, HeaderName, HeaderValue},
    },
};

use super::{settings::MailSettings, thread::entry_of};
use crate::entry::EntryRef;

/// Recipients of one mail.
pub const RECIPIENTS: usize = 1000;

/// Errors of a mail and of the queue.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// No mail server is configured.
    #[error("this logbook sends no mail: [mail] host in the hub's configuration is not set")]
    NotConfigured,
    /// An address cannot be one.
    #[error("invalid mail address '{}': {why}; write \"zoe@example.org\" or \"Zoe <zoe@example.org>\"", .address.escape_debug())]
    Address { address: String, why: String },
    /// There is nobody to send it to, or there are too many.
    #[error("a mail has 1 to {RECIPIENTS} recipients; this one has {0}")]
    Recipients(usize),
    /// The text of the mail cannot be made.
    #[error("the mail cannot be made: {0}")]
    Message(String),
    /// The queue has no room.
    #[error("the queue of mails is full ({0}); the mail server has not taken them: 'tampu mail queue list' says why")]
    Full(String),
    /// There is no such mail in the queue.
    #[error("there is no mail '{}' in the queue; 'tampu mail queue list' shows them", .0.escape_debug())]
    NoMail(String),
    /// The queue cannot be written or read.
    #[error("the queue of mails: {path}: {why}")]
    Io { path: PathBuf, why: io::Error },
    /// The worker cannot be started.
    #[error("the sender of mail cannot start: {0}")]
    Worker(io::Error),
}

/// A file in a mail.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailFile {
    /// The name that the reader sees.
    pub name: String,
    /// The media type, such as `image/png`.
    pub kind: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
    /// The name by which the HTML of the mail shows the file, as `cid:NAME`; without it the file is an attachment.
    pub shown_as: Option<String>,
}

/// A mail to send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mail {
    /// Addresses of the recipients, as `zoe@example.org` or `Zoe <zoe@example.org>`. Each of them sees all, unless `hidden`.
    pub to: Vec<String>,
    /// True if no recipient sees the addresses of the others.
    pub hidden: bool,
    /// The sender, if it is not the configured one.
    pub from: Option<String>,
    /// The address for replies, if it is not the configured one.
    pub reply_to: Option<String>,
    /// The subject of the mail.
    pub subject: String,
    /// The text of the mail.
    pub text: String,
    /// The same as HTML; without it the mail is plain text.
    pub html: Option<String>,
    /// Files of the mail.
    pub files: Vec<MailFile>,
    /// The Message-ID, without angle brackets; made up if absent.
    pub id: Option<String>,
    /// Message-IDs of the mails that this one continues, oldest first.
    pub thread: Vec<String>,
    /// The address (https) that ends such mails by one click.
    pub unsubscribe: Option<String>,
    /// Further headers, as `X-Elog-URL`.
    pub headers: Vec<(String, String)>,
    /// The entries whose texts it has.
    pub about: Vec<EntryRef>,
}

/// A mail as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The address of the sender for the server.
    pub from: String,
    /// The addresses of the recipients for the server.
    pub to: Vec<String>,
    /// The subject of the mail.
    pub subject: String,
    /// The Message-ID, without angle brackets.
    pub id: String,
    /// Headers and body, with CR LF.
    pub bytes: Vec<u8>,
    /// The entries whose texts it has.
    pub about: Vec<EntryRef>,
}

/// Parses an address.
pub fn mailbox(text: &str) -> Result<Mailbox, MailError> {
    text.trim()
        .parse()
        .map_err(|why: lettre::address::AddressError| MailError::Address { address: text.to_owned(), why: why.to_string() })
}

/// Returns an address with a name, as `Zoe <zoe@example.org>`; `None` if it cannot be one.
pub fn named_address(name: &str, email: &str) -> Option<String> {
    let email = email.trim().parse().ok()?;
    let name = Some(line(name)).filter(|name| !name.is_empty());
    let text = Mailbox::new(name, email).to_string();
    mailbox(&text).is_ok().then_some(text)
}

/// Returns the part of an address that the server sees, in lower case; `None` if it cannot be one.
pub fn bare_address(text: &str) -> Option<String> {
    mailbox(text).ok().map(|one| one.email.to_string().to_lowercase())
}

/// Returns one line: control characters become blanks.
fn line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}

fn raw(name: &str, value: &str) -> Result<HeaderValue, MailError> {
    let wrong = || MailError::Message(format!("invalid header '{}'", name.escape_debug()));
    Ok(HeaderValue::new(HeaderName::new_from_ascii(name.to_owned()).map_err(|_| wrong())?, line(value)))
}

impl Mail {
    /// Returns the entry whose Message-ID the mail has.
    fn by_id(&self) -> Option<EntryRef> {
        let id = self.id.as_deref()?;
        entry_of(id, id.rsplit_once('@')?.1)
    }

    /// Makes the text for the wire.
    pub fn write(&self, settings: &MailSettings) -> Result<Written, MailError> {
        let own = settings.from.as_deref().ok_or(MailError::NotConfigured)?;
        let sender = mailbox(own)?;
        let from = match &self.from {
            Some(from) => mailbox(from)?,
            None => sender.clone(),
        };
        if self.to.is_empty() || self.to.len() > RECIPIENTS {
            return Err(MailError::Recipients(self.to.len()));
        }
        let to = self.to.iter().map(|to| mailbox(to)).collect::<Result<Vec<_>, _>>()?;
        let id = match &self.id {
            Some(id) => id.clone(),
            None => format!("{}@{}", unique()?, sender.email.domain()),
        };
        let subject = line(&self.subject);
        let mut message = Message::builder()
            .from(from.clone())
            .date(SystemTime::now())
            .message_id(Some(format!("<{id}>")))
            .subject(subject.clone());
        if from.email != sender.email {
            message = message.sender(sender.clone());
        }
        if self.hidden {
            // The server is told each recipient; the text names none.
            let addresses = to.iter().map(|one| one.email.clone()).collect();
            let envelope = Envelope::new(Some(sender.email.clone()), addresses);
            message = message.envelope(envelope.map_err(|why| MailError::Message(why.to_string()))?);
            message = message.raw_header(raw("To", "undisclosed-recipients:;")?);
        } else {
            for one in &to {
                message = message.to(one.clone());
            }
        }
        let to_book = self.by_id().zip(settings.input.as_ref()).and_then(|(at, input)| input.address_of(&at.book));
        if let Some(address) = self.reply_to.as_deref().or(to_book.as_deref()).or(settings.reply_to.as_deref()) {
            message = message.reply_to(mailbox(address)?);
        }
        if let Some(last) = self.thread.last() {
            let all: Vec<String> = self.thread.iter().map(|id| format!("<{id}>")).collect();
            message = message.in_reply_to(format!("<{last}>")).references(all.join(" "));
        }
        // Programs that answer mails by themselves leave such mails alone.
        message = message.raw_header(raw("Auto-Submitted", "auto-generated")?);
        if let Some(address) = &self.unsubscribe {
            message = message.raw_header(raw("List-Unsubscribe", &format!("<{address}>"))?);
            message = message.raw_header(raw("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")?);
        }
        for (name, value) in &self.headers {
            message = message.raw_header(raw(name, value)?);
        }
        let message = self.body(message).map_err(|why| MailError::Message(why.to_string()))?;
        let addresses = to.iter().map(|one| one.email.to_string());
        let (from, about) = (sender.email.to_string(), self.about.clone());
        Ok(Written { from, to: addresses.collect(), subject, id, bytes: message.formatted(), about })
    }

    fn body(&self, message: lettre::message::MessageBuilder) -> Result<Message, lettre::error::Error> {
        let plain = || SinglePart::plain(self.text.clone());
        let (shown, others): (Vec<&MailFile>, Vec<&MailFile>) =
            self.files.iter().partition(|file| self.html.is_some() && file.shown_as.is_some());
        let text = self.html.as_ref().map(|html| {
            if shown.is_empty() {
                return MultiPart::alternative_plain_html(self.text.clone(), html.clone());
            }
            let related = MultiPart::related().singlepart(SinglePart::html(html.clone()));
            let related = shown.iter().fold(related, |parts, file| parts.singlepart(file.part()));
            MultiPart::alternative().singlepart(plain()).multipart(related)
        });
        if others.is_empty() {
            return match text {
                None => message.singlepart(plain()),
                Some(text) => message.multipart(text),
            };
        }
        let parts = match text {
            None => MultiPart::mixed().singlepart(plain()),
            Some(text) => MultiPart::mixed().multipart(text),
        };
        message.multipart(others.iter().fold(parts, |parts, file| parts.singlepart(file.part())))
    }
}

impl MailFile {
    fn part(&self) -> SinglePart {
        let kind = ContentType::parse(&self.kind).unwrap_or_else(|_| octets());
        let name = line(&self.name);
        let part = match &self.shown_as {
            Some(id) => Attachment::new_inline_with_name(line(id), name),
            None => Attachment::new(name),
        };
        part.body(self.bytes.clone(), kind)
    }
}

/// The media type of a file of unknown kind.
fn octets() -> ContentType {
    // A constant that is a media type.
    ContentType::parse("application/octet-stream").unwrap_or(ContentType::TEXT_PLAIN)
}

/// Returns text that no other mail has.
fn unique() -> Result<String, MailError> {
    crate::people::token::secret().map(|text| text.to_lowercase()).map_err(|why| MailError::Message(why.to_string()))
}

/// Checks an address that only the server sees.
pub(super) fn address(text: &str) -> Result<Address, MailError> {
    Ok(mailbox(text)?.email)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::settings::{MailIn, MailInAddress};

    fn settings() -> MailSettings {
        MailSettings {
            host: Some("localhost".to_owned()),
            from: Some("Logbook <logbook@example.org>".to_owned()),
            ..MailSettings::default()
        }
    }

    #[test]
    fn a_mail_has_its_thread_its_files_and_no_header_of_its_sender() {
        let mail = Mail {
            to: vec!["Zoë <zoe@example.org>".to_owned(), "tom@example.org".to_owned()],
            subject: "HV trip\r\nBcc: spy@example.org".to_owned(),
            text: "Kanal 7 löste aus.\n.\nEnde".to_owned(),
            html: Some("<p>Kanal 7</p>".to_owned()),
            files: vec![
                MailFile {
                    name: "plot.png".to_owned(),
                    kind: "image/png".to_owned(),
                    bytes: vec![1, 2, 3],
                    ..MailFile::default()
                },
                MailFile {
                    name: "trip.png".to_owned(),
                    kind: "image/png".to_owned(),
                    bytes: vec![4, 5, 6],
                    shown_as: Some("1.2.shift@example.org".to_owned()),
                },
            ],
            id: Some("2.shift@example.org".to_owned()),
            thread: vec!["1.shift@example.org".to_owned()],
            unsubscribe: Some("https://log.example.org/u/1".to_owned()),
            ..Mail::default()
        };
        let written = mail.write(&settings()).unwrap();
        let text = String::from_utf8(written.bytes).unwrap();
        assert_eq!(written.to, ["zoe@example.org", "tom@example.org"]);
        assert!(text.contains("Message-ID: <2.shift@example.org>\r\n") && text.contains("In-Reply-To: <1.shift@example.org>"));
        assert!(
            text.contains("List-Unsubscribe-Post: List-Unsubscribe=One-Click") && text.contains("Auto-Submitted: auto-generated")
        );
        assert!(!text.contains("\nBcc:") && text.contains("filename=\"plot.png\""), "{text}");
        assert!(text.is_ascii(), "servers without 8BITMIME take it");
        // What is shown in the HTML stands beside it, and the attachment behind both.
        let order = [
            "multipart/mixed",
            "multipart/alternative",
            "text/plain",
            "multipart/related",
            "text/html",
            "inline; filename=\"trip.png\"",
            "attachment; filename=\"plot.png\"",
        ];
        let places: Vec<Option<usize>> = order.iter().map(|part| text.find(part)).collect();
        assert!(places.is_sorted() && places[0].is_some() && text.contains("Content-ID: <1.2.shift@example.org>\r\n"), "{text}");
    }

    #[test]
    fn replies_to_a_mail_about_an_entry_go_to_its_logbook() {
        let books = [("shift".to_owned(), "Shift log".to_owned())].into();
        let listen = MailInAddress::try_from("127.0.0.1:24".to_owned()).unwrap();
        let input = MailIn { listen, books, domain: Some("log.example.org".to_owned()), max_mb: 25 };
        let reply_to = Some("office@example.org".to_owned());
        let settings = MailSettings { input: Some(input), reply_to, ..settings() };
        settings.check().unwrap();
        for (id, expected) in [
            (Some("entry.12.Shift=20log.3@example.org"), "Reply-To: shift@log.example.org\r\n"),
            (Some("entry.12.Other@example.org"), "Reply-To: office@example.org\r\n"),
            (None, "Reply-To: office@example.org\r\n"),
        ] {
            let to = vec!["zoe@example.org".to_owned()];
            let mail = Mail { to, id: id.map(str::to_owned), ..Mail::default() };
            let text = String::from_utf8(mail.write(&settings).unwrap().bytes).unwrap();
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn hidden_recipients_are_in_no_header() {
        let to = vec!["Zoe <zoe@example.org>".to_owned(), "tom@example.org".to_owned()];
        let written = Mail { to, hidden: true, ..Mail::default() }.write(&settings()).unwrap();
        let text = String::from_utf8(written.bytes).unwrap();
        assert_eq!(written.to, ["zoe@example.org", "tom@example.org"]);
        assert!(text.contains("To: undisclosed-recipients:;\r\n"), "{text}");
        assert!(!text.contains("zoe@") && !text.contains("tom@"), "{text}");
    }

    #[test]
    fn addresses_that_cannot_be_are_refused() {
        for bad in ["", "zoe", "zoe@", "a@b\r\nBcc: c@d", "a@b, c@d"] {
            let mail = Mail { to: vec![bad.to_owned()], ..Mail::default() };
            assert!(matches!(mail.write(&settings()), Err(MailError::Address { .. })), "{bad:?}");
        }
        assert!(matches!(Mail::default().write(&settings()), Err(MailError::Recipients(0))));
    }
}
