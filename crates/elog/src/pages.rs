//! ELOG's HTTP pages: a site's bookmarks, browsers and programs work as before. These functions turn a request into a
//! response; the hub has the sockets, the time limits and the authentication.
//!
//! | subject | module |
//! |-|-|
//! | requests, responses, and the router between them | [`request`], [`response`], `router`, [`refusal`] |
//! | the site and its local time | [`site`], [`clock`] |
//! | targets of addresses | [`address`] |
//! | commands and permissions | [`command`], [`access`], [`hosts`] |
//! | the configuration of a book | [`settings`], [`subst`] |
//! | a search from an address | [`find`], [`ere`], [`paging`], `page_cursors` |
//! | pages | [`books`], [`list`], [`entry`], [`checklist`], [`form`], [`finder`], [`calendar`], [`help`], [`login_form`] |
//! | common parts of pages | [`layout`], [`html`], [`style`], [`values`], [`choice`], `charset`, `tabs`, `smileys`, `words` |
//! | others who edit the same entry | [`editors`] |
//! | accounts of users | [`account`] |
//! | signatures of an entry | [`signing`] |
//! | mails about entries | [`mails`] |
//! | input of forms and programs | [`post`], [`multipart`], [`sent`], [`author`] |
//! | protection against other sites | [`csrf`], [`browser`] |
//! | files, tables, RSS; an entry as PDF | [`formats`]; [`pdf`] |
//!
//! Pages need no scripts. The only [`script`] makes forms more convenient, and the header has its digest. Links between pages are relative, so that a proxy may move the site. `Location` is absolute,
//! because ELOG's clients require that.

pub mod access;
pub mod account;
pub mod address;
pub mod author;
pub mod book_config;
pub mod books;
pub mod browser;
pub mod calendar;
mod charset;
pub mod checklist;
pub mod choice;
pub mod clock;
pub mod command;
pub mod csrf;
pub mod editors;
pub mod entry;
pub mod ere;
pub mod find;
pub mod finder;
pub mod form;
pub mod formats;
pub mod help;
pub mod hosts;
pub mod html;
pub mod layout;
pub mod list;
pub mod login_form;
pub mod mails;
pub mod multipart;
mod numbering;
mod page_cursors;
pub mod paging;
pub mod pdf;
pub mod post;
pub mod refusal;
pub mod request;
pub mod response;
mod router;
pub mod script;
pub mod sent;
pub mod settings;
pub mod signing;
pub mod site;
mod smileys;
pub mod style;
pub mod subst;
mod tabs;
pub mod values;
pub mod visit;
mod words;

pub use clock::Zone;
pub use response::{Body, CarriedOut, EntryShown, LoggedFailure, Response, TooManyChanges};
pub use site::{Site, SiteConfig};
