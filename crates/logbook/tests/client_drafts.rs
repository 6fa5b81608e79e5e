//! Drafts over HTTP: a hub that lacks files of a draft does not go unnoticed.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
};

use tampu_logbook::{
    client::{Client, Trust},
    entry::{Content, Draft},
    store::Drafts,
};
use tampu_types::Time;

/// A hub that answers each request on a connection of its own with the next of these bodies; its address.
fn hub(answers: [&'static str; 2]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for answer in answers {
            let mut stream = listener.accept().unwrap().0;
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let head = format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
            stream.write_all((head + answer).as_bytes()).unwrap();
        }
    });
    format!("http://{address}")
}

#[test]
fn a_draft_without_its_files_is_an_error_that_names_them() {
    let url = hub([r#"{"number":"12","missing":["plot.png","trip.txt"]}"#, r#"{"number":"12"}"#]);
    let client = Client::new(&url, None, "test", &Trust::default()).unwrap();
    let content = Content { text: "half".to_owned(), ..Content::default() };
    let draft =
        Draft { number: 0, owner: String::new(), book: "Shift".to_owned(), edits: None, parent: None, saved: Time(0), content };
    let why = client.save_draft(&draft).unwrap_err().to_string();
    assert!(why.starts_with("draft 12 is saved without the files plot.png, trip.txt: "), "{why}");
    assert_eq!(client.save_draft(&draft).unwrap(), 12);
}
