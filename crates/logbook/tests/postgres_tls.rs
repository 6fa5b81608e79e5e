//! The database's store over TLS: a real server that accepts encrypted connections alone.

#[path = "support/server.rs"]
mod server;
mod support;

use std::time::SystemTime;

use server::Server;
use support::{entry, ids, shift_book};
use tampu_logbook::store::{Entries, postgres::PostgresStore};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};

const PASSWORD: &str = "correct horse battery";

#[test]
#[ignore = "needs PostgreSQL: make test-all"]
fn a_server_is_verified_as_the_address_says() {
    let place = tempfile::tempdir().unwrap();
    let [own, other] = ["own", "other"].map(|name| CertificateDir::new(place.path().join(name)));
    let now = SystemTime::now();
    let authority = Authority::create(&own, "lab", now).unwrap();
    Authority::create(&other, "lab", now).unwrap();
    authority.issue(&own, &HostNames::new("database", &[]).unwrap(), KeyPairChoice::New, now).unwrap();
    let server = Server::start_encrypted(&own.host(), &own.host_key(), PASSWORD);
    let open = |name: &str, more: &str| {
        let address = format!("{} password='{PASSWORD}' {more}", server.address_as(name));
        PostgresStore::open(&address, "lab").map_err(|error| error.to_string())
    };
    let roots = |directory: &CertificateDir| format!("sslrootcert='{}'", directory.authority().display());

    // The password's proof is bound to the certificate; the server asks for that.
    let store = open("database", &format!("sslmode=verify-full {}", roots(&own))).unwrap();
    store.put_book(&shift_book("A")).unwrap();
    let at = store.post(entry("A", "Zoe", "s", "over TLS"), vec![], "zoe").unwrap();
    assert_eq!(ids(&store, "\"over TLS\""), [at.id]);
    for (name, more) in [
        ("elsewhere", format!("sslmode=verify-ca {}", roots(&own))),
        ("elsewhere", format!("sslmode=require {}", roots(&own))),
        ("elsewhere", "sslmode=require".to_owned()),
    ] {
        open(name, &more).unwrap_or_else(|why| panic!("{name} {more}: {why}"));
    }
    for (name, more, named) in [
        ("elsewhere", format!("sslmode=verify-full {}", roots(&own)), "not valid for name"),
        ("database", format!("sslmode=verify-full {}", roots(&other)), "invalid peer certificate"),
        ("database", format!("sslmode=verify-ca {}", roots(&other)), "invalid peer certificate"),
        ("database", format!("sslmode=require {}", roots(&other)), "invalid peer certificate"),
        ("database", "sslmode=verify-full".to_owned(), "invalid peer certificate"),
        // The server would take no password in clear text.
        ("database", "sslmode=disable".to_owned(), "no encryption"),
    ] {
        let why = open(name, &more).err().unwrap_or_default();
        assert!(why.contains(named), "{name} {more}: {why}");
    }
}
