//! Holds every crate to one rule of layout: its files import each other in one direction only.
//!
//! A file that imports its importer cannot be read, tested or moved alone. The test reads `use` lines and paths as text.
//! An arrow runs from the file that names a definition to the file that holds it; re-exports are followed, and draw no arrow of their own.
//! Code behind `#[cfg(test)]` is not read. Rejected: rustc's own tables, which need a nightly compiler.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

#[path = "support/source.rs"]
mod source;

/// The names of a module from the crate's root: empty for `lib.rs`.
type Module = Vec<String>;

/// One name that a `use` line brings: the path, and the name it has afterwards.
struct Import {
    path: Vec<String>,
    name: String,
}

struct File {
    path: PathBuf,
    /// The text without `use` lines.
    body: String,
    imports: Vec<Import>,
    /// The names that `pub use` lines export.
    exports: Vec<Import>,
    definitions: BTreeSet<String>,
}

#[derive(Default)]
struct Crate {
    files: BTreeMap<Module, File>,
}

impl Crate {
    fn read(root: &Path) -> Crate {
        let mut all = Crate::default();
        all.load(root, Vec::new());
        all
    }

    fn load(&mut self, path: &Path, module: Module) {
        let text = source::without_tests(&source::code(&std::fs::read_to_string(path).unwrap()));
        let (mut imports, mut exports, mut body) = (Vec::new(), Vec::new(), String::new());
        let mut rest = text.as_str();
        while let Some((at, public, tree, end)) = next_use(rest) {
            body.push_str(&rest[..at]);
            flatten(tree, &[], if public { &mut exports } else { &mut imports });
            rest = &rest[end..];
        }
        body.push_str(rest);
        let directory = match module.last() {
            None => path.parent().unwrap().to_owned(),
            Some(_) => path.with_extension(""),
        };
        for child in children(&text) {
            let file = directory.join(format!("{child}.rs"));
            if file.exists() {
                self.load(&file, [module.clone(), vec![child]].concat());
            }
        }
        let definitions = definitions(&text);
        self.files.insert(module, File { path: path.to_owned(), body, imports, exports, definitions });
    }

    /// The path from the crate's root, or none for a path into another crate.
    fn absolute(&self, module: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([module, rest].concat()),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let above = module.len().checked_sub(ups)?;
                Some([&module[..above], &path[ups..]].concat())
            }
            _ if self.files.contains_key(&[module.as_slice(), std::slice::from_ref(first)].concat()) => {
                Some([module, path].concat())
            }
            _ if rest.is_empty() || depth > 8 => None,
            _ => {
                let file = &self.files[module];
                let import = file.imports.iter().chain(&file.exports).find(|import| import.name == *first)?;
                let inside = ["crate", "self", "super"].contains(&import.path[0].as_str());
                let start = inside.then(|| self.absolute(module, &import.path, depth + 1)).flatten()?;
                Some([start.as_slice(), rest].concat())
            }
        }
    }

    /// The module whose file holds the definition that `path` names. None for a module itself.
    fn holder(&self, path: &[String], seen: &mut BTreeSet<Module>) -> Option<Module> {
        let length = (0..=path.len()).rev().find(|&length| self.files.contains_key(&path[..length]))?;
        let (module, rest) = path.split_at(length);
        let name = rest.first().filter(|name| *name != "*")?;
        let module = module.to_vec();
        let file = &self.files[&module];
        if seen.insert(path.to_vec()) {
            for import in file.exports.iter().chain(&file.imports).filter(|import| import.name == *name) {
                if let Some(found) = self.absolute(&module, &import.path, 0).and_then(|path| self.holder(&path, seen)) {
                    return Some(found);
                }
            }
            for import in file.exports.iter().filter(|import| import.name == "*" && !file.definitions.contains(name)) {
                let source = self.absolute(&module, &import.path[..import.path.len() - 1], 0);
                let path = source.map(|source| [source.as_slice(), std::slice::from_ref(name)].concat());
                let found = path.and_then(|path| self.holder(&path, seen));
                if let Some(found) = found.filter(|found| self.files[found].definitions.contains(name)) {
                    return Some(found);
                }
            }
        }
        Some(module)
    }

    fn arrows(&self) -> BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>> {
        let mut arrows: BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>> = BTreeMap::new();
        for (module, file) in &self.files {
            let named = file.imports.iter().map(|import| import.path.clone()).chain(paths(&file.body));
            for path in named {
                let holder = self.absolute(module, &path, 0).and_then(|path| self.holder(&path, &mut BTreeSet::new()));
                if let Some(holder) = holder.filter(|holder| holder != module) {
                    let names = arrows.entry(module.clone()).or_default().entry(holder).or_default();
                    names.insert(path.last().unwrap().clone());
                }
            }
        }
        arrows
    }

    /// One line for each arrow that is part of a circle.
    fn circles(&self) -> Vec<String> {
        let mut left = self.arrows();
        // A file that imports no remaining file, or that no remaining file imports, is in no circle.
        loop {
            let sources: BTreeSet<Module> = left.keys().cloned().collect();
            let targets: BTreeSet<Module> = left.values().flat_map(|to| to.keys().cloned()).collect();
            let both: BTreeSet<Module> = sources.intersection(&targets).cloned().collect();
            let before: usize = left.values().map(BTreeMap::len).sum();
            left.retain(|from, _| both.contains(from));
            left.values_mut().for_each(|to| to.retain(|to, _| both.contains(to)));
            left.retain(|_, to| !to.is_empty());
            if left.values().map(BTreeMap::len).sum::<usize>() == before {
                break;
            }
        }
        let line = |from: &Module, to: &Module, names: &BTreeSet<String>| {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            format!("{} -> {}: {}", self.files[from].path.display(), self.files[to].path.display(), names.join(", "))
        };
        left.iter().flat_map(|(from, tos)| tos.iter().map(move |(to, names)| line(from, to, names))).collect()
    }
}

/// The next `use` item: where it begins, whether it is public, its tree, where it ends.
fn next_use(text: &str) -> Option<(usize, bool, &str, usize)> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find("use ")?;
        from = at + 4;
        let before = text[..at].trim_end();
        let begins = before.is_empty() || before.ends_with([';', '}', '{', ']']) || is_public(before);
        if begins && text[..at].ends_with(|character: char| character.is_whitespace()) || at == 0 {
            let end = at + text[at..].find(';')?;
            return Some((at, is_public(before), &text[at + 4..end], end + 1));
        }
    }
}

fn is_public(before: &str) -> bool {
    let line = before.rsplit([';', '}', '{', ']']).next().unwrap_or_default().trim();
    line == "pub" || line.starts_with("pub(") && line.ends_with(')')
}

/// The leaves of a use tree.
fn flatten(tree: &str, prefix: &[String], into: &mut Vec<Import>) {
    let (mut depth, mut start) = (0, 0);
    let mut parts = Vec::new();
    for (at, character) in tree.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&tree[start..at]);
                start = at + 1;
            }
            _ => (),
        }
    }
    parts.push(&tree[start..]);
    let names =
        |path: &str| path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        if let Some((head, group)) = part.split_once('{') {
            let group = group.strip_suffix('}').unwrap_or(group);
            flatten(group, &[prefix, &names(head)].concat(), into);
        } else {
            let (path, alias) =
                part.split_once(" as ").map_or((part, None), |(path, alias)| (path, Some(alias.trim().to_owned())));
            let path = [prefix, &names(path)].concat();
            let name = alias.unwrap_or_else(|| path.last().cloned().unwrap_or_default());
            into.push(Import { path, name });
        }
    }
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The modules declared by `mod name;`.
fn children(text: &str) -> Vec<String> {
    let after = text.match_indices("mod ").filter(|(at, _)| !text[..*at].ends_with(is_name)).map(|(at, _)| &text[at + 4..]);
    let names = after.filter_map(|after| after.split_once(';').map(|(name, _)| name.trim()));
    names.filter(|name| !name.is_empty() && name.chars().all(is_name)).map(str::to_owned).collect()
}

fn definitions(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split(|character| !is_name(character)).filter(|word| !word.is_empty()).collect();
    let kinds = ["struct", "enum", "trait", "fn", "const", "static", "type", "union", "mod", "macro_rules"];
    words.windows(2).filter(|pair| kinds.contains(&pair[0])).map(|pair| pair[1].to_owned()).collect()
}

/// Every path of at least two names in running code.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for run in text.split(|character: char| !is_name(character) && character != ':') {
        let names: Vec<String> = run.split("::").map(str::to_owned).collect();
        let whole = names.iter().all(|name| !name.is_empty() && name.chars().all(is_name));
        if names.len() > 1 && whole && names[0].starts_with(|first: char| first.is_lowercase() || first == '_') {
            found.push(names);
        }
    }
    found
}

#[test]
fn files_of_a_crate_import_each_other_one_way() {
    let mut circles = Vec::new();
    for root in source::crates().into_iter().flat_map(|folder| [folder.join("src/lib.rs"), folder.join("src/main.rs")]) {
        if root.exists() {
            let all = Crate::read(&root);
            let arrows = all.circles();
            if !arrows.is_empty() {
                circles.push(format!("{}:\n  {}", root.display(), arrows.join("\n  ")));
            }
        }
    }
    assert!(
        circles.is_empty(),
        "files that import each other (move what both need to a file of its own):\n{}",
        circles.join("\n")
    );
}

#[test]
fn a_circle_is_found_and_a_re_export_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    write("lib.rs", "pub mod inner;\npub mod other;\npub use inner::Thing;\n");
    write("inner.rs", "mod leaf;\npub use leaf::Thing;\n");
    write("inner/leaf.rs", "use super::super::other::Other;\npub struct Thing(Other);\n");
    write("other.rs", "pub struct Other;\n#[cfg(test)]\nmod tests { use crate::Thing; }\n");
    assert_eq!(Crate::read(&folder.path().join("lib.rs")).circles(), Vec::<String>::new());
    write("other.rs", "pub struct Other;\nimpl Other { fn make() -> crate::inner::Thing { todo() } }\n");
    let circles = Crate::read(&folder.path().join("lib.rs")).circles();
    assert_eq!(circles.len(), 2, "{circles:#?}");
    write("other.rs", "use crate::Thing;\npub struct Other;\n");
    assert_eq!(Crate::read(&folder.path().join("lib.rs")).circles().len(), 2, "a re-export leads to the definition");
}
