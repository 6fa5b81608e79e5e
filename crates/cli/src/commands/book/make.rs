//! `tampu book make`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::Args;
use tampu_logbook::book::{AttributeDef, AttributeKind, Book, same_name};

use super::{
    place::{Place, failed},
    text::shown,
};
use crate::failure::{Failure, Outcome, written};

/// Make a logbook or change its definition; its entries stay
///
/// Of a logbook that is there the attributes named are added or changed and the others stay, unless --replace is said. What was done is reported on standard error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu book make Shift -a Author -a Type=Routine,Problem -a Subject --required Author\n  \
    tampu book make Shift -a Type=Routine,Problem,Fixed\n  \
    tampu book list --json | head -1 > shift.json; tampu book make Shift --definition shift.json")]
pub struct Make {
    /// Name of the new item
    name: String,
    /// An attribute: a line of text, or one of the options after '='; repeatable
    #[arg(short, long = "attribute", value_name = "NAME[=OPTION,OPTION...]", value_parser = attribute)]
    attributes: Vec<AttributeDef>,
    /// An attribute that must have a value; repeatable
    #[arg(long, value_name = "NAME")]
    required: Vec<String>,
    /// An attribute for tags: any number of free labels, which the logbook remembers; repeatable
    #[arg(long, value_name = "NAME")]
    tags: Vec<String>,
    /// An attribute whose values can have several lines; repeatable
    #[arg(long, value_name = "NAME")]
    multi_line: Vec<String>,
    /// An attribute that is computed from others before it, as 'Power== $U * $I' or 'Label=${Run}-$Type'; repeatable
    #[arg(long, value_name = "NAME=RULE", value_parser = computed)]
    computed: Vec<(String, String)>,
    /// Replace the attributes of a logbook that exists, instead of adding to them
    #[arg(long)]
    replace: bool,
    /// Take the whole definition from a JSON file, as 'tampu book list --json' prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["attributes", "required", "tags", "multi_line", "computed", "replace"])]
    definition: Option<PathBuf>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Make {
    pub fn run(self, place: &Place) -> Outcome {
        let wrong = |error: tampu_logbook::book::Invalid| Failure::Usage(error.to_string());
        let attributes = self.all_attributes();
        let plain = attributes.iter().map(|def| AttributeDef { computed: String::new(), ..def.clone() }).collect();
        Book::new(&self.name, plain).check().map_err(wrong)?;
        let store = place.made()?;
        let known =
            store.books().map_err(failed)?.into_iter().map(|info| info.book).find(|book| same_name(&book.name, &self.name));
        let mut book = match &self.definition {
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|error| Failure::failed(path.display(), error))?;
                let book = serde_json::from_str::<Book>(&text).map_err(|error| Failure::failed(path.display(), error))?;
                Book { name: self.name, ..book }
            }
            None => {
                let book = known.clone().unwrap_or_else(|| Book::new(&self.name, vec![]));
                merged(book, attributes, self.replace)
            }
        };
        for name in &self.required {
            let found = book.attributes.iter_mut().find(|attribute| same_name(&attribute.name, name));
            found.ok_or_else(|| Failure::Usage(format!("--required {name}: there is no such attribute")))?.required = true;
        }
        book.check().map_err(wrong)?;
        store.put_book(&book).map_err(failed)?;
        if self.json {
            return written(writeln!(io::stdout().lock(), "{}", serde_json::json!(book)));
        }
        eprintln!("tampu: {}", told(known.as_ref(), &book));
        Ok(())
    }
}

impl Make {
    /// Returns the attributes of all options, those for tags, lines and rules last.
    fn all_attributes(&self) -> Vec<AttributeDef> {
        let mut all = self.attributes.clone();
        all.extend(self.tags.iter().map(|name| AttributeDef::new(name, AttributeKind::Tags)));
        let lines = |name: &String| AttributeDef { multi_line: true, ..AttributeDef::new(name, AttributeKind::Text) };
        all.extend(self.multi_line.iter().map(lines));
        let rule = |(name, rule): &(String, String)| {
            let kind = if rule.starts_with('=') { AttributeKind::Numeric } else { AttributeKind::Text };
            AttributeDef { computed: rule.clone(), ..AttributeDef::new(name, kind) }
        };
        all.extend(self.computed.iter().map(rule));
        all
    }
}

/// Returns the book with these attributes; an existing attribute of the same name keeps the properties that are not
/// named.
fn merged(mut book: Book, attributes: Vec<AttributeDef>, replace: bool) -> Book {
    let mut known = if replace { std::mem::take(&mut book.attributes) } else { vec![] };
    for said in attributes {
        let from = if replace { &mut known } else { &mut book.attributes };
        let found = from.iter_mut().find(|attribute| same_name(&attribute.name, &said.name));
        let Some(was) = found else {
            book.attributes.push(said);
            continue;
        };
        let several = matches!(was.kind, AttributeKind::Options | AttributeKind::Multiple | AttributeKind::Radio);
        let kind = if said.kind == AttributeKind::Options && several { was.kind } else { said.kind };
        let AttributeDef { options, multi_line, computed, .. } = said;
        let is = AttributeDef { kind, options, multi_line, computed, ..was.clone() };
        if replace { book.attributes.push(is) } else { *was = is }
    }
    book
}

/// Describes the change of a logbook.
fn told(was: Option<&Book>, is: &Book) -> String {
    let name = shown(&is.name, false);
    let Some(was) = was else { return format!("made '{name}'") };
    if was == is {
        return format!("'{name}' is as it was");
    }
    let mut parts = Vec::new();
    let mut part = |what: &str, attributes: Vec<&AttributeDef>| {
        if !attributes.is_empty() {
            let names: Vec<String> = attributes.iter().map(|attribute| shown(&attribute.name, false)).collect();
            parts.push(format!("{what} {}", names.join(", ")));
        }
    };
    part("new", is.attributes.iter().filter(|attribute| was.attribute(&attribute.name).is_none()).collect());
    let other = |attribute: &&AttributeDef| was.attribute(&attribute.name).is_some_and(|was| was != *attribute);
    part("other than before", is.attributes.iter().filter(other).collect());
    part("no longer", was.attributes.iter().filter(|attribute| is.attribute(&attribute.name).is_none()).collect());
    if parts.is_empty() {
        return format!("changed '{name}'");
    }
    format!("changed '{name}': {}", parts.join("; "))
}

/// `Power== $U * $I`: a name and the rule after the first `=`.
fn computed(text: &str) -> Result<(String, String), String> {
    let (name, rule) = text.split_once('=').ok_or("write NAME=RULE")?;
    match rule.trim() {
        "" => Err("no rule stands after '='".to_owned()),
        rule => Ok((name.trim().to_owned(), rule.to_owned())),
    }
}

/// `Type=Routine,Problem`, or a name alone.
fn attribute(text: &str) -> Result<AttributeDef, String> {
    let Some((name, options)) = text.split_once('=') else {
        return Ok(AttributeDef::new(text.trim(), AttributeKind::Text));
    };
    let (name, options) = (name.trim(), options.split(',').map(str::trim).collect::<Vec<_>>());
    if options.iter().all(|option| option.is_empty()) {
        return Err(format!("no option stands after '='; for a line of text write '{name}' alone"));
    }
    if options.contains(&"") {
        return Err("an option is empty".to_owned());
    }
    if let Some((_, twice)) = options.iter().enumerate().find(|(at, option)| options[..*at].contains(option)) {
        return Err(format!("the option '{twice}' is there twice"));
    }
    Ok(AttributeDef::with_options(name, AttributeKind::Options, &options))
}
