//! The login methods of an elogd, as tables of the hub's configuration: `Authentication`, `LDAP server`, `Kerberos Realm`.
//!
//! The tables are a proposal. Certificates and passwords of service accounts are not in elogd's configuration, so the
//! operator writes the tables into the hub's configuration.

use std::fmt::Write;

use crate::{config::ElogConfig, option_values::quoted};

/// Returns the tables for the login methods of a configuration; `None` if elogd's own password file is the only one.
pub fn tables(config: &ElogConfig) -> Option<String> {
    let get = |name: &str| config.sections.iter().find_map(|section| section.get(name)).map(|value| value.trim().to_owned());
    let methods = get("Authentication")?;
    let mut out = String::new();
    for method in methods.split([',', ' ']).map(str::trim).filter(|method| !method.is_empty()) {
        // Writing into a string cannot fail.
        let _ = match method.to_lowercase().as_str() {
            "ldap" => ldap(&mut out, &get),
            "webserver" => write!(
                out,
                "[[book.login]]\nname = \"webserver\"\nregister = true\n[book.login.proxy]\nheader = \"X-Forwarded-User\"\n\
                 # On a loopback address the proxy also sends a secret; name the proxy in 'proxies' of [book].\n\
                 # secret_file = \"/etc/tampu/proxy.secret\"\n"
            ),
            "kerberos" => kerberos(&mut out, &get("Kerberos Realm").unwrap_or_default()),
            "pam" => pam(&mut out),
            // Users of the file are taken over by 'tampu book users import-elog'.
            _ => Ok(()),
        };
    }
    (!out.is_empty()).then_some(out)
}

/// Tickets, and passwords of the realm, which elogd asked for.
fn kerberos(out: &mut String, realm: &str) -> std::fmt::Result {
    let realm = if realm.is_empty() { "EXAMPLE.ORG" } else { realm };
    write!(
        out,
        "[[book.login]]\nname = \"kerberos\"\nregister = true\n[book.login.kerberos]\nrealm = {}\n\
         # The key of HTTP/HOST, by kadmin: ktadd -k FILE HTTP/HOST\nkeytab = \"/etc/tampu/http.keytab\"\n\
         # Passwords of the realm: /etc/pam.d/tampu has the module pam_krb5 or pam_sss.\n",
        quoted(realm)
    )?;
    pam(out)
}

fn pam(out: &mut String) -> std::fmt::Result {
    // Two methods of elogd may both be PAM here.
    match out.contains("[book.login.pam]") {
        true => Ok(()),
        false => write!(
            out,
            "[[book.login]]\nname = \"pam\"\nregister = true\n[book.login.pam]\n\
             # The rules are in /etc/pam.d/tampu. The program is built with the feature 'pam'.\nservice = \"tampu\"\n"
        ),
    }
}

fn ldap(out: &mut String, get: &dyn Fn(&str) -> Option<String>) -> std::fmt::Result {
    let server = get("LDAP server").unwrap_or_else(|| "ldap://ldap.example.org".to_owned());
    let server = if server.contains("://") { server } else { format!("ldap://{server}") };
    let attribute = get("LDAP login attribute").filter(|name| !name.is_empty()).unwrap_or_else(|| "uid".to_owned());
    let base = get("LDAP userbase").unwrap_or_default();
    let registers = get("LDAP register").is_some_and(|value| value.trim() != "0");
    let url = server.split(',').next().unwrap_or_default().trim().trim_end_matches('/');
    writeln!(out, "[[book.login]]\nname = \"ldap\"\nregister = {registers}\n[book.login.ldap]\nurl = {}", quoted(url))?;
    if url.starts_with("ldap://") {
        writeln!(out, "# elogd sent passwords in clear text.\nstart_tls = true")?;
    }
    writeln!(out, "bind_as = {}", quoted(&format!("{attribute}={{login}},{base}")))?;
    writeln!(out, "base = {}", quoted(&base))?;
    writeln!(out, "filter = {}\nlogin = {}", quoted(&format!("({attribute}={{login}})")), quoted(&attribute))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn methods_of_elogd_become_tables() {
        let tables = |text: &str| tables(&config::parse(format!("[global]\n{text}\n[Shift]\n").as_bytes()));
        assert_eq!((tables(""), tables("Authentication = File")), (None, None));
        let ldap = tables(
            "Authentication = File, LDAP\nLDAP server = ldap://ldap.lab.org:389/\nLDAP userbase = ou=people,dc=\"lab\"\n\
             LDAP login attribute = sAMAccountName\nLDAP register = 1",
        )
        .unwrap();
        for line in [
            "register = true",
            "url = \"ldap://ldap.lab.org:389\"",
            "start_tls = true",
            "bind_as = \"sAMAccountName={login},ou=people,dc=\\\"lab\\\"\"",
            "filter = \"(sAMAccountName={login})\"",
        ] {
            assert!(ldap.lines().any(|written| written == line), "{line}: {ldap}");
        }
        assert!(tables("Authentication = Webserver").unwrap().contains("[book.login.proxy]"));
        let kerberos = tables("Authentication = Kerberos, PAM\nKerberos Realm = LAB.ORG").unwrap();
        for (line, times) in [("[book.login.kerberos]", 1), ("realm = \"LAB.ORG\"", 1), ("[book.login.pam]", 1)] {
            assert_eq!(kerberos.lines().filter(|written| *written == line).count(), times, "{line}: {kerberos}");
        }
        assert!(tables("Authentication = PAM").unwrap().contains("service = \"tampu\""));
    }
}
