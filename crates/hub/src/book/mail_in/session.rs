//! The conversation with the MTA: LMTP, which is SMTP with an answer for each recipient.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use super::{
    entry::{self, Refusal},
    site::MailInSite,
};

/// Bytes of a command.
const LINE: u64 = 2048;
/// Recipients of one mail.
const RECIPIENTS: usize = 20;

/// A connection.
pub trait Conversation: Read + Write + Send {}
impl<T: Read + Write + Send> Conversation for T {}

/// The recipients of a mail, each a logbook.
#[derive(Default)]
struct Envelope {
    has_sender: bool,
    /// True if it has no sender, as a report about another mail.
    is_report: bool,
    books: Vec<String>,
}

/// Converses until the MTA has ended it.
pub fn converse(site: &MailInSite, with: Box<dyn Conversation>, stopping: &AtomicBool) {
    let mut with = BufReader::new(with);
    // An MTA that breaks off keeps the mail.
    let _ = try_converse(site, &mut with, stopping);
}

fn say(with: &mut BufReader<Box<dyn Conversation>>, text: &str) -> io::Result<()> {
    with.get_mut().write_all(format!("{text}\r\n").as_bytes())?;
    with.get_mut().flush()
}

fn try_converse(site: &MailInSite, with: &mut BufReader<Box<dyn Conversation>>, stopping: &AtomicBool) -> io::Result<()> {
    let longest = site.settings.max_mb << 20;
    say(with, "220 logbook LMTP")?;
    let (mut envelope, mut greeted) = (Envelope::default(), false);
    loop {
        if stopping.load(Ordering::Acquire) {
            return say(with, "421 4.3.2 the logbook ends; the mail is not lost if it is kept");
        }
        let mut line = Vec::new();
        if with.by_ref().take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") {
            return say(with, "500 5.5.2 the command is too long");
        }
        let line = String::from_utf8_lossy(&line).trim_end().to_owned();
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match verb.to_ascii_uppercase().as_str() {
            "LHLO" => {
                (envelope, greeted) = (Envelope::default(), true);
                say(
                    with,
                    &format!(
                        "250-logbook\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n250 SIZE {longest}"
                    ),
                )?;
            }
            "HELO" | "EHLO" => say(with, "500 5.5.1 this is LMTP: say LHLO")?,
            _ if !greeted && !matches!(verb.to_ascii_uppercase().as_str(), "QUIT" | "NOOP" | "RSET") => {
                say(with, "503 5.5.1 say LHLO first")?;
            }
            "MAIL" => {
                let size = rest.split(' ').find_map(|part| part.to_ascii_uppercase().strip_prefix("SIZE=")?.parse::<u64>().ok());
                match path(rest, "FROM:") {
                    None => say(with, "501 5.5.4 write MAIL FROM:<address>")?,
                    Some(_) if size.is_some_and(|size| size > longest) => say(with, &too_long(site))?,
                    Some(from) => {
                        envelope = Envelope { has_sender: true, is_report: from.is_empty(), books: Vec::new() };
                        say(with, "250 2.1.0 ok")?;
                    }
                }
            }
            "RCPT" => {
                let to = path(rest, "TO:").filter(|_| envelope.has_sender);
                match to.map(|to| (site.settings.book_of(&to), to)) {
                    None => say(with, "503 5.5.1 write MAIL FROM:<address> first, then RCPT TO:<address>")?,
                    Some(_) if envelope.books.len() >= RECIPIENTS => say(with, "452 4.5.3 too many recipients")?,
                    Some((Some(book), _)) => {
                        envelope.books.push(book.to_owned());
                        say(with, "250 2.1.5 ok")?;
                    }
                    Some((None, to)) => {
                        let to = to.escape_debug();
                        say(
                            with,
                            &format!("550 5.1.1 {to} is no logbook: [mail.in] books of the hub's configuration names them"),
                        )?;
                    }
                }
            }
            "DATA" if envelope.books.is_empty() => say(with, "503 5.5.1 no valid recipients")?,
            "DATA" => {
                say(with, "354 end with a line that is a dot")?;
                let text = read_text(with, longest)?;
                let Envelope { books, is_report, .. } = std::mem::take(&mut envelope);
                for book in books {
                    let done = match &text {
                        None => Err(Refusal::Never(too_long(site)[10..].to_owned())),
                        Some(_) if is_report => Err(Refusal::Never("a report about another mail is no entry".to_owned())),
                        Some(text) => entry::post(site, &book, text),
                    };
                    say(with, &answer(&done))?;
                }
            }
            "RSET" => {
                envelope = Envelope::default();
                say(with, "250 2.0.0 ok")?;
            }
            "NOOP" => say(with, "250 2.0.0 ok")?,
            "VRFY" => say(with, "252 2.5.2 try to deliver")?,
            "QUIT" => return say(with, "221 2.0.0 bye"),
            _ => say(with, "502 5.5.1 this command is not known")?,
        }
    }
}

fn too_long(site: &MailInSite) -> String {
    format!("552 5.3.4 the mail is longer than {} MiB ([mail.in] max_mb)", site.settings.max_mb)
}

fn answer(done: &Result<String, Refusal>) -> String {
    // An answer is one line.
    let line = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect::<String>();
    match done {
        Ok(what) => format!("250 2.0.0 {}", line(what)),
        Err(Refusal::Never(why)) => format!("550 5.7.1 {}", line(why)),
        Err(Refusal::NotNow(why)) => format!("451 4.3.0 {}", line(why)),
    }
}

/// Returns the address of `FROM:<address>` or `TO:<address>`, without angle brackets.
fn path(text: &str, begin: &str) -> Option<String> {
    let head = text.get(..begin.len())?;
    let rest = text[begin.len()..].trim_start().strip_prefix('<').filter(|_| head.eq_ignore_ascii_case(begin))?;
    rest.split_once('>').map(|(address, _)| address.to_owned())
}

/// Reads a text to its last line, a dot. Returns `None` if it is too long; it is then read to its end all the same.
fn read_text(with: &mut BufReader<Box<dyn Conversation>>, longest: u64) -> io::Result<Option<Vec<u8>>> {
    let (mut text, mut is_whole, mut begins) = (Vec::new(), true, true);
    loop {
        let mut line = Vec::new();
        // A line without an end comes in pieces.
        if with.by_ref().take(64 << 10).read_until(b'\n', &mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if begins && matches!(line.as_slice(), b".\r\n" | b".\n") {
            return Ok(is_whole.then_some(text));
        }
        let part = if begins && line.starts_with(b".") { &line[1..] } else { &line[..] };
        begins = line.ends_with(b"\n");
        is_whole &= text.len() as u64 + part.len() as u64 <= longest;
        if is_whole {
            text.extend_from_slice(part);
        } else {
            text.clear();
        }
    }
}
