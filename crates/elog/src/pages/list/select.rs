//! `Select` of a list: boxes beside its entries, and the commands for the ticked ones ([`super::super::post::many`]).

use tampu_logbook::{book::Book, entry::Entry};

use crate::pages::{
    access,
    command::PageCommand,
    csrf,
    html::{SafeHtml, put},
    request::BookRequest,
    settings::BookSettings,
};

/// The commands for several entries, in the order of their buttons.
const COMMANDS: [PageCommand; 4] = [PageCommand::Edit, PageCommand::Delete, PageCommand::CopyTo, PageCommand::MoveTo];

/// The state of a list while entries are selected.
pub struct Selection {
    commands: Vec<PageCommand>,
    ticked: bool,
}

/// Returns the commands for several entries that the caller may use in this book.
pub fn commands(request: &BookRequest<'_>) -> Vec<PageCommand> {
    COMMANDS.into_iter().filter(|command| request.may(*command).is_ok()).collect()
}

/// Returns the books to which the caller may copy or move entries.
pub fn targets(request: &BookRequest<'_>, moving: bool) -> tampu_logbook::store::Result<Vec<String>> {
    let may = |book: &Book| {
        book.name != request.book.name
            && request.settings.goes_to(&book.name, moving)
            && access::check(request.caller, book, &BookSettings::of(book), PageCommand::New).is_ok()
    };
    Ok(request.site.books()?.iter().filter(|info| may(&info.book)).map(|info| info.book.name.clone()).collect())
}

impl Selection {
    /// Returns the selection if the address requests one and the caller may use a command with it.
    pub fn of(request: &BookRequest<'_>) -> Option<Selection> {
        let requested = request.query.is_on("select") || request.command() == Some(PageCommand::Select);
        if !requested || request.query.is_on("printable") || request.may(PageCommand::Select).is_err() {
            return None;
        }
        let commands = commands(request);
        (!commands.is_empty()).then(|| Selection { commands, ticked: request.query.get("select") == Some("all") })
    }

    /// Writes the form with its buttons.
    pub(super) fn begin(&self, request: &BookRequest<'_>, out: &mut String) {
        out.push_str("<form class=\"select\" method=\"post\" action=\"./\" enctype=\"multipart/form-data\">\n");
        let query = request.query.without(&["cmd", "id", "select"]);
        let mut hidden = |name: &str, value: &str| put!(out, "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n", name, value);
        hidden(csrf::FIELD, &csrf::token(request.site, request.caller, request.session.as_deref()));
        // The list to return to.
        hidden("redir", &query.written());
        out.push_str("<div class=\"menuframe\">");
        let (to, text) = if self.ticked { ("1", "Tick none") } else { ("all", "Tick all") };
        put!(out, "<a href=\"{}\">{}</a> ", crate::pages::list::links::here(&query.with("select", to)), text);
        for command in &self.commands {
            let field = match command {
                PageCommand::CopyTo => "destc",
                PageCommand::MoveTo => "destm",
                _ => {
                    put!(out, "<button name=\"cmd\" value=\"{}\">{}</button> ", command.name(), command.name());
                    continue;
                }
            };
            let books = targets(request, *command == PageCommand::MoveTo).unwrap_or_default();
            if books.is_empty() {
                continue;
            }
            put!(out, "<button name=\"cmd\" value=\"{}\">{}</button> ", command.name(), command.name());
            put!(out, "<select name=\"{}\" aria-label=\"{}\">", field, command.name());
            books.iter().for_each(|book| put!(out, "<option>{}</option>", book));
            out.push_str("</select> ");
        }
        put!(out, "<a href=\"{}\">Done</a></div>\n", crate::pages::list::links::here(&query));
    }

    /// Writes the box of an entry. Entries of other books have none.
    pub(super) fn tick(&self, request: &BookRequest<'_>, entry: &Entry, nth: usize, out: &mut String) {
        if entry.at.book != request.book.name {
            out.push_str("<td class=\"tick\"></td>");
            return;
        }
        put!(
            out,
            "<td class=\"tick\"><input type=\"checkbox\" name=\"s{}\" value=\"{}\" aria-label=\"Entry {}\"{}></td>",
            nth,
            entry.at.id,
            entry.at.id,
            SafeHtml(if self.ticked { " checked" } else { "" })
        );
    }

    /// Writes the end of the form.
    pub(super) fn end(&self, boxes: usize, out: &mut String) {
        put!(out, "<input type=\"hidden\" name=\"nsel\" value=\"{}\">\n</form>\n", boxes);
    }
}
