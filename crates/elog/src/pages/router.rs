//! Finds the page that answers a request.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{Method, StatusCode};
use tampu_logbook::{
    book::Book,
    people::{Caller, session},
    search::{Search, Stop},
    store::{StoreError, naming::current_name},
};
use tampu_types::Time;

use crate::pages::{
    account,
    address::{self, AddressTarget, MAX_ADDRESS, Parameters},
    book_config, books, browser, calendar, charset,
    command::PageCommand,
    entry, finder, form, formats, help, hosts, layout, list, login_form, pdf, post,
    request::{BookRequest, HttpRequest, PageRequest},
    response::{self, Response, TooManyChanges},
    script, sent,
    settings::BookSettings,
    site::Site,
    style,
};

impl Site {
    /// Answers a request.
    pub fn answer(&self, caller: &Caller, incoming: HttpRequest<'_>) -> Response {
        let uri = incoming.uri();
        if uri.path().len() + uri.query().map_or(0, str::len) > MAX_ADDRESS {
            return response::bare(StatusCode::URI_TOO_LONG, "The address is too long");
        }
        let path = uri.path();
        let path = path.strip_prefix(&self.config.prefix).filter(|rest| rest.is_empty() || rest.starts_with('/')).unwrap_or(path);
        let (book, target) = address::path(path);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let base = self.base(incoming.headers());
        let request = PageRequest {
            site: self,
            caller,
            root: if book.is_some() { "../" } else { "" },
            target,
            query: Parameters::read(uri.query().unwrap_or_default()),
            base: base.clone(),
            session: browser::cookie(incoming.headers(), session::COOKIE),
            by_browser: browser::is_browser(incoming.headers()),
            origin: browser::BrowserOrigin::of(incoming.headers(), &base),
            stop: incoming.extensions().get::<Stop>().cloned().unwrap_or_default(),
            now: Time::from_unix(now.as_secs() as i64, now.subsec_nanos()),
            zone: self.zone(),
            words: self.words(None),
        };
        let too_many = incoming.extensions().get::<TooManyChanges>().copied();
        let mut response = match book {
            _ if too_many.is_some() => request.too_many_changes(too_many.map_or(1, |too_many| too_many.seconds)),
            None => request.outside(incoming),
            Some(book) => request.open(&book, incoming),
        };
        layout::harden(&mut response, &base, &self.config.image_hosts);
        response
    }
}

impl<'a> PageRequest<'a> {
    /// Answers a request that names no book.
    fn outside(self, incoming: HttpRequest<'_>) -> Response {
        match &self.target {
            AddressTarget::Style(name) => return style::answer(self.site, name),
            AddressTarget::Image(name) => return style::image(self.site, name),
            AddressTarget::Script => return script::answer(),
            _ => {}
        }
        if self.query.get(account::unsubscribe::TOKEN).is_some() {
            return account::unsubscribe::answer(&self, incoming.method());
        }
        match *incoming.method() {
            Method::GET | Method::HEAD if self.query.get(account::approval::TOKEN).is_some() => {
                account::approval::answer(&self, incoming.method(), &sent::ReceivedForm::of_query(""))
            }
            Method::POST => post::outside(&self, incoming),
            Method::GET if self.logs_in() => self.log_in_by_address(None, &incoming),
            Method::GET | Method::HEAD => match self.command() {
                Some(PageCommand::Login) => login_form::answer(&self, None),
                Some(PageCommand::Logout) => post::login::logout_page(&self, None),
                _ => account::page(&self, None).unwrap_or_else(|| books::answer(&self)),
            },
            _ => response::bare(StatusCode::METHOD_NOT_ALLOWED, "Only GET, HEAD and POST are understood"),
        }
    }

    /// Logs a program in that sends the password in the address, if the site allows it.
    fn log_in_by_address(&self, book: Option<&Book>, incoming: &HttpRequest<'_>) -> Response {
        if !self.site.config.password_in_address {
            let text = "Error: a password in the address stays in the logs of proxies; send uname and upassword by POST, or let \
                        the site set [book] password_in_address = true";
            return layout::error(self, StatusCode::FORBIDDEN, text);
        }
        post::login::login(self, book, &sent::ReceivedForm::of_query(incoming.uri().query().unwrap_or_default()))
    }

    /// Redirects from the former name of a logbook to the same page under its name.
    fn redirect_to(&self, current: &str, former: &str, incoming: &HttpRequest<'_>) -> Response {
        if !matches!(*incoming.method(), Method::GET | Method::HEAD) {
            let text = format!("Error: the logbook \"{former}\" was renamed to \"{current}\"; nothing was changed");
            return layout::error(self, StatusCode::CONFLICT, &text);
        }
        let uri = incoming.uri();
        let path = uri.path().strip_prefix(&self.site.config.prefix).unwrap_or(uri.path()).trim_start_matches('/');
        let rest = path.split_once('/').map_or("", |(_, rest)| rest);
        let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
        response::redirect(&format!("{}/{}/{rest}{query}", self.base, address::escape(current)))
    }

    /// Opens a book and answers in it.
    fn open(self, name: &str, incoming: HttpRequest<'_>) -> Response {
        if let AddressTarget::Style(name) = &self.target {
            return style::answer(self.site, name);
        }
        if let AddressTarget::Image(name) = &self.target {
            return style::image(self.site, name);
        }
        if *incoming.method() == Method::GET && self.logs_in() {
            let book = self.site.store.book(name).ok();
            return self.log_in_by_address(book.as_ref(), &incoming);
        }
        let book = match self.site.store.book(name) {
            Ok(book) => book,
            Err(StoreError::NoBook(_)) if self.caller.login.is_empty() && self.reads_nothing() => {
                return login_form::answer(&self, None);
            }
            Err(StoreError::NoBook(_)) => {
                return match current_name(&*self.site.store, name) {
                    Ok(Some(current)) if self.reads(&current) => self.redirect_to(&current, name, &incoming),
                    Ok(Some(_)) if self.caller.login.is_empty() => login_form::answer(&self, None),
                    Ok(_) => self.no_book(name),
                    Err(error) => self.failed(&error),
                };
            }
            Err(error) => return self.failed(&error),
        };
        let settings = BookSettings::of(&book);
        let words = self.site.words(settings.language());
        let request = BookRequest { request: PageRequest { words, ..self }, book, settings };
        if request.target == AddressTarget::Bare {
            let address = format!("{}{}", request.address(""), request.query.written());
            return response::redirect(&address);
        }
        // Files have their own character sets.
        let converts = request.settings.is_latin1() && !matches!(request.target, AddressTarget::Attachment(..));
        let answer = match *incoming.method() {
            Method::POST => post::answer(&request, incoming),
            Method::GET | Method::HEAD => request.get(incoming),
            _ => response::bare(StatusCode::METHOD_NOT_ALLOWED, "Only GET, HEAD and POST are understood"),
        };
        if converts { charset::in_latin1(answer) } else { answer }
    }
}

impl BookRequest<'_> {
    fn get(mut self, incoming: HttpRequest<'_>) -> Response {
        if self.target == AddressTarget::Newest && self.may(PageCommand::List).is_ok() {
            let newest = Search { books: vec![self.book.name.clone()], limit: 1, count_to: 0, ..Search::default() };
            match self.site.store.search(&newest, &self.stop) {
                Ok(page) => {
                    if let Some(hit) = page.hits.first() {
                        self.request.target = AddressTarget::Entry(hit.entry.at.id);
                    }
                }
                Err(error) => return self.failed(&error),
            }
        }
        // An address with an unknown command belongs to a later ELOG; the list is the best answer.
        let command = self.command();
        let needed = match command {
            Some(PageCommand::Login) => return login_form::answer(&self, Some(&self.book)),
            Some(PageCommand::Logout) => return post::login::logout_page(&self, Some(&self.book)),
            // These pages are for people without an account, or without their password. They show nothing of the book.
            Some(PageCommand::NewUser | PageCommand::Forgot) if hosts::open_to(&self.settings, self.caller.from) => {
                return account::page(&self, Some(&self.settings)).unwrap_or_else(|| post::not_here(&self));
            }
            Some(command) if command.is_of_entry() && !matches!(self.target, AddressTarget::Entry(_)) => PageCommand::List,
            Some(command) => command,
            None => PageCommand::List,
        };
        if let Err(denied) = self.may(needed) {
            return self.refuse(denied);
        }
        // Like ELOG, removes empty parameters from the address; a form sends all of its fields.
        if self.query.0.iter().any(|(_, value)| value.is_empty()) {
            return self.without_empty(incoming.uri().path());
        }
        if let Some(answer) = account::page(&self, Some(&self.settings)) {
            return answer;
        }
        match (&self.target, command) {
            (_, Some(PageCommand::Help)) => help::help(&self),
            (AddressTarget::Rss, _) => formats::rss(&self),
            (AddressTarget::Attachment(id, name), _) => formats::attachment(&self, *id, name, incoming.headers()),
            (_, Some(PageCommand::Admin)) => book_config::page(&self),
            (_, Some(PageCommand::LastDay)) => response::redirect(&self.address("past1")),
            (_, Some(PageCommand::LastTen)) => response::redirect(&self.address("last10")),
            (_, Some(PageCommand::New)) => form::new(&self),
            (_, Some(PageCommand::Find)) => finder::answer(&self),
            (_, Some(PageCommand::GetMd5)) => formats::md5(&self),
            (_, Some(PageCommand::CsvImport | PageCommand::XmlImport)) => post::import_form(&self),
            (AddressTarget::Entry(id), Some(PageCommand::Edit)) => form::edit(&self, *id),
            (AddressTarget::Entry(id), Some(PageCommand::Reply)) => form::reply(&self, *id),
            (AddressTarget::Entry(id), Some(PageCommand::Duplicate)) => form::duplicate(&self, *id),
            (AddressTarget::Entry(id), Some(PageCommand::Delete)) => post::delete(&self, *id),
            (AddressTarget::Entry(id), Some(PageCommand::CopyTo)) => post::copy_to(&self, *id),
            (AddressTarget::Entry(id), Some(PageCommand::MoveTo)) => post::move_to(&self, *id),
            (AddressTarget::Entry(id), Some(PageCommand::Download)) => formats::entry(&self, *id),
            (
                AddressTarget::Entry(id),
                Some(PageCommand::First | PageCommand::Previous | PageCommand::Next | PageCommand::Last),
            ) => entry::step(&self, *id, command.unwrap_or(PageCommand::Next)),
            (AddressTarget::Entry(_), Some(PageCommand::List)) => response::redirect(&self.address("")),
            (AddressTarget::Entry(id), _) if pdf::is_wanted(&self.query) => pdf::answer(&self, *id),
            (AddressTarget::Entry(id), _) => entry::answer(&self, *id),
            (AddressTarget::List(part), _) => match self.query.get("mode").and_then(formats::ListFormat::named) {
                Some(format) => formats::list(&self, *part, format),
                None => list::answer(&self, *part),
            },
            (AddressTarget::Calendar, _) => calendar::answer(&self),
            (
                AddressTarget::Style(_)
                | AddressTarget::Image(_)
                | AddressTarget::Script
                | AddressTarget::Books
                | AddressTarget::Bare,
                _,
            ) => response::redirect(&self.address("")),
            (AddressTarget::Newest, _) => layout::error(&self, StatusCode::NOT_FOUND, "This logbook has no entries"),
            (AddressTarget::Unknown(name), _) => {
                layout::error(&self, StatusCode::NOT_FOUND, &format!("Unknown address \"{name}\" in this logbook"))
            }
        }
    }

    fn without_empty(&self, path: &str) -> Response {
        let kept = Parameters(self.query.0.iter().filter(|(_, value)| !value.is_empty()).cloned().collect());
        let path = path.strip_prefix(&self.site.config.prefix).unwrap_or(path);
        response::redirect(&format!("{}{path}{}", self.base, kept.written()))
    }
}
