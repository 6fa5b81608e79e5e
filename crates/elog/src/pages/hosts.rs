//! `Hosts allow` and `Hosts deny`: the client addresses to which a book is open, as [`tampu_logbook::people::host_list`] decides.

use std::net::IpAddr;

use tampu_logbook::{book::Book, people::host_list::admit};

use crate::pages::settings::BookSettings;

/// Returns true if a book is open to a client address.
pub fn open_to(settings: &BookSettings, from: IpAddr) -> bool {
    let (allow, deny) = settings.hosts();
    admit(&allow, &deny, from)
}

/// Returns true if a book whose settings are not read yet is open to a client address.
pub fn is_open(book: &Book, from: IpAddr) -> bool {
    let begins = |name: &str| name.trim_start().get(..5).is_some_and(|begin| begin.eq_ignore_ascii_case("hosts"));
    !book.elog.iter().any(|(name, _)| begins(name)) || open_to(&BookSettings::of(book), from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

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
            ("Hosts deny = pc7.site.test", "192.0.2.7", false),
            ("Hosts deny = pc7.site.test", "127.0.0.1", true),
            ("Hosts deny = 192.0.2.7", "192.0.2.7", false),
            ("Hosts deny = 192.0.2.7", "192.0.2.8", true),
            ("Hosts allow = 192.0.2.7", "192.0.2.8", true),
        ] {
            let config = config::parse(format!("[b]\n{text}\n").as_bytes());
            let settings = BookSettings::of(&config.logbooks()[0].book());
            assert_eq!(open_to(&settings, from.parse().unwrap()), open, "{text} from {from}");
        }
    }
}
