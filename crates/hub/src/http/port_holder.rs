//! The user whose program listens at a port, for the message about an address that is taken.

use std::fs;

/// The table's code for a socket that listens.
const LISTENS: &str = "0A";

/// Returns the user id of the program that listens at a TCP port of this host; `None` if that is unknown.
pub fn listener_uid(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|path| fs::read_to_string(path).ok());
    tables.into_iter().find_map(|table| uid_in(&table, port))
}

/// Looks a port up in a table of the kernel. A line has a number, own address, other address, state, queues, timer,
/// retransmits and user id.
fn uid_in(table: &str, port: u16) -> Option<u32> {
    let end = format!(":{port:04X}");
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().skip(1).take(7).collect();
        let [own, _, state, _, _, _, uid] = words[..] else { return None };
        (own.ends_with(&end) && state == LISTENS).then(|| uid.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_user_of_a_listener_is_known() {
        let own = rustix::process::getuid().as_raw();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // Some hosts have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            assert_eq!(listener_uid(listener.local_addr().unwrap().port()), Some(own), "{address}");
        }
        let line = "   0: 0100007F:1D19 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 12345 1";
        assert_eq!((uid_in(line, 0x1d19), uid_in(line, 0x1d18), uid_in("no table", 1)), (Some(1001), None, None));
    }
}
