//! What all pages have: the head, the tabs, the menu, the headers of the answer.

use std::{fmt::Write, sync::LazyLock};

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{HeaderName, StatusCode, header, header::HeaderValue};
use sha2::{Digest, Sha256};

use super::{
    Ask, BookAsk, Response,
    access::Denied,
    address::escape,
    command::Command,
    html::{Raw, put},
    list::select,
    response, style,
    subst::Names,
};
use crate::{book::same_name, entry::Encoding, render, store::BookInfo};

/// Sends the form as soon as something is chosen that decides what else it has. Without scripts the button beside it does the same.
pub const SCRIPT: &str = "for (const field of document.querySelectorAll('[data-decides]')) field.addEventListener('change', () => \
    document.getElementById('update').click());";

static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT));
    let policy = format!(
        "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' http: https: data:; \
         script-src 'sha256-{digest}'; form-action 'self'; frame-ancestors 'self'; base-uri 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

/// Adds the headers that every answer has, where it has none of its own.
pub fn harden(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ] {
        headers.entry(name).or_insert(value);
    }
}

/// Leads to another address.
pub fn redirect(address: &str) -> Response {
    let mut answer = response(StatusCode::FOUND, "text/html; charset=utf-8", Vec::new());
    let to = HeaderValue::from_str(address).unwrap_or_else(|_| HeaderValue::from_static("/"));
    answer.headers_mut().insert(header::LOCATION, to);
    answer
}

/// An answer without the site around it, for what is no request of a browser.
pub fn bare(status: StatusCode, text: &str) -> Response {
    let mut out = String::new();
    put!(&mut out, "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title></head><body>", text);
    put!(&mut out, "<table><tr><td class=\"errormsg\">{}</td></tr></table></body></html>\n", text);
    response(status, "text/html; charset=utf-8", out.into_bytes())
}

/// A page that says what is wrong, where ELOG's programs look for it.
pub fn error(ask: &Ask<'_>, status: StatusCode, text: &str) -> Response {
    let mut body = String::new();
    put!(&mut body, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr>\n", text);
    put!(&mut body, "<tr><td><a href=\"./\">Back</a> | <a href=\"{}./\">All logbooks</a></td></tr></table>\n", ask.root);
    plain(ask, status, "ELOG error", &body)
}

/// A page outside of a book.
pub fn plain(ask: &Ask<'_>, status: StatusCode, title: &str, body: &str) -> Response {
    let mut out = String::with_capacity(body.len() + 1024);
    head(&mut out, ask.root, title, &[], None);
    put!(&mut out, "<body>\n<main>\n{}</main>\n</body></html>\n", Raw(body));
    response(status, "text/html; charset=utf-8", out.into_bytes())
}

fn head(out: &mut String, root: &str, title: &str, styles: &[String], refresh: Option<u32>) {
    put!(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{}</title>\n", title);
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    if let Some(seconds) = refresh {
        put!(out, "<meta http-equiv=\"refresh\" content=\"{}\">\n", seconds);
    }
    put!(out, "<link rel=\"stylesheet\" href=\"{}elog.css\">\n", root);
    for name in styles {
        put!(out, "<link rel=\"stylesheet\" href=\"{}{}\">\n", root, escape(name));
    }
}

/// A page of a book.
pub struct Page<'a> {
    /// The request.
    pub ask: &'a BookAsk<'a>,
    /// What the window's title says after the book's name.
    pub title: String,
    /// `list`, `edit` or nothing: which of the titles that can be configured.
    pub kind: &'static str,
    /// Whether it is loaded again after a while.
    pub refresh: bool,
    /// Whether it has the script for forms.
    pub script: bool,
    /// Between head and foot.
    pub body: String,
}

impl<'a> Page<'a> {
    /// A page with this body.
    pub fn new(ask: &'a BookAsk<'a>, title: &str, body: String) -> Page<'a> {
        Page { ask, title: title.to_owned(), kind: "", refresh: false, script: false, body }
    }

    /// A list.
    pub fn list(ask: &'a BookAsk<'a>, body: String) -> Page<'a> {
        Page { kind: "list", refresh: true, ..Page::new(ask, "", body) }
    }

    /// The answer that is this page.
    pub fn answer(mut self, status: StatusCode) -> Response {
        let body = std::mem::take(&mut self.body);
        let (mut page, end) = self.around();
        page.reserve(body.len() + end.len());
        page.push_str(&body);
        page.push_str(&end);
        response(status, "text/html; charset=utf-8", page.into_bytes())
    }

    /// What stands before its body and behind it.
    pub fn around(self) -> (String, String) {
        let Page { ask, title, kind, refresh, script, .. } = self;
        let (book, settings) = (&ask.book, &ask.settings);
        let names = Names::new(ask.caller, book, settings, &ask.site.config.zone, ask.now);
        let title = match settings.page_title(kind) {
            Some(own) => names.expand(own),
            None if title.is_empty() => book.name.clone(),
            None => format!("{} - {title}", book.name),
        };
        let mut out = String::with_capacity(4096);
        head(&mut out, ask.root, &title, &style::of_book(settings), settings.refresh().filter(|_| refresh));
        put!(&mut out, "<link rel=\"alternate\" type=\"application/rss+xml\" title=\"{}\" href=\"elog.rdf\">\n", book.name);
        out.push_str("</head>\n<body>\n");
        out.push_str(&configured(settings.top_text(), &names));
        tabs(ask, &mut out);
        put!(&mut out, "<div class=\"title1\"><span class=\"title2\">{}</span>", title_text(ask));
        let who = if ask.caller.full_name.is_empty() { &ask.caller.login } else { &ask.caller.full_name };
        if who.is_empty() {
            out.push_str("<span class=\"title3\"><a href=\"?cmd=Login\">Log in</a></span>");
        } else {
            put!(&mut out, "<span class=\"title3\">Logged in as \"{}\" <a href=\"?cmd=Logout\">Log out</a></span>", who);
        }
        let (image, url) = settings.title_image();
        if !image.is_empty() {
            out.push_str(&render::html(Encoding::Html, &title_image(image, url), &|_| String::new()));
        }
        out.push_str("</div>\n<main>\n");
        let mut end = String::from("</main>\n");
        end.push_str(&configured(settings.bottom_text(), &names));
        if script {
            put!(&mut end, "<script>{}</script>\n", Raw(SCRIPT));
        }
        end.push_str("</body></html>\n");
        (out, end)
    }
}

fn title_text(ask: &BookAsk<'_>) -> String {
    if ask.book.comment.is_empty() { ask.book.name.clone() } else { ask.book.comment.clone() }
}

/// `Title image` is an address, or the whole element.
fn title_image(image: &str, url: &str) -> String {
    if image.trim_start().starts_with('<') {
        return image.to_owned();
    }
    let mut out = String::new();
    put!(&mut out, "<a href=\"{}\"><img class=\"titleimage\" src=\"{}\" alt=\"\"></a>", url, image);
    out
}

/// What a configuration puts into every page: HTML, which is cleaned as everything is.
pub fn configured(text: &str, names: &Names) -> String {
    if text.is_empty() {
        return String::new();
    }
    let mut out = String::new();
    put!(
        &mut out,
        "<div class=\"configured\">{}</div>\n",
        Raw(render::html(Encoding::Html, &names.expand(text), &|_| String::new()))
    );
    out
}

/// The books of the same top group, in a row; before them the page of all books.
fn tabs(ask: &BookAsk<'_>, out: &mut String) {
    let Ok(books) = ask.site.books() else { return };
    let settings = &ask.settings;
    let readable = |info: &&BookInfo| ask.sees(info);
    let mut groups: Vec<&str> = Vec::new();
    for group in books.iter().filter(readable).filter_map(|info| info.book.group.as_deref()) {
        if !groups.iter().any(|known| same_name(known, group)) {
            groups.push(group);
        }
    }
    groups.sort_by_key(|group| group.to_lowercase());
    let many = books.iter().filter(readable).count() > 1;
    let main = settings.main_tab();
    if !settings.logbook_tabs() || !many && main.is_none() {
        return;
    }
    out.push_str("<nav class=\"tabs\">\n");
    if let Some((text, url)) = main {
        let own = url.filter(|url| is_web(url)).map_or_else(|| ask.root.to_owned(), str::to_owned);
        put!(out, "<span class=\"ltab\"><a href=\"{}\">{}</a></span>\n", own, text);
    }
    if groups.len() > 1 {
        for group in groups {
            let class = if ask.book.group.as_deref().is_some_and(|own| same_name(own, group)) { "sltab" } else { "ltab" };
            put!(out, "<span class=\"{} gtab\"><a href=\"{}#{}\">{}</a></span>\n", class, ask.root, escape(group), group);
        }
        out.push_str("<br>\n");
    }
    for info in books.iter().filter(readable) {
        let name = &info.book.name;
        let own = same_name(name, &ask.book.name);
        let elsewhere = match (&info.book.group, &ask.book.group) {
            (Some(a), Some(b)) => !same_name(a, b),
            (None, None) => false,
            _ => true,
        };
        if !own && (elsewhere || is_hidden(info)) {
            continue;
        }
        let class = if own { "sltab" } else { "ltab" };
        put!(out, "<span class=\"{}\"><a href=\"{}{}/\">{}</a></span>\n", class, ask.root, escape(name), name);
    }
    out.push_str("</nav>\n");
}

/// Whether a book says that it is not to be shown among the others.
pub fn is_hidden(info: &BookInfo) -> bool {
    info.book.elog.iter().any(|(name, value)| name.eq_ignore_ascii_case("hidden") && value.trim() == "1")
}

/// Whether an address that somebody has given is one of the web, or leads within the site.
pub fn is_web(url: &str) -> bool {
    let lower = url.trim().to_ascii_lowercase();
    lower.starts_with("http://") || lower.starts_with("https://") || !lower.contains(':') && !lower.starts_with("//")
}

/// The commands above a page. `id` is the entry it shows; none for a list.
pub fn menu(ask: &BookAsk<'_>, id: Option<u32>) -> String {
    let guest = ask.caller.login.is_empty();
    let (names, _) = ask.settings.menu(id.is_none(), guest);
    let mut out = String::from("<nav class=\"menuframe\">");
    let mut first = true;
    for name in names {
        let Some(command) = Command::named(&name).filter(|command| command.has_page()) else { continue };
        if ask.may(command).is_err_and(|denied| denied != Denied::Login) {
            continue;
        }
        if command == Command::Select && select::commands(ask).is_empty() {
            continue;
        }
        let href = match (command, id) {
            (Command::Select, None) => format!("./{}", ask.query.without(&["cmd", "id"]).with("select", "1").written()),
            (Command::Select, Some(_)) => "./?select=1".to_owned(),
            (Command::List, _) => "./".to_owned(),
            (Command::LastDay, _) => "past1".to_owned(),
            (Command::LastTen, _) => "last10".to_owned(),
            (Command::Help, _) => ask.settings.help_url().filter(|url| is_web(url)).unwrap_or("?cmd=Help").to_owned(),
            (command, Some(id)) if command.is_of_entry() => format!("{id}?cmd={}", escape(command.name())),
            (command, None) if command.is_of_entry() => continue,
            (command, _) => format!("./?cmd={}", escape(command.name())),
        };
        if !std::mem::take(&mut first) {
            out.push_str(" |");
        }
        // Writing into a text cannot fail.
        let _ = write!(out, " ");
        put!(&mut out, "<a href=\"{}\">{}</a>", href, name);
    }
    out.push_str("</nav>\n");
    out
}
