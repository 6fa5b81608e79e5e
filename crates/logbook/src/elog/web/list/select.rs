//! `Select` of a list: boxes beside its entries, and what can be done with those that are ticked ([`super::super::post::many`]).

use crate::{
    book::Book,
    elog::web::{
        BookAsk, access,
        command::Command,
        csrf,
        html::{Raw, put},
        settings::Settings,
    },
    entry::Entry,
};

/// What can be done with several entries, in the order of the buttons.
const COMMANDS: [Command; 4] = [Command::Edit, Command::Delete, Command::CopyTo, Command::MoveTo];

/// What a list shows while entries are selected.
pub struct Selecting {
    commands: Vec<Command>,
    ticked: bool,
}

/// What the caller may do with several entries of this book.
pub fn commands(ask: &BookAsk<'_>) -> Vec<Command> {
    COMMANDS.into_iter().filter(|command| ask.may(*command).is_ok()).collect()
}

/// The books that the caller may copy or move entries to.
pub fn targets(ask: &BookAsk<'_>) -> crate::store::Result<Vec<String>> {
    let may =
        |book: &Book| book.name != ask.book.name && access::check(ask.caller, book, &Settings::of(book), Command::New).is_ok();
    Ok(ask.site.books()?.iter().filter(|info| may(&info.book)).map(|info| info.book.name.clone()).collect())
}

impl Selecting {
    /// If the address asks for it, and there is something that can be done.
    pub fn of(ask: &BookAsk<'_>) -> Option<Selecting> {
        let asked = ask.query.is_on("select") || ask.command() == Some(Command::Select);
        if !asked || ask.query.is_on("printable") || ask.may(Command::Select).is_err() {
            return None;
        }
        let commands = commands(ask);
        (!commands.is_empty()).then(|| Selecting { commands, ticked: ask.query.get("select") == Some("all") })
    }

    /// The buttons.
    pub(super) fn begin(&self, ask: &BookAsk<'_>, out: &mut String) {
        out.push_str("<form class=\"select\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n");
        let query = ask.query.without(&["cmd", "id", "select"]);
        let mut hidden = |name: &str, value: &str| put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
        hidden(csrf::FIELD, &csrf::token(ask.site, ask.caller));
        // Where one goes back to.
        hidden("redir", &query.written());
        out.push_str("<div class=\"menuframe\">");
        let (to, text) = if self.ticked { ("1", "Tick none") } else { ("all", "Tick all") };
        put!(out, "<a href=\"{}\">{}</a> ", super::here(&query.with("select", to)), text);
        let books = targets(ask).unwrap_or_default();
        for command in &self.commands {
            let field = match command {
                Command::CopyTo => "destc",
                Command::MoveTo => "destm",
                _ => {
                    put!(out, "<button name=\"cmd\" value=\"{}\">{}</button> ", command.name(), command.name());
                    continue;
                }
            };
            if books.is_empty() {
                continue;
            }
            put!(out, "<button name=\"cmd\" value=\"{}\">{}</button> ", command.name(), command.name());
            put!(out, "<select name=\"{}\" aria-label=\"{}\">", field, command.name());
            books.iter().for_each(|book| put!(out, "<option>{}</option>", book));
            out.push_str("</select> ");
        }
        put!(out, "<a href=\"{}\">Done</a></div>\n", super::here(&query));
    }

    /// The box of an entry. Entries of other books are changed there.
    pub(super) fn tick(&self, ask: &BookAsk<'_>, entry: &Entry, nth: usize, out: &mut String) {
        if entry.at.book != ask.book.name {
            out.push_str("<td class=\"tick\"></td>");
            return;
        }
        put!(
            out,
            "<td class=\"tick\"><input type=\"checkbox\" name=\"s{}\" value=\"{}\" aria-label=\"Entry {}\"{}></td>",
            nth,
            entry.at.id,
            entry.at.id,
            Raw(if self.ticked { " checked" } else { "" })
        );
    }

    /// The end of the form.
    pub(super) fn end(&self, boxes: usize, out: &mut String) {
        put!(out, "<input type=\"hidden\" name=\"nsel\" value=\"{}\">\n</form>\n", boxes);
    }
}
