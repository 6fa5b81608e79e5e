//! A further host joins a domain with one file.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::site::Site;

#[test]
fn a_host_joins_with_one_file_and_its_records_arrive() {
    let (archive, mast) = (Site::new(), Site::new());
    archive.tampu(&["--domain", "lab", "cert", "init", "--name", "127.0.0.1"]).ok();
    let mut hub = archive.hub(&["--domain", "lab", "--lan", "127.0.0.1:0"]);
    hub.wait_for("listening at 127.0.0.1:");
    let line = hub.heard.lines().find(|line| line.contains("listening at")).unwrap();
    let address = format!("127.0.0.1:{}", line.rsplit(':').next().unwrap());
    let file = mast.path("mast.join").to_str().unwrap().to_owned();
    let make = ["--domain", "lab", "cert", "host", "mast", "--join", &file, "--peer", &address];
    let made = archive.tampu(&make).ok();
    assert!(made.err.contains("tampu up --join FILE"), "{made:?}");
    let joined = mast.hub(&["--join", &file]);
    assert!(joined.heard.contains("'lab'"), "{}", joined.heard);
    mast.tampu(&["log", "send", "--domain", "lab", "-p", "mast", "the mast is here"]).ok();
    archive.find(1, &["--domain", "lab", "-p", "mast"]);
    drop(joined);

    // The same start again, and a start without the file.
    drop(mast.hub(&["--join", &file]));
    drop(mast.hub(&["--domain", "lab", "--roles", "node", "--peer", &address]));
    for path in ["data/lab/domain.key", "data/lab/cert/host.key"] {
        assert_eq!(fs::metadata(mast.path(path)).unwrap().permissions().mode() & 0o077, 0, "{path}");
    }

    let said = mast.tampu(&["up", "--domain", "other", "--join", &file]);
    assert!(said.code == 2 && said.err.contains("is for the domain 'lab', and --domain says 'other'"), "{said:?}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let said = mast.tampu(&["up", "--join", &file]);
    assert!(said.code == 2 && said.err.contains("mast.join") && said.err.contains("chmod 600"), "{said:?}");
}

#[test]
fn a_domain_without_a_key_has_no_such_file() {
    let site = Site::new();
    let key = site.file("own.key", "correct horse battery staple");
    site.tampu(&["--domain", "lab", "--key-file", &key, "cert", "init"]).ok();
    assert!(!site.path("data/lab/domain.key").exists());
    let said = site.tampu(&["--domain", "lab", "cert", "host", "mast", "--join", "mast.join"]);
    assert!(said.code == 2 && said.err.contains("has no key") && said.err.contains("--key-file"), "{said:?}");
    assert!(!site.path("mast.join").exists());
    site.tampu(&["--domain", "lab", "--key-file", &key, "cert", "host", "mast", "--join", "mast.join"]).ok();
    let text = fs::read_to_string(site.path("mast.join")).unwrap();
    assert!(text.contains("correct horse battery staple") && text.contains(":7447\""), "{text}");
}
