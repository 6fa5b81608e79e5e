//! Files of Tampu are for its own user: no file or directory of a hub, a backup or an export is open to others.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::{fs::Mode, process::Signal};

use crate::site::{Site, acs_file};

/// Gives this process, and so its children, the usual umask, whatever starts the tests.
fn usual_umask() {
    rustix::process::umask(Mode::from_raw_mode(0o022));
}

#[track_caller]
fn run(site: &Site, arguments: &[&str]) {
    site.tampu(arguments).ok();
}

/// Everything below a directory, and the directory, that has one of these bits.
fn with_bits(path: &Path, bits: u32, found: &mut Vec<(PathBuf, u32)>) -> usize {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    let mode = metadata.mode() & 0o7777;
    if !metadata.is_symlink() && mode & bits != 0 {
        found.push((path.to_owned(), mode));
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    1 + entries.map(|entry| with_bits(&entry.path(), bits, found)).sum::<usize>()
}

#[test]
fn no_file_of_a_hub_a_backup_or_an_export_is_open_to_others() {
    usual_umask();
    let site = Site::new();
    let records = site.file("in.xml", acs_file(&["one", "two", "three"]));
    let plot = site.file("plot.png", "not really a picture");
    let config = "[target.lines]\nfile = \"routes/lines.log\"\n[[route]]\nto = [\"lines\"]\n";
    let config = site.file("tampu.toml", config.replace("routes/", &site.path("routes/").to_string_lossy()));
    let hub = site.hub(&["--config", &config]);
    run(&site, &["log", "import", &records]);
    run(&site, &["log", "send", "hello"]);
    run(&site, &["book", "make", "Shift", "-a", "Author"]);
    run(&site, &["book", "post", "Shift", "-a", "Author=Zoe", "-t", "secret", "--attachment", &plot]);
    run(&site, &["book", "users", "add", "robot", "--no-password"]);
    run(&site, &["log", "archive", "compact"]);
    run(&site, &["log", "archive", "backup", "-o", "made/logs"]);
    run(&site, &["event", "archive", "backup", "-o", "made/events"]);
    run(&site, &["log", "export", "-o", "made/records.xml"]);
    run(&site, &["book", "show", "Shift/1", "--output", "made/files"]);
    hub.end(Signal::TERM);
    run(&site, &["book", "backup", "-o", "made/book"]);
    run(&site, &["book", "export", "--format", "csv", "-o", "made/shift.csv"]);
    run(&site, &["book", "export-elog", "-o", "made/elog"]);
    let mut open = Vec::new();
    let seen: usize = ["data", "run", "made", "routes"].iter().map(|name| with_bits(&site.path(name), 0o077, &mut open)).sum();
    assert!(seen > 40, "only {seen} files were looked at");
    assert_eq!(open, []);
}

#[test]
fn an_open_data_directory_is_closed_with_a_warning() {
    usual_umask();
    let site = Site::new();
    let domain = site.path("data/local");
    fs::create_dir_all(&domain).unwrap();
    fs::set_permissions(&domain, fs::Permissions::from_mode(0o755)).unwrap();
    let (_, said) = site.hub(&[]).end(Signal::TERM);
    assert!(said.contains("was open to other users (mode 755) and is closed"), "{said}");
    assert_eq!(fs::metadata(&domain).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_group_reads_where_the_configuration_names_one() {
    usual_umask();
    let site = Site::new();
    let group = rustix::process::getegid().as_raw();
    let config = site.file("tampu.toml", format!("data_group = \"{group}\"\n"));
    let hub = site.hub(&["--config", &config]);
    run(&site, &["log", "send", "hello"]);
    run(&site, &["log", "archive", "compact"]);
    hub.end(Signal::TERM);
    // A command on the directory keeps to what the hub has made of it.
    run(&site, &["book", "make", "Shift"]);
    let mut open = Vec::new();
    with_bits(&site.path("data"), 0o027, &mut open);
    assert_eq!(open, [], "nobody else reads, and nobody else writes");
    let mut readable = Vec::new();
    let seen = with_bits(&site.path("data"), 0o040, &mut readable);
    assert_eq!(readable.len(), seen, "the group reads everything");
}
