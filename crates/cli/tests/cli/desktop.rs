//! The browser of a desktop, which a demo opens: a stand-in for `xdg-open` keeps what it was given.

use std::fs;

use crate::{site::Site, terminal::Terminal};

/// A stand-in that keeps the mode and the content of the page, and where it is.
const OPENER: &str = "#!/bin/sh\n{ stat -c %a \"$1\"; echo \"$1\"; cat \"$1\"; } > \"$HOME/opened.new\"\nmv \"$HOME/opened.new\" \"$HOME/opened\"\n";

/// A demo on a terminal with this environment besides.
fn demo(site: &Site, more: &[&str], environment: &[(&str, &str)]) -> Terminal {
    site.executable("bin/xdg-open", OPENER);
    let path = format!("{}:{}", site.path("bin").display(), std::env::var("PATH").unwrap());
    let arguments = [&["up", "--demo", "--in-process", "--no-tail"], more].concat();
    Terminal::with(site, (30, 400), &arguments, &[&[("PATH", &*path)], environment].concat())
}

#[test]
fn a_demo_opens_the_console_where_there_is_a_desktop_by_a_page_for_its_user_alone() {
    let site = Site::new();
    let mut terminal = demo(&site, &[], &[("WAYLAND_DISPLAY", "wayland-7")]);
    let screen = terminal.until_shows("the console is at");
    terminal.until("the page is opened", |_| site.path("opened").exists());
    let opened = fs::read_to_string(site.path("opened")).unwrap();
    let (mode, rest) = opened.split_once('\n').unwrap();
    let (page, content) = rest.split_once('\n').unwrap();
    assert_eq!(mode, "600");
    let owner = screen.lines().find_map(|line| line.split_once("makes a browser the owner, once: ")).unwrap().1.trim();
    assert!(content.contains(&format!("<a href=\"{}\">", owner.replace('&', "&amp;"))), "{content} {owner}");
    assert!(!page.contains("http"), "all users see the arguments of a command: {page}");
    terminal.press("\x03");
    assert_eq!(terminal.end(), Some(0));
    assert!(!fs::exists(page).unwrap());
}

#[test]
fn a_demo_without_a_desktop_or_with_no_open_opens_nothing() {
    for (more, environment) in [(&["--no-open"][..], &[("DISPLAY", ":7")][..]), (&[], &[("DISPLAY", "")])] {
        let site = Site::new();
        let mut terminal = demo(&site, more, environment);
        terminal.until_shows("the console is at");
        terminal.press("\x03");
        assert_eq!(terminal.end(), Some(0));
        assert!(!site.path("opened").exists() && !site.path("data").join("console.html").exists());
    }
}
