//! Holds the workspace to what is written about it: the arrows between crates in ARCHITECTURE.md, and the licences that
//! deny.toml allows. It lives in this crate because this one builds in seconds and depends on none of the others.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn metadata(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The arrows of ARCHITECTURE.md: the block fenced as `arrows`, a line a crate, `name -> name name ...`.
fn drawn(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let (_, after) = text.split_once("```arrows\n").expect("ARCHITECTURE.md has a block fenced as arrows");
    let (block, _) = after.split_once("```").expect("the block of arrows ends");
    let arrow = |line: &str| {
        let (from, to) = line.split_once("->").unwrap_or_else(|| panic!("no arrow in '{line}'"));
        (from.trim().to_owned(), to.split_whitespace().filter(|name| *name != "nothing").map(str::to_owned).collect())
    };
    block.lines().map(arrow).collect()
}

/// One crate as built: what it uses, and what its tests add to that.
struct Built {
    uses: BTreeSet<String>,
    tests: BTreeSet<String>,
    /// True for all but the benches: they may use everything, and nothing may use them.
    product: bool,
}

fn is_product(package: &Value) -> bool {
    package["name"] != "tampu-benches"
}

fn built(metadata: &Value) -> BTreeMap<String, Built> {
    // The engine's TLS link keeps the engine's name for it.
    let short = |name: &Value| match name.as_str().unwrap() {
        "zenoh-link-tls" => Some("zenoh-tls".to_owned()),
        name => name.strip_prefix("tampu-").map(str::to_owned),
    };
    let crates = metadata["packages"].as_array().unwrap().iter().map(|package| {
        let name = short(&package["name"]).expect("every crate of the workspace is called tampu-...");
        let of = |wanted: fn(&Value) -> bool| -> BTreeSet<String> {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let inside = dependencies.filter(|dependency| dependency.get("path").is_some() && wanted(&dependency["kind"]));
            inside.filter_map(|dependency| short(&dependency["name"])).collect()
        };
        let (uses, tests) = (of(|kind| kind != "dev"), of(|kind| kind == "dev"));
        (name, Built { uses, tests, product: is_product(package) })
    });
    crates.collect()
}

#[test]
fn the_crates_use_each_other_as_architecture_md_draws_it() {
    let drawn = drawn(&read("ARCHITECTURE.md"));
    let (products, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        built(&metadata(&["--no-deps"])).into_iter().partition(|(_, built)| built.product);
    let uses: BTreeMap<_, _> = products.iter().map(|(name, built)| (name.clone(), built.uses.clone())).collect();
    assert_eq!(uses, drawn, "left: Cargo.toml files; right: ARCHITECTURE.md");
    for (name, Built { tests, .. }) in products {
        assert!(tests.is_subset(&drawn[&name]), "the tests of {name} use {tests:?}, ARCHITECTURE.md allows {:?}", drawn[&name]);
    }
    assert!(drawn.values().flatten().all(|used| !others.contains_key(used)), "nothing uses the benches");
    assert!(points_one_way(&drawn), "ARCHITECTURE.md draws a circle: {drawn:?}");
}

fn points_one_way(arrows: &BTreeMap<String, BTreeSet<String>>) -> bool {
    let mut left = arrows.clone();
    while !left.is_empty() {
        let Some(leaf) = left.iter().find(|(_, uses)| uses.iter().all(|used| !left.contains_key(used))) else { return false };
        let leaf = leaf.0.clone();
        left.remove(&leaf);
    }
    true
}

#[test]
fn each_dependency_has_a_reason_in_its_page() {
    let page = read("docs/dependencies.md");
    let (_, table) = page.split_once("| crate | licence |").expect("the page has a table of dependencies");
    let names = table.lines().skip(2).filter_map(|row| row.split('|').nth(1));
    let named: BTreeSet<&str> = names.flat_map(|names| names.split([',', ' '])).filter(|name| !name.is_empty()).collect();
    let metadata = metadata(&["--no-deps"]);
    let packages = metadata["packages"].as_array().unwrap().iter().filter(|package| is_product(package));
    let used: BTreeSet<&str> = packages
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .filter(|dependency| dependency.get("path").is_none())
        .filter_map(|dependency| dependency["name"].as_str())
        .collect();
    let silent: Vec<_> = used.difference(&named).collect();
    assert!(silent.is_empty(), "not in the table of docs/dependencies.md: {silent:?}");
}

#[test]
fn every_dependency_can_be_used_under_an_allowed_licence() {
    let allowed = allowed(&read("deny.toml"));
    let metadata = metadata(&["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 20, "cargo metadata lists the dependencies");
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !package["license"].as_str().is_some_and(|licence| permits(licence, &allowed)))
        .map(|package| format!("{} {}: {}", package["name"], package["version"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "under no licence of deny.toml:\n{}", refused.join("\n"));
}

fn allowed(deny: &str) -> BTreeSet<String> {
    let (_, after) = deny.split_once("\nallow = [").expect("deny.toml allows licences");
    let (list, _) = after.split_once(']').expect("the list ends");
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns true if an SPDX expression can be satisfied by the allowed licences alone: AND binds tighter than OR, WITH
/// tightest. The `/` that old crates write means OR.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed);
    met && at == words.len()
}

fn either(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= both(words, at, allowed);
    }
    met
}

fn both(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allowed);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = either(words, at, allowed);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return met && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

/// The quoted texts of a line, in order.
fn quoted(line: &str) -> Vec<&str> {
    line.split('"').skip(1).step_by(2).collect()
}

/// The lines of a list of advisories.toml that have an entry.
fn entries<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    let (_, after) = list.split_once(&format!("\n{name} = [\n")).unwrap_or_else(|| panic!("advisories.toml has a list '{name}'"));
    let (body, _) = after.split_once("\n]").expect("the list ends");
    body.lines().filter(|line| line.trim_start().starts_with('{')).collect()
}

fn version(text: &str) -> Vec<u64> {
    let plain = text.split(['+', '-']).next().unwrap_or_default();
    plain.split('.').map(|part| part.parse().unwrap_or_else(|_| panic!("'{text}' is no version"))).collect()
}

/// True if a version meets all parts of a requirement such as `>= 0.11.6, < 0.12.0`.
fn meets(found: &str, requirement: &str) -> bool {
    requirement.split(',').all(|part| match part.trim().split_once(' ') {
        Some((">=", least)) => version(found) >= version(least),
        Some(("<", first)) => version(found) < version(first),
        _ => panic!("advisories.toml: '{part}' is neither '>= VERSION' nor '< VERSION'"),
    })
}

#[test]
fn requirements_of_advisories_are_compared_by_number() {
    assert!(meets("0.11.10", ">= 0.11.6, < 0.12.0") && !meets("0.12.0", ">= 0.11.6, < 0.12.0"));
    assert!(meets("2.0.1+spec-1.1", ">= 2.0.1") && !meets("0.9.9", ">= 0.10.0"));
}

#[test]
fn no_dependency_has_a_known_advisory_without_a_reason() {
    let (list, lock, deny) = (read("advisories.toml"), read("Cargo.lock"), read("deny.toml"));
    let packages: BTreeSet<(&str, &str)> = lock
        .split("[[package]]")
        .skip(1)
        .map(|package| (quoted(package.lines().nth(1).unwrap())[0], quoted(package.lines().nth(2).unwrap())[0]))
        .collect();
    let locked = |name: &str| packages.iter().filter(|(one, _)| *one == name).map(|(_, version)| *version).collect::<Vec<_>>();
    let mut ignored: BTreeSet<&str> = deny.lines().filter(|line| line.contains("{ id = ")).map(|line| quoted(line)[0]).collect();
    let (mut open, advisories) = (Vec::new(), entries(&list, "advisories"));
    assert!(advisories.len() > 20, "advisories.toml has its list");
    for advisory in advisories {
        let words = quoted(advisory);
        let hit = locked(words[1]).into_iter().filter(|one| !words[2..].iter().any(|free| meets(one, free)));
        let hit: Vec<String> = hit.map(|one| format!("{}: {} {one}", words[0], words[1])).collect();
        if !hit.is_empty() && !ignored.remove(words[0]) {
            open.extend(hit);
        }
    }
    assert!(open.is_empty(), "update these, or add a reason to deny.toml:\n{}", open.join("\n"));
    assert!(ignored.is_empty(), "deny.toml ignores advisories that apply to nothing in Cargo.lock: {ignored:?}");
    for crate_ in entries(&list, "unmaintained") {
        let words = quoted(crate_);
        assert!(!locked(words[0]).is_empty() && words.len() == 3, "advisories.toml names {} as unmaintained", words[0]);
    }
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0", "Unicode-3.0", "A WITH B"].into_iter().map(str::to_owned).collect();
    for (expression, expected) in [
        ("MIT", true),
        ("MIT/GPL-3.0", true),
        ("EPL-2.0 OR Apache-2.0", true),
        ("GPL-3.0 OR EPL-2.0", false),
        ("(MIT OR GPL-3.0) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("GPL-3.0 OR MIT AND Unicode-3.0", true),
        ("(GPL-3.0 OR MIT", false),
        ("A WITH B", true),
        ("A", false),
        ("MIT WITH C", false),
        ("", false),
    ] {
        assert_eq!(permits(expression, &allowed), expected, "{expression}");
    }
}

/// All sources of the workspace, with what they say.
fn sources() -> Vec<(PathBuf, String)> {
    let (mut folders, mut found) = (vec![root().join("crates"), root().join("bindings"), root().join("benches")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&entry).unwrap();
                found.push((entry, text));
            }
        }
    }
    assert!(found.len() > 10, "the sources are found");
    found
}

#[test]
fn no_test_is_skipped_for_good() {
    // In two parts, so that this line does not match itself.
    let mark = concat!("#[", "ignore");
    let mut skipped = BTreeSet::new();
    for (file, text) in sources() {
        for line in text.lines().filter(|line| line.contains(mark) && !line.contains("make test-all")) {
            skipped.insert(format!("{}: {}", file.display(), line.trim()));
        }
    }
    assert!(skipped.is_empty(), "make test-all runs what is ignored, and the reason has to say so: {skipped:#?}");
}

/// Places outside the bus that may name an engine: the log bridge leaves out what the engine itself logs, and a bench measures the bus
/// beside the engine alone.
const NAMES_AN_ENGINE: [&str; 8] = [
    "crates/log/src/bridge/speakers.rs",
    "crates/log/tests/bridges.rs",
    "benches/src/peer.rs",
    "benches/src/peer/zenoh.rs",
    "benches/src/system.rs",
    "benches/src/goal.rs",
    "benches/src/event/plan.rs",
    "crates/types/tests/structure.rs",
];

#[test]
fn no_crate_but_the_bus_names_an_engine() {
    let mut named = BTreeSet::new();
    for (file, text) in sources() {
        let file = file.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
        if file.starts_with("crates/bus/") || NAMES_AN_ENGINE.contains(&file.as_str()) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.to_lowercase().contains("zenoh") {
                named.insert(format!("{file}:{}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(named.is_empty(), "settings are tampu_bus::connect::Settings, an engine is dyn Engine: {named:#?}");
    for file in NAMES_AN_ENGINE {
        assert!(root().join(file).exists(), "{file} is no more: take it out of the list");
    }
}

#[test]
fn every_page_of_the_specification_that_is_named_exists() {
    let is_path = |character: char| character.is_ascii_alphanumeric() || "/_.-".contains(character);
    let mut missing = BTreeSet::new();
    for (file, text) in sources() {
        for (at, _) in text.match_indices(concat!("`", "spec/")) {
            let page: String = text[at + 1..].chars().take_while(|&character| is_path(character)).collect();
            if !root().join(&page).exists() {
                missing.insert(format!("{page} (named in {})", file.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_path_that_architecture_md_names_exists() {
    let page = read("ARCHITECTURE.md");
    let paths = page.split('`').skip(1).step_by(2).filter(|text| {
        ["crates/", "bindings/", "spec/", "docs/", "benches/", "scripts/"].iter().any(|folder| text.starts_with(folder))
            && !text.contains('*')
    });
    let missing: BTreeSet<&str> = paths.filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    let lines = page.lines().count();
    assert!(lines <= 200, "ARCHITECTURE.md has {lines} lines, 200 are allowed");
    assert!(read("README.md").lines().count() <= 150, "README.md has at most 150 lines");
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let mut folders = vec![root().join("docs"), root().join("spec")];
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    let mut broken = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        // Blocks of code have no links.
        let text: String = text.split("\n```").step_by(2).collect();
        for (at, _) in text.match_indices("](") {
            let target: String = text[at + 2..].chars().take_while(|character| !")\n ".contains(*character)).collect();
            let file = target.split('#').next().unwrap_or_default();
            if !file.is_empty() && !target.contains(':') && !page.parent().unwrap().join(file).exists() {
                broken.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links to nothing:\n{}", broken.join("\n"));
}
