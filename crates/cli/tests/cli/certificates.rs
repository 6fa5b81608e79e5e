//! The command `tampu cert`, and what the hub and the doctor say about certificates.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    time::{Duration, SystemTime},
};

use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};

use crate::site::Site;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn one_command_makes_the_first_host_and_one_each_further_host() {
    let site = Site::new();
    let made = site.tampu(&["--domain", "lab", "cert", "init", "--name", "archive.example.org", "--json"]).ok().json();
    let directory = site.path("data/lab/cert");
    let authority_dir = site.path("data/lab/authority");
    assert_eq!((mode(&directory), mode(&authority_dir)), (0o700, 0o700));
    for (file, bits) in [("authority.crt", 0o644), ("host.key", 0o600), ("host.crt", 0o644)] {
        assert_eq!(mode(&directory.join(file)), bits, "{file}");
    }
    assert_eq!(mode(&authority_dir.join("authority.key")), 0o600);
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 3, "what services read");
    let [authority, host] = &made[..] else { panic!("{made:?}") };
    assert_eq!((&authority["kind"], &authority["name"]), (&"authority".into(), &"Tampu domain lab".into()));
    assert!(host["names"].as_array().unwrap().contains(&"archive.example.org".into()), "{host}");
    let days = |of: &serde_json::Value| of["days_left"].as_i64().unwrap();
    assert!((3649..=3650).contains(&days(authority)) && (364..=365).contains(&days(host)), "{made:?}");

    let again = site.tampu(&["--domain", "lab", "cert", "init"]);
    assert!(again.code == 1 && again.err.contains("is not replaced"), "{again:?}");
    let mast = site.tampu(&["--domain", "lab", "cert", "host", "mast", "--name", "10.0.0.7"]).ok();
    assert!(mast.err.contains("copy the files of") && mast.out.contains("10.0.0.7"), "{mast:?}");
    let bundle = authority_dir.join("hosts/mast");
    let mut files: Vec<String> =
        fs::read_dir(&bundle).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!((files, mode(&bundle)), (["authority.crt", "host.crt", "host.key"].map(str::to_owned).to_vec(), 0o700));

    // A host gets further names for the key that it has, and a new key where one is asked for.
    let key = fs::read(bundle.join("host.key")).unwrap();
    let more = site.tampu(&["--domain", "lab", "cert", "host", "mast", "--name", "mast.example.org"]).ok();
    assert!(!more.err.contains("leaves out"), "{more:?}");
    let renewed = site.tampu(&["--domain", "lab", "cert", "renew", "--json"]).ok().json();
    assert_eq!(renewed.len(), 2);
    let has = |line: &serde_json::Value, name: &str| line["names"].as_array().unwrap().contains(&name.into());
    assert!(has(&renewed[1], "mast.example.org") && has(&renewed[1], "10.0.0.7"), "{renewed:?}");
    let anew =
        site.tampu(&["--domain", "lab", "cert", "host", "mast", "--name", "mast.example.org", "--new-names", "--json"]).ok();
    let names = &anew.json()[0];
    assert!(has(names, "mast.example.org") && has(names, "localhost") && !has(names, "10.0.0.7"), "{names}");
    assert!(anew.err.contains("leaves out 10.0.0.7\n"), "{anew:?}");
    fs::write(bundle.join("host.crt"), "no certificate").unwrap();
    let unreadable = site.tampu(&["--domain", "lab", "cert", "host", "mast"]);
    assert!(unreadable.code == 1 && unreadable.err.contains("--new-names"), "{unreadable:?}");
    site.tampu(&["--domain", "lab", "cert", "host", "mast", "--new-names"]).ok();
    assert_eq!(fs::read(bundle.join("host.key")).unwrap(), key);
    site.tampu(&["--domain", "lab", "cert", "renew", "mast", "--new-key", "--authority"]).ok();
    assert_ne!(fs::read(bundle.join("host.key")).unwrap(), key);
    assert_eq!(fs::read(bundle.join("authority.crt")).unwrap(), fs::read(directory.join("authority.crt")).unwrap());
    assert_eq!(site.tampu(&["--domain", "lab", "cert", "show", "--json"]).ok().json().len(), 3);

    for (arguments, code, named) in [
        (&["host", "../mast"][..], 2, "is not a host's name"),
        (&["renew", "elsewhere"], 2, "'tampu cert host elsewhere'"),
        (&["show", "--certificates", "nowhere"], 1, "'tampu cert init'"),
        (&["host", "mast", "--certificates", "data/lab/authority/hosts/mast"], 1, "there is no authority"),
    ] {
        let said = site.tampu(&[&["--domain", "lab", "cert"], arguments].concat());
        assert!(said.code == code && said.err.contains(named), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_key_of_the_authority_among_the_hosts_certificates_is_moved() {
    let site = Site::new();
    let cert = |arguments: &[&str]| site.tampu(&[&["--domain", "lab", "cert"], arguments].concat());
    cert(&["init"]).ok();
    cert(&["host", "mast"]).ok();
    let (own, authority) = (site.path("data/lab/cert"), site.path("data/lab/authority"));
    let key = fs::read(authority.join("authority.key")).unwrap();
    let put_back = || {
        fs::rename(authority.join("authority.key"), own.join("authority.key")).unwrap();
        fs::rename(authority.join("hosts"), own.join("hosts")).unwrap();
        fs::remove_dir(&authority).unwrap();
    };
    let is_moved = || {
        assert_eq!(fs::read(authority.join("authority.key")).unwrap(), key);
        assert!(authority.join("hosts/mast/host.key").is_file() && mode(&authority) == 0o700);
        assert_eq!(fs::read_dir(&own).unwrap().count(), 3, "what services read");
    };
    put_back();
    let shown = cert(&["show", "--json"]).ok();
    assert!(shown.err.contains("moved ") && shown.err.contains("data/lab/authority/authority.key"), "{shown:?}");
    assert_eq!(shown.json().len(), 3);
    is_moved();
    put_back();
    drop(site.hub(&["--domain", "lab"]));
    is_moved();
    // Nobody decides which of two keys is the right one.
    fs::copy(authority.join("authority.key"), own.join("authority.key")).unwrap();
    let said = cert(&["show"]);
    assert!(said.code == 1 && said.err.contains("remove one of them"), "{said:?}");
    // A named directory has the authority beside it.
    let named = site.path("named");
    cert(&["init", "--certificates", &named.to_string_lossy()]).ok();
    assert!(!named.join("authority.key").exists() && site.path("named-authority/authority.key").is_file());
}

#[test]
fn a_certificate_that_expires_soon_is_reported_by_hub_doctor_and_metrics() {
    let site = Site::new();
    let directory = CertificateDir::new(site.path("data/lab/cert"));
    let now = SystemTime::now();
    let authority = Authority::create(&directory, "lab", now).unwrap();
    let names = HostNames::new("archive", &[]).unwrap();
    authority.issue_for(&directory, &names, KeyPairChoice::New, now, Duration::from_secs(10 * 86_400 + 60)).unwrap();
    let doctor = || {
        let lines = site.tampu(&["--domain", "lab", "doctor", "--json"]).json();
        let host = lines.into_iter().find(|line| line["check"] == "cert" && line["found"].as_str().unwrap().contains("archive"));
        host.unwrap()
    };
    let found = doctor();
    assert_eq!(found["state"], "warn", "{found}");
    assert!(found["found"].as_str().unwrap().contains("10 days left"), "{found}");

    let key = site.file("domain.key", "correct horse battery");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let config = site.file("tampu.toml", "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n");
    let lan = ["--domain", "lab", "--lan", "127.0.0.1:0", "--key-file", &key, "--config", &config];
    let hub = site.hub(&lan);
    let warned = site.find(1, &["--domain", "lab", "--contains", "expires in 10 days"]);
    assert_eq!(warned[0]["level"], "Warning", "{warned:?}");
    let at = site.find(1, &["--domain", "lab", "--contains", "metrics are at"]);
    let url = at[0]["message"].as_str().unwrap().rsplit(' ').next().unwrap().to_owned();
    let page = ureq::get(&url).call().unwrap().body_mut().read_to_string().unwrap();
    let line = page.lines().find(|line| line.starts_with("tampu_certificate_seconds_left{used_by=\"bus\""));
    let left: i64 = line.unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    assert!((800_000..=864_060).contains(&left), "{left}");
    drop(hub);

    authority.issue(&directory, &names, KeyPairChoice::Keep, now - Duration::from_secs(400 * 86_400)).unwrap();
    let found = doctor();
    assert_eq!(found["state"], "fail", "{found}");
    assert!(found["way_out"].as_str().unwrap().contains("'tampu cert renew'"), "{found}");
}
