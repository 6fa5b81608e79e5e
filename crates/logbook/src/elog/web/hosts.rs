//! `Hosts allow` and `Hosts deny`: from where a book is open. What is allowed is let in, else what is denied is not, else everybody is.
//!
//! An item is an address, the beginning of one (`192.0.2.`), `localhost` or `ALL`. Names are not looked up, because whoever owns an address says
//! what it is called: a name lets nobody in and keeps nobody out, and the import tells so.

use std::net::IpAddr;

use super::settings::Settings;
use crate::book::Book;

/// What an item of a list means.
#[derive(Debug, PartialEq, Eq)]
enum Item<'a> {
    All,
    Local,
    Address(IpAddr),
    /// The beginning of an address of IPv4.
    Begin(&'a str),
    /// A name, of which nobody is known to be.
    Name,
}

fn item(text: &str) -> Item<'_> {
    let text = text.trim();
    let begins = |begin: &str| begin.split('.').count() < 4 && begin.split('.').all(|part| part.parse::<u8>().is_ok());
    if text.eq_ignore_ascii_case("all") {
        Item::All
    } else if text.eq_ignore_ascii_case("localhost") {
        Item::Local
    } else if let Ok(address) = text.parse::<IpAddr>() {
        Item::Address(address.to_canonical())
    } else if text.strip_suffix('.').is_some_and(begins) {
        Item::Begin(text)
    } else {
        Item::Name
    }
}

fn is_in(list: &[String], from: IpAddr) -> bool {
    let from = from.to_canonical();
    list.iter().any(|text| match item(text) {
        Item::All => true,
        Item::Local => from.is_loopback(),
        Item::Address(address) => address == from,
        Item::Begin(begin) => from.is_ipv4() && from.to_string().starts_with(begin),
        Item::Name => false,
    })
}

/// Whether a book is open to whoever comes from there.
pub fn open_to(settings: &Settings, from: IpAddr) -> bool {
    let (allow, deny) = settings.hosts();
    is_in(&allow, from) || !is_in(&deny, from)
}

/// The same, for a book whose settings are not read yet.
pub fn is_open(book: &Book, from: IpAddr) -> bool {
    let begins = |name: &str| name.trim_start().get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("hosts"));
    !book.elog.iter().any(|(name, _)| begins(name)) || open_to(&Settings::of(book), from)
}

/// Items of a list that are names.
pub fn names(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).filter(|text| item(text) == Item::Name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elog::config;

    #[test]
    fn a_book_is_open_to_who_is_allowed_or_not_denied() {
        for (text, from, open) in [
            ("", "192.0.2.7", true),
            ("Hosts deny = ALL", "192.0.2.7", false),
            ("Hosts deny = ALL\nHosts allow = 192.0.2., localhost", "192.0.2.7", true),
            ("Hosts deny = ALL\nHosts allow = 192.0.2., localhost", "::ffff:192.0.2.7", true),
            ("Hosts deny = ALL\nHosts allow = 192.0.2., localhost", "::1", true),
            ("Hosts deny = ALL\nHosts allow = 192.0.2.", "192.0.20.7", false),
            ("Hosts deny = ALL\nHosts allow = 2001:db8::7", "2001:db8:0::7", true),
            ("Hosts deny = ALL\nHosts allow = pc7.site.test, .site.test", "192.0.2.7", false),
            ("Hosts deny = 192.0.2.7", "192.0.2.7", false),
            ("Hosts deny = 192.0.2.7", "192.0.2.8", true),
            ("Hosts allow = 192.0.2.7", "192.0.2.8", true),
        ] {
            let config = config::parse(format!("[b]\n{text}\n").as_bytes());
            let settings = Settings::of(&config.logbooks()[0].book());
            assert_eq!(open_to(&settings, from.parse().unwrap()), open, "{text} from {from}");
        }
        let list = ["ALL", "10.", "10", "1.2.3.4", "300.", "pc7", "1.2.3.4.", "1.2..", "::1"].map(str::to_owned);
        assert_eq!(names(&list), ["10", "300.", "pc7", "1.2.3.4.", "1.2.."]);
    }
}
