//! Archives and exports of other logbooks, in and out.

mod support;

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter};
use serde_json::json;
use support::{entry, shift_book};
use tampu_logbook::{
    attachment::Attachment,
    book::{AttributeKind, EntryAttribute},
    entry::{Content, Encoding, Entry, EntryRef, NewEntry},
    exchange::{
        ForeignReport, ForeignSource, SourceError,
        elabftw::Elabftw,
        eln::{Eln, ElnArchive, export_eln},
        import_foreign,
        olog::Olog,
        scilog::SciLog,
    },
    search::{Search, Stop},
    store::{Attachments, Entries, Logbook, Maintenance, sqlite::SqliteStore},
};
use tampu_types::Time;

fn new_store() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(dir.path()).unwrap());
    (dir, store)
}

fn import(store: &SqliteStore, source: &dyn ForeignSource, book: &str) -> ForeignReport {
    import_foreign(store, source, book, &mut |done, total| done <= total).unwrap()
}

/// The numbers of new, changed, same, conflicting and gone entries.
fn counts(report: &ForeignReport) -> [u64; 5] {
    [report.new, report.changed, report.same, report.conflicts, report.gone]
}

fn is_sound(store: &SqliteStore) -> bool {
    store.check(&mut |_, _| true).unwrap().is_empty()
}

fn values<'a>(entry: &'a Entry, name: &str) -> Vec<&'a str> {
    entry.content.attribute(name).into_iter().flat_map(|said| &said.values).map(String::as_str).collect()
}

/// Writes an archive of these members; true stands for compressed.
fn zip(path: &Path, members: &[(&str, &[u8])]) {
    let mut zip = ZipArchiveWriter::new(File::create(path).unwrap());
    for (name, bytes) in members {
        let name = rawzip::path::EntryPath::verbatim(name.as_bytes());
        let (mut entry, config) = zip.new_file(name).compression_method(CompressionMethod::DEFLATE).start().unwrap();
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        writer.write_all(bytes).unwrap();
        let (encoder, descriptor) = writer.finish().unwrap();
        encoder.finish().unwrap();
        entry.finish(descriptor).unwrap();
    }
    zip.finish().unwrap();
}

/// Writes an archive whose graph has the root with these parts, and these nodes.
fn eln(path: &Path, parts: &[&str], nodes: &serde_json::Value, files: &[(&str, &[u8])]) {
    let parts: Vec<_> = parts.iter().map(|id| json!({ "@id": id })).collect();
    let mut graph = vec![
        json!({ "@id": "ro-crate-metadata.json", "@type": "CreativeWork", "about": { "@id": "./" } }),
        json!({ "@id": "./", "@type": "Dataset", "hasPart": parts }),
    ];
    graph.extend(nodes.as_array().unwrap().iter().cloned());
    let metadata = json!({ "@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph }).to_string();
    let mut members = vec![("export/ro-crate-metadata.json", metadata.as_bytes())];
    members.extend(files);
    zip(path, &members);
}

/// A logbook with everything that an entry can have.
fn shift() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let (dir, store) = new_store();
    let mut book = shift_book("Shift");
    book.attributes.push(tampu_logbook::book::AttributeDef::new("Labels", AttributeKind::Tags));
    store.put_book(&book).unwrap();
    let first = entry("Shift", "Zoe", "HV trip", "MAG-01 tripped");
    store.post(NewEntry { date: Some(Time::from_unix(1_221_000_000, 5)), ..first }, vec![], "zoe").unwrap();
    let upload = store.upload(&mut &b"picture"[..], 100).unwrap();
    let content = Content {
        attributes: vec![
            EntryAttribute::new("Author", "Max"),
            EntryAttribute { name: "System".to_owned(), values: vec!["RICH1".to_owned(), "HLT".to_owned()] },
            EntryAttribute { name: "Labels".to_owned(), values: vec!["beam".to_owned(), "hv, main".to_owned()] },
            EntryAttribute::new("Subject", "a <b> & \"c\""),
        ],
        encoding: Encoding::Markdown,
        text: "**see** ![p](attachment:trend%20plot.png) elog:1".to_owned(),
        attachments: vec![
            upload.attachment("trend plot.png", Time::from_unix(1_221_000_100, 0)),
            Attachment { sha: None, ..upload.attachment("lost.txt", Time::from_unix(1_221_000_100, 0)) },
        ],
        links: vec!["run:80123".parse().unwrap()],
    };
    let date = Some(Time::from_unix(1_221_000_100, 0));
    store.post(NewEntry { book: "Shift".into(), content, date, parent: Some(1), zone: 120 }, vec![upload], "max").unwrap();
    (dir, store)
}

fn exported(store: &Arc<SqliteStore>, search: &Search) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shift.eln");
    let logbook: Arc<dyn Logbook> = store.clone();
    let done = export_eln(&logbook, search, &path, Time::from_unix(1_800_000_000, 0), &Stop::default(), &mut |_| true).unwrap();
    assert!(done.notes.len() == 1 && done.notes[0].contains("'lost.txt' are missing"), "{done:?}");
    (dir, path)
}

#[test]
fn an_archive_brings_entries_back_as_they_were() {
    let (_from, from) = shift();
    let (_file, path) = exported(&from, &Search { books: vec!["Shift".to_owned()], ..Search::default() });
    let (_to, to) = new_store();
    to.put_book(&from.book("Shift").unwrap()).unwrap();
    let report = import(&to, &Eln::open(&path).unwrap(), "Shift");
    assert_eq!((counts(&report), report.attachments), ([2, 0, 0, 0, 0], 1), "{report:?}");
    let lost = report.faults.iter().find(|fault| fault.what.contains("'lost.txt'")).unwrap();
    assert_eq!(lost.place, "@id './Shift/2/'");
    for id in [1, 2] {
        let (was, is) = (from.entry(&EntryRef::new("Shift", id)).unwrap(), to.entry(&EntryRef::new("Shift", id)).unwrap());
        let core = |entry: &Entry| (entry.date, entry.zone, entry.by.clone(), entry.parent, entry.thread);
        assert_eq!(core(&was), core(&is));
        assert_eq!(
            (&was.content.attributes, &was.content.text, was.content.encoding),
            (&is.content.attributes, &is.content.text, is.content.encoding)
        );
        assert_eq!(was.content.links, is.content.links);
        let files = |entry: &Entry| {
            entry.content.attachments.iter().map(|file| (file.name.clone(), file.sha.clone())).collect::<Vec<_>>()
        };
        assert_eq!(files(&was), files(&is));
    }
    assert!(is_sound(&to));

    // The same again changes nothing; an entry that was deleted or changed here stays so.
    assert_eq!(counts(&import(&to, &Eln::open(&path).unwrap(), "Shift")), [0, 0, 2, 0, 0]);
    to.delete(&EntryRef::new("Shift", 2), "zoe", false).unwrap();
    assert_eq!(counts(&import(&to, &Eln::open(&path).unwrap(), "Shift")), [0, 0, 1, 0, 1]);
    let own = to.entry(&EntryRef::new("Shift", 1)).unwrap().content;
    to.edit(&EntryRef::new("Shift", 1), Content { text: "mine".to_owned(), ..own }, vec![], "zoe", None).unwrap();
    from.edit(
        &EntryRef::new("Shift", 1),
        Content { text: "theirs".to_owned(), ..from.entry(&EntryRef::new("Shift", 1)).unwrap().content },
        vec![],
        "zoe",
        None,
    )
    .unwrap();
    let (_file, path) = exported(&from, &Search::default());
    let report = import(&to, &Eln::open(&path).unwrap(), "Shift");
    assert_eq!(counts(&report), [0, 0, 0, 1, 1], "{report:?}");

    // In a book with other entries, they get other numbers.
    let (_other, other) = new_store();
    other.put_book(&shift_book("Mine")).unwrap();
    for _ in 0..3 {
        other.post(entry("Mine", "Ann", "here", "first"), vec![], "ann").unwrap();
    }
    assert_eq!(counts(&import(&other, &Eln::open(&path).unwrap(), "mine")), [2, 0, 0, 0, 0]);
    let reply = other.entry(&EntryRef::new("Mine", 5)).unwrap();
    assert_eq!((reply.parent, reply.thread, reply.by.as_str()), (Some(4), 4, "max"));
    assert!(is_sound(&other));
}

#[test]
fn archives_of_other_programs_become_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("scilog.eln");
    let person = json!({ "@id": "person://zoe@psi.example", "@type": "Person", "email": "zoe@psi.example" });
    let nodes = json!([
        person,
        { "@id": "./b1/", "@type": ["Book", "Dataset"], "name": "logbook-001", "hasPart": [{ "@id": "./m1/" }, { "@id": "./c1/" }] },
        { "@id": "./m1/", "@type": ["Message", "Dataset"], "name": "Paragraph m1", "encodingFormat": "text/html",
          "text": "<p>see <img src=\"./m1/p q.png\"></p>", "dateCreated": "2026-01-19T14:26:44.457Z", "keywords": "atag,btag",
          "author": { "@id": "person://zoe@psi.example" }, "hasPart": [{ "@id": "./m1/p%20q.png" }], "comment": [{ "@id": "./c1/" }] },
        { "@id": "./m1/p%20q.png", "@type": "File", "name": "p q.png", "sha256": "00".repeat(32) },
        { "@id": "./c1/", "@type": ["Comment", "Dataset"], "text": "<p>yes</p>", "dateCreated": "2026-01-28T14:05:53+01:00",
          "parentItem": { "@id": "./m1/" }, "author": { "@id": "person://zoe@psi.example" } },
        { "@id": "./m1/", "@type": "Dataset" },
    ]);
    eln(&path, &["./b1/"], &nodes, &[("export/m1/p q.png", b"picture")]);
    let (_dir, store) = new_store();
    let report = import(&store, &Eln::open(&path).unwrap(), "Beam");
    assert_eq!((counts(&report), report.attachments), ([2, 0, 0, 0, 0], 1), "{report:?}");
    let said: Vec<&str> = report.faults.iter().map(|fault| fault.what.as_str()).collect();
    assert!(said.iter().any(|what| what.contains("second node")) && said.iter().any(|what| what.contains("digest")), "{said:?}");
    let message = store.entry(&EntryRef::new("Beam", 1)).unwrap();
    assert_eq!((message.by.as_str(), values(&message, "Tags")), ("zoe@psi.example", vec!["atag", "btag"]));
    assert_eq!(message.content.text, "<p>see <img src=\"260119_142644/p_q.png\"></p>");
    let reply = store.entry(&EntryRef::new("Beam", 2)).unwrap();
    assert_eq!((reply.parent, reply.zone, reply.date.to_acs().as_str()), (Some(1), 60, "2026-01-28T13:05:53.000"));
    assert!(is_sound(&store));

    let path = dir.path().join("elabftw.eln");
    let nodes = json!([
        { "@id": "person://x", "@type": "Person", "givenName": "Toto", "familyName": "Le sysadmin" },
        { "@id": "comment://1", "@type": "Comment", "dateCreated": "2023-09-28T03:44:54+02:00", "text": "Well, it&#39;s", "author": { "@id": "person://x" } },
        { "@id": "./A - 1/export-elabftw.json", "@type": "File", "name": "export-elabftw.json" },
        { "@id": "https://elab.example/51", "@type": "Dataset", "name": "Plasmid" },
        { "@id": "./A - 1", "@type": "Dataset", "author": { "@id": "person://x" }, "dateCreated": "2023-09-28T03:45:03+02:00",
          "identifier": "20230928-5c", "comment": [{ "@id": "comment://1" }], "keywords": ["demo"], "name": "Anti-CD11b", "text": "",
          "hasPart": [{ "@id": "./A - 1/export-elabftw.json" }], "mentions": [{ "@id": "https://elab.example/51" }],
          "variableMeasured": [{ "@type": "PropertyValue", "propertyID": "Temp", "value": 7, "unitText": "K" }] },
    ]);
    eln(&path, &["./A - 1"], &nodes, &[("export/A - 1/export-elabftw.json", b"{}")]);
    let report = import(&store, &Eln::open(&path).unwrap(), "Lab");
    assert_eq!(counts(&report), [2, 0, 0, 0, 0], "{report:?}");
    let found = store
        .search(&Search { books: vec!["Lab".to_owned()], descending: false, ..Search::default() }, &Stop::default())
        .unwrap();
    let entries: Vec<&Entry> = found.hits.iter().map(|hit| &hit.entry).collect();
    let lab = entries.iter().find(|entry| entry.parent.is_none()).unwrap();
    assert_eq!(
        (lab.by.as_str(), values(lab, "Subject"), values(lab, "Temp")),
        ("Toto Le sysadmin", vec!["Anti-CD11b"], vec!["7 K"])
    );
    assert_eq!(values(lab, "Mentions"), ["Plasmid https://elab.example/51"]);
    let comment = entries.iter().find(|entry| entry.parent == Some(lab.at.id)).unwrap();
    assert_eq!((comment.content.encoding, comment.content.text.as_str()), (Encoding::Html, "Well, it&#39;s"));
    assert!(is_sound(&store) && store.book("Lab").unwrap().attribute("Tags").unwrap().kind == AttributeKind::Tags);
}

/// The reason why an archive is refused.
fn refused(path: &Path) -> String {
    match Eln::open(path) {
        Err(SourceError::Format { why, .. }) => why,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was read"),
    }
}

#[test]
fn hostile_archives_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.eln");
    let metadata: &[u8] = br#"{"@graph": [{"@id": "./", "@type": "Dataset"}]}"#;
    let meta = ("x/ro-crate-metadata.json", metadata);
    for (member, why) in [
        ("x/../../etc/passwd", "leads out"),
        ("/etc/passwd", "absolute"),
        ("C:/x", "absolute"),
        ("x\\y", "backslash"),
        ("x/a\u{7}b", "control character"),
        ("x//y", "leads out"),
        ("X/ro-crate-metadata.JSON", "second member"),
        ("x/ro-crate-metadata.json", "second member"),
        ("y/other", "not in the folder 'x'"),
        ("alone", "no folder"),
    ] {
        zip(&path, &[meta, (member, b"1")]);
        let said = refused(&path);
        assert!(said.contains(why) && said.contains(&format!("{}", member.escape_debug())), "{member}: {said}");
    }
    zip(&path, &[("x/readme", b"1")]);
    assert!(refused(&path).contains("no ro-crate-metadata.json"));
    zip(&path, &[("x/ro-crate-metadata.json", b"{\"@graph\": [")]);
    assert!(refused(&path).contains("line 1"));
    fs::write(&path, "PK no archive").unwrap();
    assert!(refused(&path).contains("no ZIP archive"));

    // A link, an encrypted member, one that says a wrong size, and two at one place: changed in the directory.
    zip(&path, &[meta, ("x/one", b"the first file"), ("x/two", b"the second file")]);
    let sound = fs::read(&path).unwrap();
    let records: Vec<usize> = (0..sound.len() - 4).filter(|at| sound[*at..].starts_with(b"PK\x01\x02")).collect();
    let changed = |at: usize, bytes: &[u8]| {
        let mut archive = sound.clone();
        // Unix made it, so the mode of a file counts.
        archive[records[2] + 5] = 3;
        archive[records[2] + at..][..bytes.len()].copy_from_slice(bytes);
        fs::write(&path, archive).unwrap();
    };
    changed(38, &(0o120_777_u32 << 16).to_le_bytes());
    let link = refused(&path);
    changed(8, &[1, 0]);
    let encrypted = refused(&path);
    changed(10, &[12, 0]);
    let method = refused(&path);
    changed(24, &0xf000_0000_u32.to_le_bytes());
    let bomb = refused(&path);
    changed(42, &sound[records[1] + 42..][..4]);
    let overlapping = refused(&path);
    for (said, why) in [
        (&link, "symbolic link"),
        (&encrypted, "encrypted"),
        (&method, "only deflate"),
        (&overlapping, "overlap"),
        (&bomb, "more than 100 times"),
    ] {
        assert!(said.contains(why) && said.contains("'x/two'"), "{said}");
    }
    changed(24, &5_u32.to_le_bytes());
    let archive = ElnArchive::open(&path).unwrap();
    assert!(archive.bytes("two", 100).unwrap_err().contains("'two'"));
    assert_eq!(archive.bytes("one", 100).unwrap(), b"the first file");
}

#[test]
fn olog_brings_threads_files_and_properties() {
    let dir = tempfile::tempdir().unwrap();
    let (file, files) = (dir.path().join("logs.json"), dir.path().join("files"));
    fs::create_dir_all(files.join("575")).unwrap();
    fs::write(files.join("575/screen.png"), "picture").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", files.join("passwd")).unwrap();
    let group = json!([{ "name": "Log Entry Group", "attributes": [{ "name": "id", "value": "g1" }] }]);
    let logs = json!({ "hitCount": 5, "logs": [
        { "id": 580, "owner": "max", "source": "**again**", "createdDate": 1_577_392_700_000_i64, "properties": group },
        { "id": 575, "owner": "zoe", "source": "**Beam Dump** ![](attachment/5e21)", "description": "Beam Dump", "level": "Info", "title": "Dump",
          "createdDate": 1_577_392_617_217_i64, "logbooks": [{ "name": "Ops" }, { "name": "RF" }], "tags": [{ "name": "Fault" }],
          "properties": [group[0], { "name": "FaultReport", "attributes": [{ "name": "id", "value": "1234" }] }],
          "attachments": [{ "id": "5e21", "filename": "screen.png" }, { "id": "x", "filename": "../../passwd" }] },
        { "id": "none", "owner": "zoe" },
        { "id": 581, "createdDate": "yesterday" },
        { "id": 575, "owner": "zoe", "createdDate": 1 },
    ] });
    fs::write(&file, logs.to_string()).unwrap();
    let (_dir, store) = new_store();
    let source = Olog { file: file.clone(), files: Some(files) };
    let report = import(&store, &source, "Control");
    assert_eq!((counts(&report), report.attachments), ([2, 0, 0, 0, 0], 1), "{report:?}");
    let said: Vec<String> = report.faults.iter().map(|fault| format!("{} {}", fault.place, fault.what)).collect();
    for part in
        ["/logs/2 'id'", "/logs/3 'createdDate'", "/logs/4 '575' occurs a second time", "/logs/1 attachment 'passwd': no file"]
    {
        assert!(said.iter().any(|said| said.starts_with(part)), "{part}: {said:?}");
    }
    let dump = store.entry(&EntryRef::new("Control", 575)).unwrap();
    assert_eq!(
        (dump.by.as_str(), dump.content.encoding, dump.date.to_acs().as_str()),
        ("zoe", Encoding::Markdown, "2019-12-26T20:36:57.217")
    );
    assert_eq!(dump.content.text, "**Beam Dump** ![](191226_203657/screen.png)");
    assert_eq!(
        (values(&dump, "Logbooks"), values(&dump, "FaultReport id"), values(&dump, "Subject")),
        (vec!["Ops", "RF"], vec!["1234"], vec!["Dump"])
    );
    let reply = store.entry(&EntryRef::new("Control", 580)).unwrap();
    assert_eq!((reply.parent, reply.thread), (Some(575), 575));
    assert_eq!(counts(&import(&store, &source, "Control"))[2], 2);
    assert!(is_sound(&store));

    // A file that ends too early, and one that is none, are errors with their line.
    fs::write(&file, "[{\"id\": 1,\n \"createdDate\": ").unwrap();
    let error = import_foreign(&*store, &source, "Control", &mut |_, _| true).unwrap_err().to_string();
    assert!(error.contains("logs.json") && error.contains("line 2"), "{error}");
    fs::write(&file, "7").unwrap();
    let error = import_foreign(&*store, &source, "Control", &mut |_, _| true).unwrap_err().to_string();
    assert!(error.contains("an array of entries"), "{error}");
}

#[test]
fn scilog_and_elabftw_are_read_as_json_and_csv() {
    let dir = tempfile::tempdir().unwrap();
    let (file, files) = (dir.path().join("export.json"), dir.path().join("files"));
    fs::create_dir(&files).unwrap();
    fs::write(files.join("f1.png"), "picture").unwrap();
    let snippets = json!([
        { "id": "l1", "snippetType": "logbook", "name": "Beam" },
        { "id": "p1", "snippetType": "paragraph", "linkType": "paragraph", "textcontent": "<p>one</p>", "tags": ["a"], "createdBy": "zoe@psi",
          "createdAt": "2026-01-19T14:26:44.457Z", "parentId": "l1", "files": [{ "fileId": "f1", "fileExtension": "image/png" }],
          "subsnippets": [{ "id": "c1", "snippetType": "paragraph", "linkType": "comment", "textcontent": "<p>two</p>", "createdBy": "max@psi",
                            "createdAt": "2026-01-19T15:00:00Z", "parentId": "p1" }] },
        { "id": "c2", "snippetType": "paragraph", "linkType": "comment", "createdAt": "2026-01-20T15:00:00Z", "parentId": "nope" },
        { "id": "d1", "snippetType": "paragraph", "deleted": true },
    ]);
    fs::write(&file, snippets.to_string()).unwrap();
    let (_dir, store) = new_store();
    let report = import(&store, &SciLog { file: file.clone(), files: Some(files) }, "Beam");
    assert_eq!((counts(&report), report.attachments), ([3, 0, 0, 0, 0], 1), "{report:?}");
    assert!(
        report.faults.iter().any(|fault| fault.place == "/2" && fault.what.contains("'nope', which is missing")),
        "{report:?}"
    );
    let reply = store.entry(&EntryRef::new("Beam", 2)).unwrap();
    assert_eq!((reply.parent, reply.by.as_str(), reply.content.text.as_str()), (Some(1), "max@psi", "<p>two</p>"));

    let items = json!([{ "id": 7, "title": "Trial", "body": "**b**", "content_type": 2, "created_at": "2024-03-01 10:00:00", "fullname": "Toto Le",
        "tags": "x|y", "elabid": "20240301-aa", "metadata": "{\"extra_fields\": {\"Temp\": {\"value\": \"7\"}, \"Many\": {\"value\": [\"1\", \"2\"]}}}",
        "uploads": [{ "real_name": "data.csv", "long_name": "ab/abc.csv" }],
        "comments": [{ "id": 3, "comment": "<p>ok</p>", "created_at": "2024-03-02 10:00:00", "fullname": "Ann" }] }]);
    fs::write(&file, items.to_string()).unwrap();
    let report = import(&store, &Elabftw { file: file.clone(), files: None, is_csv: false }, "Lab");
    assert_eq!(counts(&report), [2, 0, 0, 0, 0], "{report:?}");
    assert!(report.faults.iter().any(|fault| fault.what.contains("--files DIR")), "{report:?}");
    let trial = store.entry(&EntryRef::new("Lab", 7)).unwrap();
    assert_eq!(
        (values(&trial, "Tags"), values(&trial, "Temp"), values(&trial, "Many")),
        (vec!["x", "y"], vec!["7"], vec!["1, 2"])
    );
    assert_eq!((trial.content.encoding, store.entry(&EntryRef::new("Lab", 8)).unwrap().parent), (Encoding::Markdown, Some(7)));

    let table = dir.path().join("export.csv");
    fs::write(&table, "id,date,title,content,tags,Sample\n9,20240301,\"A, b\",\"<p>x\ny</p>\",\"u,v\",S1\n,20240301,none,,,\n")
        .unwrap();
    let report = import(&store, &Elabftw { file: table, files: None, is_csv: true }, "Table");
    assert_eq!(counts(&report), [1, 0, 0, 0, 0], "{report:?}");
    assert_eq!((report.faults.len(), report.faults[0].place.as_str()), (1, "line 4"));
    let row = store.entry(&EntryRef::new("Table", 9)).unwrap();
    assert_eq!(
        (values(&row, "Subject"), values(&row, "Tags"), values(&row, "Sample")),
        (vec!["A, b"], vec!["u", "v"], vec!["S1"])
    );
    assert!(is_sound(&store));
}
