//! A few real kills; `examples/crash.rs` does many.

#[path = "support/crash.rs"]
mod crash;

use std::process::{Command, Stdio};

#[test]
fn killed_processes_lose_nothing_and_double_nothing() {
    crash::be_the_victim();
    let base = tempfile::tempdir_in(crash::memory()).unwrap();
    let victim = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed_processes_lose_nothing_and_double_nothing", "--nocapture"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let totals = crash::kill(6, 1, base.path(), victim);
    assert!(totals.lost == 0 && totals.doubled == 0, "{totals:?}");
    assert!(totals.recovered >= totals.produced && totals.unread > 0, "{totals:?}");
}
