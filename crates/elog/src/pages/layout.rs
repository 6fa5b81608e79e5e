//! The common parts of all pages: head, tabs, menu, and the headers of the response.

use std::fmt::Write;

use http::{
    HeaderName, StatusCode,
    header::{self, HeaderValue},
};
use tampu_logbook::{
    entry::{Encoding, Entry},
    render,
};

use crate::{
    pages::{
        access::AccessDenied,
        address::escape,
        command::PageCommand,
        html::{SafeHtml, put},
        list::select,
        request::{BookRequest, PageRequest},
        response::{self, Response},
        script,
        site::Site,
        style,
        subst::Substitutions,
        tabs,
    },
    site_files,
};

/// Returns the content security policy of pages of the site at `base`. They may load images from these hosts, besides
/// their own.
fn policy(base: &str, image_hosts: &[String]) -> HeaderValue {
    let hosts: String = image_hosts.iter().map(|host| format!(" {host}")).collect();
    let policy = format!(
        "default-src 'none'; style-src 'self'; style-src-attr 'unsafe-inline'; img-src 'self' data: blob:{hosts}; \
         script-src {}; connect-src 'self'; form-action 'self'; frame-ancestors 'self'; base-uri 'none'",
        script::sources(base)
    );
    HeaderValue::from_str(&policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
}

/// Adds the headers of every response, where it has none of its own.
pub fn harden(response: &mut Response, base: &str, image_hosts: &[String]) {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, policy(base, image_hosts)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ] {
        headers.entry(name).or_insert(value);
    }
}

/// Answers with an error, in the element in which ELOG's programs search for it.
pub fn error(request: &PageRequest<'_>, status: StatusCode, text: &str) -> Response {
    let mut body = String::new();
    put!(&mut body, "<table class=\"dlgframe\"><tr><td class=\"errormsg\">{}</td></tr>\n", text);
    put!(
        &mut body,
        "<tr><td><a href=\"./\">{}</a> | <a href=\"{}./\">All logbooks</a></td></tr></table>\n",
        request.word("Back"),
        request.root
    );
    plain(request, status, "ELOG error", &body)
}

/// Returns a page outside of a book.
pub fn plain(request: &PageRequest<'_>, status: StatusCode, title: &str, body: &str) -> Response {
    let mut out = String::with_capacity(body.len() + 1024);
    head(&mut out, request, title, &[], None);
    put!(&mut out, "<body>\n<main>\n{}</main>\n</body></html>\n", SafeHtml(body));
    response::with_bytes(status, "text/html; charset=utf-8", out.into_bytes())
}

fn head(out: &mut String, request: &PageRequest<'_>, title: &str, styles: &[String], refresh: Option<u32>) {
    put!(
        out,
        "<!DOCTYPE html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\"><title>{}</title>\n",
        request.words.code(),
        title
    );
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    if let Some(seconds) = refresh {
        put!(out, "<meta http-equiv=\"refresh\" content=\"{}\">\n", seconds);
    }
    put!(out, "<link rel=\"stylesheet\" href=\"{}elog.css\">\n", request.root);
    for name in styles {
        put!(out, "<link rel=\"stylesheet\" href=\"{}{}\">\n", request.root, escape(name));
    }
}

/// A page of a book.
pub struct BookPage<'a> {
    pub request: &'a BookRequest<'a>,
    /// The window's title after the book's name.
    pub title: String,
    /// `list`, `edit` or empty: the configurable title to use.
    pub kind: &'static str,
    /// The entry that it shows, for `Page Title`.
    pub entry: Option<&'a Entry>,
    /// True if the browser reloads it after a while.
    pub refresh: bool,
    /// True if it has the script for forms.
    pub has_script: bool,
    /// The content between head and foot.
    pub body: String,
}

impl<'a> BookPage<'a> {
    /// Makes a page with this body.
    pub fn new(request: &'a BookRequest<'a>, title: &str, body: String) -> BookPage<'a> {
        BookPage { request, title: title.to_owned(), kind: "", entry: None, refresh: false, has_script: false, body }
    }

    /// Makes the page of a list.
    pub fn list(request: &'a BookRequest<'a>, body: String) -> BookPage<'a> {
        BookPage { kind: "list", refresh: true, ..BookPage::new(request, "", body) }
    }

    /// Returns the response with this page.
    pub fn answer(mut self, status: StatusCode) -> Response {
        let body = std::mem::take(&mut self.body);
        let (mut page, end) = self.around();
        page.reserve(body.len() + end.len());
        page.push_str(&body);
        page.push_str(&end);
        response::with_bytes(status, "text/html; charset=utf-8", page.into_bytes())
    }

    /// Returns the HTML before and after its body.
    pub fn around(self) -> (String, String) {
        let BookPage { request, title, kind, entry, refresh, has_script, .. } = self;
        let (book, settings) = (&request.book, &request.settings);
        let names = Substitutions::new(request.caller, book, settings, &request.zone, request.now);
        let title = match (settings.page_title(kind), entry) {
            (Some(own), Some(entry)) => names.clone().with_entry(entry, book, settings, &request.zone).expand(own),
            // Other pages have no entry that its title could name.
            (Some(own), None) if !kind.is_empty() => names.expand(own),
            _ if title.is_empty() => book.name.clone(),
            _ => format!("{} - {title}", book.name),
        };
        let mut out = String::with_capacity(4096);
        head(&mut out, request, &title, &style::of_book(settings), settings.refresh().filter(|_| refresh));
        put!(&mut out, "<link rel=\"alternate\" type=\"application/rss+xml\" title=\"{}\" href=\"elog.rdf\">\n", book.name);
        out.push_str("</head>\n<body>\n");
        out.push_str(&configured(request.site, settings.top_text(), &names));
        let named = tabs::write(request, &mut out);
        out.push_str("<div class=\"title1\">");
        // Where no tab names the book, its description alone would not say which one it is.
        if !named && !book.comment.is_empty() {
            put!(&mut out, "<b class=\"bookname\">{}</b> ", book.name);
        }
        put!(&mut out, "<span class=\"title2\">{}</span>", title_text(request));
        let user_name = if request.caller.full_name.is_empty() { &request.caller.login } else { &request.caller.full_name };
        if user_name.is_empty() {
            put!(&mut out, "<span class=\"title3\"><a href=\"?cmd=Login\">{}</a></span>", request.said("Login", "Log in"));
        } else if request.site.is_open() {
            put!(&mut out, "<span class=\"title3\">\"{}\", the owner: there are no users</span>", user_name);
        } else {
            put!(
                &mut out,
                "<span class=\"title3\">{} \"{}\" <a href=\"?cmd=Logout\">{}</a> \
                 (<a href=\"?cmd=Logout&amp;everywhere=1\">everywhere</a>)</span>",
                request.word("Logged in as"),
                user_name,
                request.said("Logout", "Log out")
            );
        }
        let (image, url) = settings.title_image();
        if !image.is_empty() {
            out.push_str(&render::html(Encoding::Html, &title_image(image, url), &|_| String::new()));
        }
        out.push_str("</div>\n<main>\n");
        let mut end = String::from("</main>\n");
        end.push_str(&configured(request.site, settings.bottom_text(), &names));
        if has_script {
            script::element(request.root, &mut end);
        }
        end.push_str("</body></html>\n");
        (out, end)
    }
}

fn title_text(request: &BookRequest<'_>) -> String {
    if request.book.comment.is_empty() { request.book.name.clone() } else { request.book.comment.clone() }
}

/// Writes the `Title image`, which is an address or a whole element.
fn title_image(image: &str, url: &str) -> String {
    if image.trim_start().starts_with('<') {
        return image.to_owned();
    }
    let mut out = String::new();
    put!(&mut out, "<a href=\"{}\"><img class=\"titleimage\" src=\"{}\" alt=\"\"></a>", url, image);
    out
}

/// Returns HTML of a configuration, sanitised.
pub fn clean(text: &str) -> String {
    render::html(Encoding::Html, text, &|_| String::new())
}

/// Returns the HTML that a configuration adds to every page, or the page that it names, sanitised.
pub fn configured(site: &Site, text: &str, names: &Substitutions) -> String {
    if text.is_empty() {
        return String::new();
    }
    let file = if site_files::is_page(text) { site.page_file(text) } else { None };
    if let Some(SafeHtml(file)) = file {
        return format!("<div class=\"configured\">{file}</div>\n");
    }
    let mut out = String::new();
    put!(&mut out, "<div class=\"configured\">{}</div>\n", SafeHtml(clean(&names.expand(text))));
    out
}

/// Returns the commands above a page. `id` is the entry it shows; `None` for a list.
pub fn menu(request: &BookRequest<'_>, id: Option<u32>) -> String {
    let guest = request.caller.login.is_empty();
    let (names, _) = request.settings.menu(id.is_none(), guest);
    let mut out = String::from("<nav class=\"menuframe\">");
    let mut first = true;
    for name in names {
        let Some(command) = PageCommand::named(&name).filter(|command| command.has_page()) else { continue };
        if request.may(command).is_err_and(|denied| denied != AccessDenied::Login) {
            continue;
        }
        if command == PageCommand::Select && select::commands(request).is_empty() {
            continue;
        }
        let href = match (command, id) {
            (PageCommand::Select, None) => format!("./{}", request.query.without(&["cmd", "id"]).with("select", "1").written()),
            (PageCommand::Select, Some(_)) => "./?select=1".to_owned(),
            // The bare address has the welcome page.
            (PageCommand::List, _) if request.settings.welcome_page().is_some() => "./?cmd=List".to_owned(),
            (PageCommand::List, _) if request.settings.back_to_main() => request.root.to_owned(),
            (PageCommand::List, _) => "./".to_owned(),
            (PageCommand::LastDay, _) => "past1".to_owned(),
            (PageCommand::LastTen, _) => "last10".to_owned(),
            (PageCommand::Help, _) => {
                request.settings.help_url().filter(|url| tabs::is_web(url)).unwrap_or("?cmd=Help").to_owned()
            }
            (command, Some(id)) if command.is_of_entry() => format!("{id}?cmd={}", escape(command.name())),
            (command, None) if command.is_of_entry() => continue,
            (command, _) => format!("./?cmd={}", escape(command.name())),
        };
        if !std::mem::take(&mut first) {
            out.push_str(" |");
        }
        // Writing into a string cannot fail.
        let _ = write!(out, " ");
        put!(&mut out, "<a href=\"{}\">{}</a>", href, request.word(&name));
    }
    out.push_str("</nav>\n");
    if let Some(text) = request.settings.menu_text(id.is_none()).and_then(|name| request.site.page_file(name)) {
        put!(&mut out, "<div class=\"menuframe menutext\">{}</div>\n", text);
    }
    out
}
