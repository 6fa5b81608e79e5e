//! The page of bounds, and the catalogue it is made from.

use std::path::Path;

use tampu_hub::bounds::{Area, Limit, page};

/// `TAMPU_WRITE_SPEC=1` writes the page anew.
#[test]
fn the_page_is_the_one_that_is_written_down() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/bounds.md");
    if std::env::var_os("TAMPU_WRITE_SPEC").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap();
    assert!(written == page(), "docs/reference/bounds.md is not what the catalogue says; TAMPU_WRITE_SPEC=1 writes it anew");
}

#[test]
fn each_library_of_programs_without_the_bus_has_its_bounds() {
    let whats: Vec<&str> = Area::Clients.bounds().map(|bound| bound.what).collect();
    for (library, bound) in [("Java", "acknowledged"), ("TypeScript", "acknowledged"), ("TypeScript", "wait for the program")] {
        assert!(whats.iter().any(|what| what.starts_with(library) && what.contains(bound)), "{library}: {bound}: {whats:?}");
    }
}

#[test]
fn constants_are_those_of_the_sources() {
    for bound in Area::ALL.into_iter().flat_map(Area::bounds) {
        let Limit::Constant(file, name, expression, _) = bound.limit else { continue };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Other languages write no type behind the name.
        let start = if file.ends_with(".rs") { format!("const {name}: ") } else { format!(" {name} = ") };
        let line = source.lines().find(|line| line.contains(&start)).unwrap_or_else(|| panic!("{file} has no {name}"));
        assert!(line.ends_with(&format!("= {expression};")), "{}: {file} has '{line}'", bound.what);
    }
}
