//! The address of a database: the encryption that it asks for, and the password that it leaves out.
//!
//! | `sslmode` | connection |
//! |-|-|
//! | `verify-full` | TLS; the certificate is of a trusted authority and names the host |
//! | `verify-ca` | TLS; the certificate is of a trusted authority |
//! | `require` | TLS; with `sslrootcert` as `verify-ca`, without it any certificate |
//! | `disable` | no TLS |
//! | none, on this host | no TLS |
//! | none, on another host | an error: the password would cross the network in clear text |
//!
//! `sslrootcert` names a file of authorities; without it those of the system are trusted. `prefer` and `allow` are errors
//! towards another host, because a third party can turn them into `disable`.

use std::{
    env, fs,
    net::IpAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use percent_encoding::percent_decode_str;
use postgres::{
    Client, Config,
    config::{Host, SslMode},
};

use super::tls::{DatabaseTls, ServerCheck};

/// The address of a database with everything that a connection needs.
#[derive(Clone)]
pub struct DatabaseAddress {
    pub config: Config,
    pub tls: DatabaseTls,
}

impl DatabaseAddress {
    /// Parses an address in either of libpq's forms.
    pub fn parse(address: &str) -> Result<DatabaseAddress, String> {
        let (rest, [mode, roots]) = split(address)?;
        let mut config: Config = rest.parse().map_err(|error| crate::store::error::refusal(&error))?;
        let is_local = is_local(&config);
        let check = match mode.as_deref() {
            Some("verify-full") => ServerCheck::Name,
            Some("verify-ca") => ServerCheck::Authority,
            Some("require") if roots.is_some() => ServerCheck::Authority,
            Some("require") => ServerCheck::Nothing,
            Some("disable") => ServerCheck::NoTls,
            None | Some("prefer" | "allow") if is_local => ServerCheck::NoTls,
            None | Some("prefer" | "allow") => {
                return Err(
                    "the server is on another host, and without TLS the password crosses the network in clear text: add \
                            sslmode=verify-full (and sslrootcert=FILE for an authority of your own), or sslmode=disable"
                        .to_owned(),
                );
            }
            Some(other) => {
                return Err(format!("invalid sslmode '{other}'; write disable, require, verify-ca or verify-full"));
            }
        };
        config.ssl_mode(if check == ServerCheck::NoTls { SslMode::Disable } else { SslMode::Require });
        let roots = roots.filter(|roots| roots != "system").map(PathBuf::from);
        if config.get_password().is_none()
            && let Some(password) = password(&config)?
        {
            config.password(password);
        }
        Ok(DatabaseAddress { config, tls: DatabaseTls::new(check, roots.as_deref())? })
    }

    /// Connects as the address says.
    pub fn connect(&self) -> Result<Client, postgres::Error> {
        self.config.connect(self.tls.clone())
    }
}

/// Returns true if an address contains a password.
pub fn has_password(address: &str) -> bool {
    address.parse::<Config>().map_or_else(
        // Parameters that only this module knows.
        |_| split(address).is_ok_and(|(rest, _)| rest.parse::<Config>().is_ok_and(|config| config.get_password().is_some())),
        |config| config.get_password().is_some(),
    )
}

/// Returns the files that connecting to an address reads: trusted authorities and passwords.
pub fn files_of(address: &str) -> Vec<PathBuf> {
    let roots = split(address).ok().and_then(|(_, [_, roots])| roots).filter(|roots| roots != "system").map(PathBuf::from);
    roots.into_iter().chain(password_file().map(|(path, _)| path)).collect()
}

/// Takes `sslmode` and `sslrootcert` out of an address.
fn split(address: &str) -> Result<(String, [Option<String>; 2]), String> {
    const NAMES: [&str; 2] = ["sslmode", "sslrootcert"];
    let mut found = [None, None];
    let is_url = address.starts_with("postgres://") || address.starts_with("postgresql://");
    let mut take = |name: &str, value: String| match NAMES.iter().position(|known| *known == name) {
        Some(at) => {
            found[at] = Some(value);
            true
        }
        None => false,
    };
    let rest = if is_url {
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let kept = query.split('&').filter(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            !pair.is_empty() && !take(name, percent_decode_str(value).decode_utf8_lossy().into_owned())
        });
        let kept = kept.collect::<Vec<_>>().join("&");
        if kept.is_empty() { base.to_owned() } else { format!("{base}?{kept}") }
    } else {
        let mut kept = Vec::new();
        for (text, name, value) in parameters(address)? {
            if !take(&name, value) {
                kept.push(text);
            }
        }
        kept.join(" ")
    };
    Ok((rest, found))
}

/// Splits `name=value name='a value'` into its parameters: the text of each, its name and its value.
fn parameters(address: &str) -> Result<Vec<(String, String, String)>, String> {
    let mut found = Vec::new();
    let mut rest = address.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or_else(|| format!("'{}' has no value", rest.trim_end()))?;
        let after = after.trim_start();
        let (mut value, mut end, mut quoted, mut escaped) = (String::new(), after.len(), false, false);
        for (at, character) in after.char_indices() {
            match character {
                _ if escaped => {
                    value.push(character);
                    escaped = false;
                }
                '\\' => escaped = true,
                '\'' if at == 0 => quoted = true,
                '\'' if quoted => {
                    (end, quoted) = (at + 1, false);
                    break;
                }
                blank if blank.is_whitespace() && !quoted => {
                    end = at;
                    break;
                }
                other => value.push(other),
            }
        }
        if quoted {
            return Err(format!("the value of {} has no closing quotation mark", name.trim()));
        }
        found.push((format!("{}={}", name.trim(), &after[..end]), name.trim().to_owned(), value));
        rest = after[end..].trim_start();
    }
    Ok(found)
}

/// Returns true if all hosts of an address are this one.
fn is_local(config: &Config) -> bool {
    let names = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
        Host::Unix(_) => true,
    });
    // An address, if there is one, is connected to in place of the name.
    let addresses = config.get_hostaddrs();
    if addresses.is_empty() { names } else { addresses.iter().all(IpAddr::is_loopback) }
}

/// Finds the password of an address that has none, as libpq does: in `PGPASSWORD`, else in the file `PGPASSFILE` or
/// `~/.pgpass`.
fn password(config: &Config) -> Result<Option<String>, String> {
    if let Some(password) = variable("PGPASSWORD") {
        return Ok(Some(password));
    }
    let Some((path, is_named)) = password_file() else { return Ok(None) };
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if is_named => return Err(format!("PGPASSFILE {}: {error}", path.display())),
        Err(_) => return Ok(None),
    };
    let mode = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.mode();
    if mode & 0o077 != 0 {
        return Err(format!("others may read {} (mode {:o}); run chmod 600 on it", path.display(), mode & 0o777));
    }
    Ok(find_password(&text, config))
}

/// Returns the file with passwords, and true if the environment names it.
fn password_file() -> Option<(PathBuf, bool)> {
    let named = variable("PGPASSFILE").map(|path| (PathBuf::from(path), true));
    named.or_else(|| variable("HOME").map(|home| (Path::new(&home).join(".pgpass"), false)))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Finds the first line `host:port:database:user:password` that fits; `*` fits everything.
fn find_password(text: &str, config: &Config) -> Option<String> {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        _ => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432).to_string();
    let user = config.get_user().unwrap_or_default();
    let wanted = [host.as_str(), &port, config.get_dbname().unwrap_or(user), user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [host, port, database, user, password] = fields.as_slice() else { return None };
        let fits = [host, port, database, user].iter().zip(wanted).all(|(field, value)| *field == "*" || *field == value);
        fits.then(|| password.clone())
    })
}

/// Splits a line at its colons; a backslash keeps the next character.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut last) = (Vec::new(), String::new());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 4 => fields.push(std::mem::take(&mut last)),
            '\\' => last.extend(characters.next()),
            other => last.push(other),
        }
    }
    fields.push(last);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(address: &str) -> String {
        DatabaseAddress::parse(address).err().unwrap_or_default()
    }

    #[test]
    fn another_host_needs_tls_or_an_explicit_word_against_it() {
        for mode in ["", "sslmode=prefer", "sslmode=allow"] {
            for address in [format!("postgres://u@db.example.org/book?{mode}"), format!("host=10.0.0.9 user=u {mode}")] {
                let why = refused(&address);
                assert!(why.contains("clear text") && why.contains("sslmode=verify-full"), "{address}: {why}");
            }
        }
        assert!(refused("host=localhost hostaddr=10.0.0.9 user=u").contains("clear text"));
        assert!(refused("host=db,localhost user=u sslmode=always").contains("invalid sslmode 'always'"));
        for (address, mode) in [
            ("postgres://u@db.example.org/book?sslmode=disable", SslMode::Disable),
            ("host=db user=u sslmode=disable", SslMode::Disable),
            ("host=/run/postgresql user=u", SslMode::Disable),
            ("postgres://u@localhost/book", SslMode::Disable),
            ("postgres://u@127.0.0.1:5433/book?sslmode=prefer", SslMode::Disable),
            ("host=db.example.org user=u sslmode=require", SslMode::Require),
            ("postgres://u@db/book?application_name=x&sslmode=verify-full", SslMode::Require),
            ("host=db user=u sslmode = 'verify-ca'", SslMode::Require),
        ] {
            let parsed = DatabaseAddress::parse(address).unwrap_or_else(|why| panic!("{address}: {why}"));
            assert_eq!(parsed.config.get_ssl_mode(), mode, "{address}");
        }
        assert!(refused("host=db user=u sslmode=verify-full sslrootcert=/no/such.crt").contains("/no/such.crt"));
    }

    #[test]
    fn parameters_of_libpq_are_split_with_their_quotation_marks() {
        let (rest, found) =
            split(r"host=db password='a b\' sslmode=x' sslmode=verify-ca sslrootcert='/a dir/ca.crt' dbname=book").unwrap();
        assert_eq!(rest, r"host=db password='a b\' sslmode=x' dbname=book");
        assert_eq!(found, [Some("verify-ca".to_owned()), Some("/a dir/ca.crt".to_owned())]);
        let (rest, found) = split("postgresql://db/book?sslrootcert=%2Fa%20dir%2Fca.crt&connect_timeout=3").unwrap();
        assert_eq!((rest.as_str(), &found[1]), ("postgresql://db/book?connect_timeout=3", &Some("/a dir/ca.crt".to_owned())));
        assert!(parameters("host=db password='open").is_err() && parameters("host").is_err());
    }

    #[test]
    fn a_password_in_an_address_is_seen_in_each_form() {
        for address in [
            "postgres://u:p@h/d",
            "postgres://u:p@h/d?sslmode=verify-full",
            "host=h user=u password=p sslmode=verify-ca",
            "host=h password='a b'",
        ] {
            assert!(has_password(address), "{address}");
        }
        for address in ["postgres://u@h/d", "postgres://u@h/d?sslmode=verify-full", "host=h user=u", "/srv/tampu", ""] {
            assert!(!has_password(address), "{address}");
        }
    }

    #[test]
    fn the_first_fitting_line_of_a_password_file_counts() {
        let config: Config = "host=db.example.org user=tampu dbname=book".parse().unwrap();
        let text = "# a comment\nother:*:*:*:wrong\ndb.example.org:5433:*:*:port\n*:5432:book:tampu:a\\:b\\\\c\n*:*:*:*:late\n";
        assert_eq!(find_password(text, &config).as_deref(), Some("a:b\\c"));
        assert_eq!(find_password("db:*:*:*:p\n", &config), None);
    }
}
