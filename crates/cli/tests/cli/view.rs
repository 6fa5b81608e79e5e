//! `tampu log view` on a real terminal.

use rustix::process::Signal;

use crate::{
    site::{Site, acs_file},
    terminal::Terminal,
};

#[test]
fn the_viewer_shows_the_log_live_filters_searches_saves_and_finds_its_hub_again() {
    let site = Site::new();
    let hub = site.hub(&[]);
    site.tampu(&["log", "send", "no lock on DV01", "--level", "Error", "-s", "CONTROL/DV01", "-p", "pipe", "--stack", "chain-1"])
        .ok();
    site.tampu(&["log", "send", "all is well", "-s", "CONTROL/DV02", "-p", "pipe"]).ok();
    site.find(2, &["-p", "pipe"]);

    let mut terminal = Terminal::run(&site, (24, 120), &["log", "view", "--field", "process=pipe"]);
    terminal.until("both rows, from the archive", |text| text.contains("no lock on DV01") && text.contains("all is well"));
    assert!(terminal.is_coloured("Error"));
    site.tampu(&["log", "send", "it comes live", "-s", "CONTROL/DV02", "-p", "pipe"]).ok();
    terminal.until_shows("it comes live");
    // Only the source under the cursor.
    terminal.press("f");
    terminal.until("one source", |text| text.contains("+SourceObject=CONTROL/DV02") && !text.contains("no lock"));
    terminal.press("U/LOCK\r");
    terminal.until_shows("search 'LOCK'");
    terminal.press("\r");
    terminal.until_shows("StackId chain-1");
    terminal.press("\x1b");
    terminal.until("no details", |text| !text.contains("StackId chain-1"));
    terminal.press("t");
    terminal.until_shows("error chain chain-1: 1 rows");
    terminal.press("q");
    terminal.until_shows("3 of 3 rows");
    terminal.press("wrows.csv\r");
    terminal.until_shows("3 rows written to rows.csv");
    let saved = std::fs::read_to_string(site.path("rows.csv")).unwrap();
    assert!(saved.lines().count() == 4 && saved.contains("it comes live"), "{saved}");
    terminal.press(" ");
    terminal.until_shows("PAUSED, 0 WAITING");
    site.tampu(&["log", "send", "while paused", "-p", "pipe"]).ok();
    terminal.until_shows("PAUSED, 1 WAITING");
    terminal.press(" G");
    terminal.until_shows("while paused");

    let (code, _) = hub.end(Signal::TERM);
    assert_eq!(code, Some(0));
    terminal.until_shows("HUB LOST, TRYING AGAIN");
    let _hub = site.hub(&[]);
    terminal.until_shows("following");
    site.tampu(&["log", "send", "after the hub", "-p", "pipe"]).ok();
    terminal.until_shows("after the hub");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));
}

#[test]
fn the_viewer_reads_files_without_a_hub_and_the_archive_up_to_a_time() {
    let site = Site::new();
    let file = site.file("log.xml", acs_file(&["one", "two", "three"]) + "<Info TimeStamp=\"soon\">bad</Info>");
    let mut terminal = Terminal::run(&site, (24, 120), &["log", "view", &file, "--exclude", "two"]);
    let text = terminal.until_shows("1 could not be read");
    assert!(text.contains("one") && text.contains("three") && !text.contains("two"), "{text}");
    terminal.press("q");
    assert_eq!(terminal.end(), Some(0));

    let _hub = site.hub(&[]);
    site.tampu(&["log", "import", &file]).ok();
    let span = ["log", "view", "--since", "2005-02-01", "--until", "2005-02-01T15:33:02"];
    let mut terminal = Terminal::run(&site, (24, 120), &span);
    let text = terminal.until_shows("2 records found");
    assert!(text.contains("archive 'local'") && text.contains("two") && !text.contains("three"), "{text}");
    terminal.press("\x03");
    assert_eq!(terminal.end(), Some(0));

    // A pipe is not a terminal.
    let said = site.tampu(&["log", "view"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{said:?}");
    assert!(said.err.contains("tampu log tail"), "{said:?}");
    let mut terminal = Terminal::run(&site, (24, 120), &["--domain", "nowhere", "log", "view"]);
    terminal.until_shows("tampu up --domain nowhere");
    assert_eq!(terminal.end(), Some(3));
}
