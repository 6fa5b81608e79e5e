//! Lists of hosts in ELOG's configuration, `Hosts allow` and `Hosts deny`.
//!
//! An item is an address, the beginning of one (`192.0.2.`), `localhost` or `ALL`. Names are not looked up, because the owner of
//! an address decides about its name. So a name in `Hosts allow` admits nobody. A name in `Hosts deny` shuts out all hosts but
//! this one and those of `Hosts allow`, because any address could be the named one.

use std::net::IpAddr;

/// The meaning of an item of a list.
#[derive(Debug, PartialEq, Eq)]
enum Item<'a> {
    All,
    Local,
    Address(IpAddr),
    /// The beginning of an address of IPv4.
    Begin(&'a str),
    /// A name, which matches no address.
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

/// Returns true if an item of a list matches an address.
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

/// Returns true if the two lists admit an address: an allowed one is admitted, a denied one is not, and every other one is,
/// unless a name is denied.
pub fn admit(allow: &[String], deny: &[String], from: IpAddr) -> bool {
    let may_be_named = !from.to_canonical().is_loopback() && !names(deny).is_empty();
    is_in(allow, from) || !is_in(deny, from) && !may_be_named
}

/// Items of a list that are names.
pub fn names(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).filter(|text| item(text) == Item::Name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_are_known() {
        let list = ["ALL", "10.", "10", "1.2.3.4", "300.", "pc7", "1.2.3.4.", "1.2..", "::1"].map(str::to_owned);
        assert_eq!(names(&list), ["10", "300.", "pc7", "1.2.3.4.", "1.2.."]);
    }
}
