//! C++ format texts: results of the library fmt itself, and invalid texts.

use tampu_text::{Arguments, BadText, Payload, Rendered, Site, capture::Capture};

/// Text that a call with this one argument shows.
fn shown(text: &str, argument: impl Capture) -> Result<String, BadText> {
    show(text, (argument, ()))
}

fn show(text: &str, arguments: impl Arguments) -> Result<String, BadText> {
    let (site, mut payload, mut rendered) = (Site::parse(text)?, Vec::new(), Rendered::default());
    Payload::new(arguments).append_to(&mut payload);
    rendered.render(&site, &payload).unwrap();
    Ok(rendered.message().to_owned())
}

#[test]
fn texts_read_as_fmt_writes_them() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/log_call/fmt.tsv");
    let vectors = std::fs::read_to_string(file).unwrap();
    let mut wrong = Vec::new();
    for row in vectors.lines() {
        let [text, kind, value, expected] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
        let shown = match kind {
            "i32" => shown(text, value.parse::<i32>().unwrap()),
            "i64" => shown(text, value.parse::<i64>().unwrap()),
            "u64" => shown(text, value.parse::<u64>().unwrap()),
            "f32" => shown(text, value.parse::<f32>().unwrap()),
            "f64" => shown(text, value.parse::<f64>().unwrap()),
            "bool" => shown(text, value.parse::<bool>().unwrap()),
            "char" => shown(text, value.parse::<char>().unwrap()),
            "str" => shown(text, value),
            _ => panic!("{row}"),
        };
        if shown.as_deref() != Ok(expected) {
            wrong.push(format!("{row}: {shown:?}"));
        }
    }
    assert!(vectors.lines().count() > 1000, "the vectors are there");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), vectors.lines().count(), wrong.join("\n"));
}

#[test]
fn a_text_says_which_arguments_it_shows() {
    assert_eq!(show("az {} el {:.3f}", (1, (2.5, ()))), Ok("az 1 el 2.500".to_owned()));
    assert_eq!(show("{1} {0} {1:>4}|{0:}>4}", ("a", ("b", ()))), Ok("b a    b|}}}a".to_owned()));
    assert_eq!(Site::parse("{} {} {}").unwrap().arguments, 3);
    assert_eq!(Site::parse("{4} {2}").unwrap().arguments, 5);
    assert_eq!(Site::parse("{{}}").unwrap().arguments, 0);
}

#[test]
fn texts_that_are_none_say_why() {
    let cases = [
        ("a } b", "a '}' at byte 2 closes nothing; for a brace in the text write '}}'"),
        ("a {", "the '{' at byte 2 is not closed; for a brace in the text write '{{'"),
        ("{:q}", "'{:q}' at byte 0: known types are s d b B o x X c f F e E g G ?"),
        ("é {name}", "'{name}' at byte 3: the argument is named by its number"),
        ("{:.}", "'{:.}' at byte 0: a number stands behind the point"),
        ("{:99999}", "'{:99999}' at byte 0: widths and precisions go up to 65535"),
        ("{} {1}", "'{1}' at byte 3: either all fields have numbers or none has"),
        ("{64}", "a log statement takes at most 64 arguments"),
        ("{:{}}", "'{:{}' at byte 0: known types are s d b B o x X c f F e E g G ?"),
    ];
    for (text, told) in cases {
        assert_eq!(Site::parse(text).unwrap_err().to_string(), told, "{text}");
    }
}
