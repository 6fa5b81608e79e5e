//! Holds the words that people read to the project's English (CONTRIBUTING.md, "Plain English").
//!
//! A doc comment begins with a noun phrase for a thing, or a verb in the third person for a function. One that begins with `what`, `who` or `whether`
//! makes a reader look for the noun, and one of two words says nothing that the name does not say.
//! The same holds for the pages under `docs/` and the README, whose lines and sentences have a bound as well.

use std::path::Path;

#[path = "support/source.rs"]
mod source;

/// Words that open a question or a clause without a noun.
const OPENERS: [&str; 16] = [
    "who",
    "whom",
    "whose",
    "whoever",
    "what",
    "whatever",
    "whichever",
    "how",
    "whether",
    "where",
    "wherever",
    "which",
    "why",
    "when",
    "whenever",
    "whomever",
];

/// The most columns of a line of a page, tables, links and code aside.
const COLUMNS: usize = 120;

/// The most words of a sentence of a page.
const WORDS: usize = 25;

/// Names that the product once had for its own parts, with the word to use.
const METAPHORS: [(&str, &str); 10] = [
    ("refuge", "overflow files"),
    ("librarian", "refetch server"),
    ("shelf", "book row"),
    ("reception", "authentication"),
    ("sieve", "filter"),
    ("let in", "admit or authenticate"),
    ("give up on", "drop or end"),
    ("nobody's", "without an owner"),
    ("graver", "more severe"),
    ("whoever", "a noun"),
];

struct Doc {
    line: usize,
    text: String,
}

/// The doc comments of a source file: `///` and `//!` in Rust, `/** */` in C.
fn docs(text: &str) -> Vec<Doc> {
    let (mut found, mut open): (Vec<Doc>, Option<(&str, usize, String)>) = (Vec::new(), None);
    let mut block = false;
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        let marker = if block {
            Some(("*", trimmed.trim_start_matches('*')))
        } else if let Some(rest) = trimmed.strip_prefix("/**").filter(|rest| !rest.starts_with(['*', '/'])) {
            block = true;
            Some(("*", rest))
        } else {
            let rust = ["///", "//!"].into_iter().find(|marker| trimmed.starts_with(marker) && !trimmed.starts_with("////"));
            rust.map(|marker| (marker, &trimmed[3..]))
        };
        let ends = block && trimmed.contains("*/");
        match (marker, &mut open) {
            (Some((marker, rest)), Some((kind, _, text))) if *kind == marker => {
                text.push('\n');
                text.push_str(rest.split("*/").next().unwrap_or_default().trim());
            }
            (marker, open) => {
                found.extend(open.take().map(|(_, line, text)| Doc { line, text }));
                *open =
                    marker.map(|(kind, rest)| (kind, number + 1, rest.split("*/").next().unwrap_or_default().trim().to_owned()));
            }
        }
        if ends {
            block = false;
            found.extend(open.take().map(|(_, line, text)| Doc { line, text }));
        }
    }
    found.extend(open.map(|(_, line, text)| Doc { line, text }));
    found
}

/// The first word in lower case, without marks before it, and whether the first sentence asks.
fn opens_with_a_question_word(text: &str) -> bool {
    let bare = text.trim_start_matches(|character: char| !character.is_alphanumeric());
    let first: String = bare.chars().take_while(|character| character.is_alphanumeric()).collect::<String>().to_lowercase();
    let sentence = sentences(text).into_iter().next().unwrap_or_default();
    OPENERS.contains(&first.as_str()) && !sentence.ends_with('?')
}

fn sentences(text: &str) -> Vec<String> {
    let flat = text.split_whitespace().collect::<Vec<_>>();
    let (mut found, mut now) = (Vec::new(), Vec::new());
    for word in flat {
        now.push(word);
        if word.trim_end_matches(['"', ')', '*', '`']).ends_with(['.', '!', '?', ':', ';'])
            && !["e.g.", "i.e.", "etc."].contains(&word)
        {
            found.push(now.join(" "));
            now.clear();
        }
    }
    if !now.is_empty() {
        found.push(now.join(" "));
    }
    found
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    let mut wrong = Vec::new();
    for folder in source::crates() {
        for file in source::files(&folder, &["rs", "h", "hpp"]) {
            let text = std::fs::read_to_string(&file).unwrap();
            for Doc { line, text } in docs(&text).into_iter().filter(|doc| !doc.text.trim().is_empty()) {
                let words = text.split_whitespace().count();
                if opens_with_a_question_word(&text) {
                    wrong.push(format!("{}:{line}: opens with a question word: {text}", file.display()));
                } else if words <= 2 && !text.trim().starts_with(['#', '`']) {
                    wrong.push(format!("{}:{line}: of two words at most: {text}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} docs to write anew:\n{}", wrong.len(), wrong.join("\n"));
}

/// The prose of a page: paragraphs and list items with the line they begin at; without code, tables, headings that ask and comments.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut now: Option<(usize, String)> = None;
    let (mut fenced, mut comment) = (false, false);
    for (number, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.starts_with("```") {
            fenced = !fenced;
            found.extend(now.take());
            continue;
        }
        comment |= trimmed.starts_with("<!--");
        let skip = fenced || comment || trimmed.is_empty() || trimmed.starts_with(['|', '#', '<']);
        if comment && trimmed.contains("-->") {
            comment = false;
        }
        if skip {
            found.extend(now.take());
            continue;
        }
        let numbered = trimmed
            .split_once(". ")
            .filter(|(number, _)| !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()));
        let item = trimmed.strip_prefix("- ").or_else(|| trimmed.strip_prefix("* ")).or(numbered.map(|(_, rest)| rest));
        match (item, &mut now) {
            (None, Some((_, text))) => {
                text.push(' ');
                text.push_str(trimmed);
            }
            (item, now) => {
                found.extend(now.take());
                *now = Some((number + 1, item.unwrap_or(trimmed).to_owned()));
            }
        }
    }
    found.extend(now);
    found
}

fn check_page(name: &str, text: &str, wrong: &mut Vec<String>) {
    for (line, paragraph) in prose(text) {
        let at = format!("{name}:{line}");
        for sentence in sentences(&paragraph) {
            if opens_with_a_question_word(&sentence) && !sentence.ends_with(':') {
                let clause = sentence.to_lowercase();
                // "When X, Y does Z" and "Where X, Y does Z" are whole sentences.
                if !(clause.starts_with("when") || clause.starts_with("where")) || !clause.contains(',') {
                    wrong.push(format!("{at}: opens with a question word: {sentence}"));
                }
            }
            let words = sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count();
            if words > WORDS {
                wrong.push(format!("{at}: a sentence of {words} words, {WORDS} are allowed: {sentence}"));
            }
        }
        let lower = paragraph.to_lowercase();
        for (word, better) in METAPHORS {
            if lower
                .split(|character: char| !character.is_alphanumeric() && character != ' ' && character != '\'')
                .any(|part| format!(" {part} ").contains(&format!(" {word} ")))
            {
                wrong.push(format!("{at}: '{word}' (say: {better})"));
            }
        }
    }
    let mut fenced = false;
    for (number, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let free = fenced || line.trim_start().starts_with(['|', '<', '[']) || line.contains("](");
        if !free && line.chars().count() > COLUMNS {
            wrong.push(format!("{name}:{}: {} columns, {COLUMNS} are allowed", number + 1, line.chars().count()));
        }
    }
}

/// Pages that a program writes: their rows come from texts that are checked where they are written.
const GENERATED: [&str; 1] = ["docs/reference/commands.md"];

#[test]
fn pages_for_users_keep_the_rules_of_english() {
    let root = source::root();
    let mut pages = source::files(&root.join("docs"), &["md"]);
    assert!(pages.len() > 10, "the pages are found");
    pages.extend(["README.md", "ARCHITECTURE.md", "spec/GLOSSARY.md"].map(|name| root.join(name)));
    let mut wrong = Vec::new();
    for page in pages {
        let name = page.strip_prefix(&root).unwrap_or(Path::new("")).display().to_string();
        if !GENERATED.contains(&name.as_str()) {
            check_page(&name, &std::fs::read_to_string(&page).unwrap(), &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} places to write anew:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_rules_find_what_they_are_for() {
    let source = "/// Whether it runs.\nfn a() {}\n/// The\n/// hub.\nfn b() {}\n//! Why?\n/** Who asks. */\n/// Returns the name of the hub.\n";
    let found: Vec<(usize, String)> = docs(source).into_iter().map(|doc| (doc.line, doc.text)).collect();
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(opens_with_a_question_word(&found[0].1) && !opens_with_a_question_word(&found[1].1));
    assert!(!opens_with_a_question_word("Why does it fail? Because.") && opens_with_a_question_word("`What` it says."));
    let mut wrong = Vec::new();
    check_page("page", "Whatever blocks holds a worker.\n\n- The librarian waits.\n", &mut wrong);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    wrong.clear();
    check_page("page", &format!("{}\n\nWhen the hub stops, the spool takes over.\n", "word ".repeat(26)), &mut wrong);
    assert_eq!(wrong.len(), 2, "a sentence and a line: {wrong:?}");
}
