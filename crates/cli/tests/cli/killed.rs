//! A process that dies while it logs, and the hub that finds what it had said.

use crate::site::Site;

#[test]
fn what_the_rings_of_a_dead_process_hold_is_found_by_the_hub() {
    let site = Site::new();
    let _hub = site.hub(&["--domain", "dead"]);
    let mut demo = site.command(&["--domain", "dead", "demo", "--seed", "7", "--rate", "20"]).spawn().unwrap();
    site.find(20, &["--domain", "dead", "--process", "CONTROL/*"]);
    demo.kill().unwrap();
    demo.wait().unwrap();
    // Three processes in one: the observatory's containers.
    let told = site.find(3, &["--domain", "dead", "--contains", "were still in its log rings"]);
    assert!(told.iter().all(|record| record["level"] == "Warning"), "{told:?}");
    let lives = || std::fs::read_dir(site.path("run/dead/rings")).map_or(0, |lives| lives.count());
    let begun = std::time::Instant::now();
    // The hub's own is what stays.
    while lives() > 1 {
        assert!(begun.elapsed() < crate::site::PATIENCE, "{} lives are left", lives());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(site.tampu(&["--domain", "dead", "log", "recover"]).ok().out, "", "nothing is left to do by hand");
    let said = site.tampu(&["--domain", "dead", "log", "recover", "/nowhere/at/all"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("/nowhere/at/all"), "{said:?}");
}
