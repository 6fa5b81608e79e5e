//! The page that explains the use of a book.

use http::StatusCode;

use crate::pages::{
    layout::{self, BookPage},
    request::BookRequest,
    response::{self, Response},
    tabs,
};

/// Answers with the help page.
pub fn help(request: &BookRequest<'_>) -> Response {
    if let Some(url) = request.settings.help_url().filter(|url| tabs::is_web(url)) {
        return response::redirect(&if url.contains("://") { url.to_owned() } else { request.address(url) });
    }
    let mut body = layout::menu(request, None);
    body.push_str(
        "<div class=\"help\"><h1>Help</h1>\n\
         <p><b>Find</b> searches. What is typed into a field is a regular expression: <code>HV.*trip</code> finds HV, anything, trip; \
         a point stands for any character, <code>\\.</code> for a point.</p>\n\
         <p>The addresses of lists and searches can be kept as bookmarks: <code>page3</code>, <code>last20</code> (entries), \
         <code>past7</code> (days), <code>?Author=Quartz&amp;mode=full</code>, <code>?subtext=trip&amp;last=31</code>.</p>\n\
         <p>Texts are plain, ELCode (<code>[b]bold[/b]</code>, <code>elog:12</code> leads to entry 12) or HTML.</p></div>\n",
    );
    BookPage::new(request, "Help", body).answer(StatusCode::OK)
}
