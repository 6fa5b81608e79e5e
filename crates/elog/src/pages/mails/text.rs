//! A mail about an entry: its sender, subject, thread, text and files.

use std::io::Read;

use tampu_logbook::{
    attachment::Attachment,
    entry::{Encoding, Entry, EntryRef},
    export::html::links::{self, AddressUse},
    mail::{
        Mail, MailFile,
        message::{RECIPIENTS, bare_address, named_address},
        thread::message_id,
    },
    plain, render,
    search::Stop,
};

use super::{
    posted::{MailSite, PostedEntry, base, conditions, host, names},
    recipients::MailGroup,
};
use crate::pages::{
    address::escape,
    html::{SafeHtml, put},
    settings::{ActiveConditions, MailForm},
    subst::{Substitutions, shown_value},
    values::{address_name, bytes, is_image},
};

/// The style of the text of an entry. A mail is also read on phones.
const STYLE: &str = "<meta name=\"viewport\" content=\"width=device-width\">\n<style>body { font-family: sans-serif; overflow-wrap: \
    break-word; } img { max-width: 100%; height: auto; } pre { white-space: pre-wrap; overflow-wrap: anywhere; } table { \
    border-collapse: collapse; } td, th { border: 1px solid #c8ccd4; padding: 3px 7px; text-align: left; } blockquote { margin: \
    6px 0; padding: 2px 10px; border-left: 3px solid #c8ccd4; }</style>";

/// The width of the names of attributes in plain text.
const WIDTH: usize = 20;

/// Returns the mails to a group: one, or several for very many recipients.
pub fn mails(site: &MailSite<'_>, posted: &PostedEntry<'_>, group: &MailGroup) -> Vec<Mail> {
    let mut entry = posted.entry.clone();
    entry.keep_shown(group.shown.as_deref());
    let text = MailText::new(site, posted, &entry);
    let mail = text.mail();
    group.to.chunks(RECIPIENTS).map(|to| Mail { to: to.to_vec(), ..mail.clone() }).collect()
}

/// The parts of a mail.
struct MailText<'a> {
    site: &'a MailSite<'a>,
    posted: &'a PostedEntry<'a>,
    entry: &'a Entry,
    names: Substitutions,
    set: ActiveConditions,
    /// The address of the logbook.
    book: String,
    /// Attachments that go as files.
    with_files: bool,
}

impl<'a> MailText<'a> {
    fn new(site: &'a MailSite<'a>, posted: &'a PostedEntry<'a>, entry: &'a Entry) -> MailText<'a> {
        let base = base(site, posted);
        let sizes: Vec<u64> = entry.content.attachments.iter().map(|file| file.size).collect();
        let whole = site.outbox.settings().attachment_mb << 20;
        let fits = sizes.iter().all(|size| *size <= posted.settings.max_mail_attachment()) && sizes.iter().sum::<u64>() <= whole;
        MailText {
            site,
            posted,
            entry,
            names: names(site, posted, entry),
            set: conditions(posted),
            book: format!("{base}/{}", escape(&entry.at.book)),
            with_files: posted.settings.mail_parts().files && fits,
        }
    }

    fn mail(&self) -> Mail {
        let form = self.posted.settings.mail_form().unwrap_or(match self.entry.content.encoding {
            Encoding::Plain => MailForm::Plain,
            _ => MailForm::Table,
        });
        let domain = self.site.outbox.domain();
        let at = |id: u32, revision: u32| message_id(&EntryRef::new(&self.entry.at.book, id), revision, &domain);
        let mut thread = vec![at(self.entry.thread, 0)];
        thread.extend(self.entry.parent.map(|parent| at(parent, 0)));
        if self.posted.edited {
            thread.push(at(self.entry.at.id, 0));
        }
        thread.dedup();
        thread.retain(|id| self.posted.edited || *id != at(self.entry.at.id, 0));
        let html = (form != MailForm::Plain).then(|| self.html(form));
        let files = if self.with_files { self.files(html.as_deref()) } else { Vec::new() };
        Mail {
            to: Vec::new(),
            hidden: self.posted.settings.hides_recipients(),
            from: self.from(),
            subject: self.subject(),
            text: self.plain(),
            html,
            files,
            id: Some(at(self.entry.at.id, if self.posted.edited { self.entry.revision.max(1) } else { 0 })),
            thread,
            headers: vec![("X-Elog-URL".to_owned(), self.url())],
            about: vec![self.entry.at.clone()],
            ..Mail::default()
        }
    }

    /// Returns the sender; `None` for the one of `[mail]`.
    fn from(&self) -> Option<String> {
        let usable = |text: &str| Some(self.names.expand(text)).filter(|text| bare_address(text).is_some());
        let caller = self.posted.caller;
        let own = || named_address(&caller.full_name, &caller.email);
        match self.posted.settings.mail_from(&self.set) {
            Some(from) => usable(from),
            None => own().or_else(|| self.posted.settings.default_mail_from().and_then(usable)),
        }
    }

    fn subject(&self) -> String {
        match self.posted.settings.mail_subject(self.posted.edited, &self.set) {
            Some(subject) => self.names.expand(subject),
            None if self.posted.edited => "Updated ELOG entry".to_owned(),
            None => "New ELOG entry".to_owned(),
        }
    }

    fn heading(&self) -> String {
        let what = if self.posted.edited { "An entry was updated" } else { "A new entry was submitted" };
        match self.posted.settings.mail_heading(self.posted.edited, &self.set) {
            Some(heading) => self.names.expand(heading),
            None => format!("{what} on {}:", host(&self.book)),
        }
    }

    fn url(&self) -> String {
        format!("{}/{}", self.book, self.entry.at.id)
    }

    fn file_url(&self, file: &Attachment) -> String {
        format!("{}/{}", self.url(), escape(&address_name(file)))
    }

    /// Returns names and values above the text.
    fn lines(&self) -> Vec<(String, String)> {
        let (settings, entry) = (self.posted.settings, self.entry);
        let parts = settings.mail_parts();
        let mut lines = Vec::new();
        if parts.logbook {
            lines.push(("Logbook".to_owned(), entry.at.book.clone()));
        }
        if parts.attributes {
            let all = || self.posted.book.attributes.iter().map(|def| def.name.clone()).collect();
            for name in settings.mail_attributes().unwrap_or_else(all) {
                let Some(said) = entry.content.attribute(&name) else { continue };
                let kind = self.posted.book.attribute(&name).map(|def| def.kind).unwrap_or_default();
                lines.push((name.clone(), shown_value(kind, &name, &said.joined(), settings, self.site.zone, entry.zone)));
            }
        }
        lines
    }

    /// Returns the attachments that are named with their addresses.
    fn named_files(&self) -> &[Attachment] {
        let parts = self.posted.settings.mail_parts();
        // Files that do not fit are named in their place.
        let named = parts.file_names || parts.files && !self.with_files;
        if named { &self.entry.content.attachments } else { &[] }
    }

    fn plain(&self) -> String {
        let parts = self.posted.settings.mail_parts();
        let mut out = String::new();
        if parts.heading {
            out.push_str(&format!("{}\n\n", self.heading()));
        }
        for (name, value) in self.lines() {
            out.push_str(&format!("{name:WIDTH$}: {value}\n"));
        }
        for file in self.named_files() {
            out.push_str(&format!("{:WIDTH$}: {} ({}) {}\n", "Attachment", file.name, bytes(file.size), self.file_url(file)));
        }
        if parts.url {
            out.push_str(&format!("\n{}\n", self.url()));
        }
        if parts.text && !self.entry.content.text.is_empty() {
            let text = plain::plain(self.entry.content.encoding, &self.entry.content.text);
            out.push_str(&format!("\n{}\n{}\n", "-".repeat(72), text.trim_end()));
        }
        out
    }

    fn html(&self, form: MailForm) -> String {
        let parts = self.posted.settings.mail_parts();
        let mut html = String::from("<!DOCTYPE html>\n<html><head><meta charset=\"utf-8\">");
        html.push_str(STYLE);
        html.push_str("</head><body>\n");
        let out = &mut html;
        if parts.heading {
            put!(out, "<p><b>{}</b></p>\n", self.heading());
        }
        let is_table = form == MailForm::Table;
        out.push_str(if is_table {
            "<table border=\"1\" cellpadding=\"4\" style=\"border-collapse:collapse\">\n"
        } else {
            "<p>\n"
        });
        let (begin, middle, end) = match is_table {
            true => ("<tr><th align=\"left\" bgcolor=\"#dde4ee\">", "</th><td>", "</td></tr>\n"),
            false => ("<b>", ":</b> ", "<br>\n"),
        };
        for (name, value) in self.lines() {
            put!(out, "{}{}{}{}{}", SafeHtml(begin), name, SafeHtml(middle), value, SafeHtml(end));
        }
        for file in self.named_files() {
            put!(out, "{}Attachment{}<a href=\"{}\">{}</a>", SafeHtml(begin), SafeHtml(middle), self.file_url(file), file.name);
            put!(out, " ({}){}", bytes(file.size), SafeHtml(end));
        }
        out.push_str(if is_table { "</table>\n" } else { "</p>\n" });
        if parts.url {
            put!(out, "<p><a href=\"{}\">{}</a></p>\n", self.url(), self.url());
        }
        if parts.text && !self.entry.content.text.is_empty() {
            put!(out, "<hr>\n<div>{}</div>\n", self.rendered());
        }
        out.push_str("</body></html>\n");
        html
    }

    /// Returns the text of the entry as HTML. Its links have whole addresses, and its pictures are those of the mail if it has the files.
    fn rendered(&self) -> SafeHtml {
        let site = self.book.rsplit_once('/').map_or("", |(site, _)| site);
        let link = |target: &str| {
            let is_here = target.bytes().all(|byte| byte.is_ascii_digit());
            if is_here { format!("{}/{target}", self.book) } else { format!("{site}/{target}") }
        };
        let html = render::html_until(self.entry.content.encoding, &self.entry.content.text, &link, &Stop::default());
        let html = html.unwrap_or_else(|_| render::NOT_RENDERED.to_owned());
        let attachments = &self.entry.content.attachments;
        let places = links::addresses(attachments, &|place| Some(place.to_string()));
        let new = |used, address: &str| {
            let place = links::of_file(address, &places).and_then(|place| place.parse::<usize>().ok());
            match place.and_then(|place| Some((place, attachments.get(place)?))) {
                Some((place, file)) if used == AddressUse::Source && self.with_files && is_image(&file.name) => {
                    format!("cid:{}", self.shown_as(place))
                }
                Some((_, file)) => self.file_url(file),
                None => whole(address, &self.book),
            }
        };
        SafeHtml(links::replaced(&html, &new))
    }

    /// Returns the name by which the HTML shows an attachment.
    fn shown_as(&self, place: usize) -> String {
        let at = &self.entry.at;
        format!("{}.{}", place + 1, message_id(at, self.entry.revision, &self.site.outbox.domain()))
    }

    /// Returns the attachments whose files are there.
    fn files(&self, html: Option<&str>) -> Vec<MailFile> {
        let read = |(place, file): (usize, &Attachment)| {
            let mut bytes = Vec::with_capacity(file.size as usize);
            self.site.store.attachment(file.sha.as_ref()?).ok()?.take(file.size).read_to_end(&mut bytes).ok()?;
            let id = self.shown_as(place);
            let shown_as = html.is_some_and(|html| html.contains(&format!("\"cid:{id}\""))).then_some(id);
            Some(MailFile { name: file.name.clone(), kind: kind_of(&file.name).to_owned(), bytes, shown_as })
        };
        self.entry.content.attachments.iter().enumerate().filter_map(read).collect()
    }
}

/// Returns an address of a page of a logbook as it is everywhere. `book` is the whole address of the logbook.
fn whole(address: &str, book: &str) -> String {
    if links::is_whole(address) || address.starts_with("//") {
        return address.to_owned();
    }
    let path = book.find("://").map_or(0, |at| at + 3);
    let host = book[path..].find('/').map_or(book.len(), |at| path + at);
    match address.strip_prefix('/') {
        Some(path) => format!("{}/{path}", &book[..host]),
        None => format!("{book}/{}", address.trim_start_matches("./")),
    }
}

/// Returns the media type of a file by its ending.
fn kind_of(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "txt" | "log" | "dat" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        _ => "application/octet-stream",
    }
}
