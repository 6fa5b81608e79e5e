//! The pages that users read, held to the program: every command that README.md and `docs/` show is run, or at least accepted.
//!
//! | fence | what the test does |
//! |-|-|
//! | `sh` | runs the lines in bash, all of a page in one go, beside a hub with the demo |
//! | `sh up`, `sh site` | asks whether the program takes the options: the command would run for ever, or needs another host or server |
//! | `sh make` | looks for the target in the Makefile |
//! | `sh cxx`, `sh root` | nothing here: `tests/peers/documents.py` compiles the C and C++ programs, and a unit needs root |
//! | `sh site`, `text` in the page about ELOG | `takeover_page.rs` runs the commands and compares the output |
//! | `java`, `xml`, `properties` | nothing here: `tests/peers/java_log.py` runs the programs of the page about Java |
//! | `ts` | nothing here: `tests/peers/typescript.py` compiles and runs the programs |
//! | `toml` | reads it as the hub's configuration; `[dependencies]` is Cargo's |

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::site::{Hub, Site};

pub struct Block {
    pub line: usize,
    pub fence: String,
    pub text: String,
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn pages() -> Vec<PathBuf> {
    let (mut folders, mut found) = (vec![root().join("docs")], vec![root().join("README.md")]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") && path.file_name().unwrap() != "commands.md" {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub fn blocks(page: &Path) -> Vec<Block> {
    let (mut found, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (number, line) in fs::read_to_string(page).unwrap().lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(fence)) => open = Some(Block { line: number + 1, fence: fence.trim().to_owned(), text: String::new() }),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => (),
        }
    }
    assert!(open.is_none(), "{}: a fence is not closed", page.display());
    found
}

/// The commands of a block, with lines that end in `\` joined.
pub fn commands(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// A shell for this site: the program under its name, the demo's domain, nothing of the user's.
pub fn shell(site: &Site, script: &str) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_tampu")).parent().unwrap();
    let mut command = Command::new("bash");
    command
        .args(["-c", script])
        .env_clear()
        .env("PATH", format!("{}:{}", program.display(), std::env::var("PATH").unwrap()))
        .env("HOME", site.path(""))
        .env("USER", "zoe")
        .env("TAMPU_RUN_DIR", site.path("run"))
        .env("TAMPU_DATA_DIR", site.path("data"))
        .env("TAMPU_DOMAIN", "demo")
        .current_dir(site.path(""))
        .stdin(Stdio::null());
    command
}

/// The address of the logbook that the hub has printed.
fn book_address(hub: &mut Hub) -> String {
    hub.wait_for("/elog/");
    let (_, after) = hub.heard.split_once("http://").expect("the hub names its logbook");
    after.split('/').next().unwrap().to_owned()
}

#[test]
fn commands_of_the_pages_run() {
    let mut failed = Vec::new();
    for page in pages() {
        let blocks: Vec<Block> = blocks(&page).into_iter().filter(|block| block.fence == "sh").collect();
        if blocks.is_empty() {
            continue;
        }
        let site = Site::new();
        let mut hub = site.hub(&["--demo", "--domain", "demo"]);
        let address = book_address(&mut hub);
        site.find(20, &["--domain", "demo"]);
        let mut script = String::from("set -euo pipefail\ntrap 'echo \"failed: line $LINENO: $BASH_COMMAND\" >&2' ERR\n");
        for Block { line, text, .. } in blocks {
            script.push_str(&format!(": line {line}\n{}", text.replace("127.0.0.1:7449", &address)));
        }
        let output = shell(&site, &script).output().unwrap();
        if !output.status.success() {
            failed.push(format!("{}: {}\n--- script\n{script}", page.display(), String::from_utf8_lossy(&output.stderr)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn commands_for_other_hosts_have_options_that_exist() {
    let site = Site::new();
    let mut wrong = Vec::new();
    for page in pages() {
        for Block { line, fence, text } in blocks(&page) {
            if !["sh up", "sh site"].contains(&fence.as_str()) {
                continue;
            }
            for command in commands(&text).into_iter().filter(|command| command.starts_with("tampu ")) {
                let output = shell(&site, &format!("{} --help", command.trim_end_matches('&'))).output().unwrap();
                if !output.status.success() {
                    wrong.push(format!("{}:{line}: {command}\n{}", page.display(), String::from_utf8_lossy(&output.stderr)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_command_of_the_program_stands_in_a_fence_that_is_checked() {
    let known = [
        "sh",
        "sh up",
        "sh site",
        "sh make",
        "sh cxx",
        "sh root",
        "toml",
        "rust,no_run",
        "rust,ignore",
        "cpp",
        "c",
        "java",
        "xml",
        "properties",
        "ts",
        "python",
        "text",
    ];
    let mut wrong = Vec::new();
    for page in pages() {
        for Block { line, fence, text } in blocks(&page) {
            let at = format!("{}:{line}", page.display());
            if !known.contains(&fence.as_str()) {
                wrong.push(format!("{at}: the fence '{fence}' is not one of {known:?}"));
            }
            if !fence.starts_with("sh")
                && text.lines().any(|line| line.trim_start().trim_start_matches("$ ").starts_with("tampu "))
            {
                wrong.push(format!("{at}: a command in a fence that nothing runs"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn targets_of_make_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    for page in pages() {
        for Block { line, text, .. } in blocks(&page).into_iter().filter(|block| block.fence == "sh make") {
            for command in commands(&text) {
                let target = command.split_whitespace().nth(1).expect("make and a target");
                assert!(makefile.contains(&format!("\n{target}:")), "{}:{line}: make has no target '{target}'", page.display());
            }
        }
    }
}

#[test]
fn configurations_of_the_pages_are_read() {
    for page in pages() {
        for Block { line, text, .. } in blocks(&page).into_iter().filter(|block| block.fence == "toml") {
            if !text.contains("[dependencies]") {
                let wrong = if text.contains("[[deny]]") {
                    tampu_hub::rules::file::PolicyFile::parse(&text, &page).err().map(|error| error.to_string())
                } else {
                    tampu_hub::config::Config::parse(&text, &page).err().map(|error| error.to_string())
                };
                assert_eq!(wrong, None, "{}:{line}", page.display());
            }
        }
    }
}

/// The help of a command and of all below it, as a page.
fn reference(site: &Site, words: &[&str], page: &mut String) {
    let mut arguments = words.to_vec();
    arguments.push("--help");
    let help = site.command(&arguments).env("COLUMNS", "100").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let name = ["tampu"].iter().chain(words).copied().collect::<Vec<_>>().join(" ");
    let text: Vec<&str> = help.lines().map(str::trim_end).collect();
    page.push_str(&format!("\n{} {name}\n```text\n{}\n```\n", "#".repeat(words.len().min(2) + 2), text.join("\n").trim_end()));
    let (_, commands) = help.split_once("\nCommands:\n").unwrap_or_default();
    let below: Vec<String> = commands
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|word| word != "help")
        .collect();
    for word in below {
        reference(site, &[words, &[word.as_str()]].concat(), page);
    }
}

#[test]
fn the_reference_of_commands_is_what_the_program_says() {
    let site = Site::new();
    let mut page =
        String::from("# Commands\nThe help of every command, as `--help` prints it. `tampu man` writes the same as man pages.\n");
    reference(&site, &[], &mut page);
    let path = root().join("docs/reference/commands.md");
    if std::env::var_os("TAMPU_WRITE_SPEC").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let stands = fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(stands.lines()).position(|(wanted, stands)| wanted != stands);
    assert!(
        page == stands,
        "docs/reference/commands.md is out of date from line {}; write it anew with `make reference`",
        differs.map_or(0, |line| line + 1)
    );
}
