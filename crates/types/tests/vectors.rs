//! Holds the codecs to `testdata/vectors`: bytes of earlier releases stay readable, and this one writes what it has
//! always written. `TAMPU_WRITE_VECTORS=1 cargo test -p tampu-types --test vectors` writes the bytes that are missing.

use std::{fs, path::PathBuf};

use tampu_types::{
    LogRecord,
    import::import_id,
    log_batch::{LogBatchView, decode_records, encode_records},
};

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors"))
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

fn records(json: &str) -> Vec<LogRecord> {
    json.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn batches_of_every_release() {
    let mut checked = Vec::new();
    for entry in fs::read_dir(folder().join("log_batch")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("json") => {}
            Some("hex") => assert!(path.with_extension("json").exists(), "{name}.hex has no {name}.json beside it"),
            _ => panic!("{} is no vector", path.display()),
        }
        if checked.contains(&name) {
            continue;
        }
        let expected = records(&fs::read_to_string(path.with_extension("json")).unwrap());
        let hex = path.with_extension("hex");
        if !hex.exists() && std::env::var_os("TAMPU_WRITE_VECTORS").is_some() {
            fs::write(&hex, to_hex(&encode_records(&expected).unwrap())).unwrap();
        }
        let bytes = from_hex(&fs::read_to_string(&hex).unwrap_or_else(|error| panic!("{}: {error}", hex.display())));
        if name.starts_with("v1-") {
            assert_eq!(decode_records(&bytes).unwrap(), expected, "{name}");
            assert_eq!(to_hex(&encode_records(&expected).unwrap()), to_hex(&bytes), "{name}");
        } else if name.starts_with("future-") {
            future(&name, &bytes, &expected);
        } else {
            panic!("{name}: nobody knows what to expect of it");
        }
        checked.push(name);
    }
    assert!(checked.iter().any(|name| name.starts_with("v1-")) && checked.iter().any(|name| name.starts_with("future-")));
}

/// Members of a later release are skipped by what this one reads, and carried where it writes records on.
fn future(name: &str, bytes: &[u8], expected: &[LogRecord]) {
    let view = LogBatchView::parse(bytes).unwrap();
    assert!(!view.unknown().is_empty(), "{name}");
    let read = decode_records(bytes).unwrap();
    let known = read.iter().map(|record| {
        assert!(!record.unknown.is_empty() && !record.unknown_origin.is_empty(), "{name}");
        LogRecord { unknown: Vec::new(), unknown_origin: Vec::new(), ..record.clone() }
    });
    assert_eq!(known.collect::<Vec<_>>(), expected, "{name}");
    let again = decode_records(&encode_records(&read).unwrap()).unwrap();
    assert_eq!(again, read, "{name}");
}

#[test]
fn ids_of_imported_records() {
    let file = folder().join("import_id.txt");
    let vectors = fs::read_to_string(&file).unwrap();
    let mut rewritten = String::new();
    for line in vectors.lines() {
        let mut parts = line.split('\t');
        let (json, occurrence) = (parts.next().unwrap(), parts.next().unwrap());
        let id = import_id(&serde_json::from_str(json).unwrap(), occurrence.parse().unwrap());
        rewritten += &format!("{json}\t{occurrence}\t{id}\n");
    }
    if std::env::var_os("TAMPU_WRITE_VECTORS").is_some() {
        fs::write(&file, &rewritten).unwrap();
    }
    assert_eq!(rewritten, fs::read_to_string(&file).unwrap());
}
