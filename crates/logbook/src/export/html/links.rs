//! Names of files and folders that every file system can hold, and the addresses in texts that lead to them.

use std::collections::{HashMap, HashSet};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::{
    attachment::{Attachment, reference, stored_name::stored_name},
    entry::Entry,
};

/// Bytes that stay unchanged in an address.
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Bytes of a name on a disk.
const LONGEST: usize = 180;

/// Returns a name as part of an address.
pub fn encoded(name: &str) -> String {
    utf8_percent_encode(name, &KEPT).to_string()
}

/// Returns a name for a file or folder that no file system refuses and that no other has, and adds it to `taken`.
pub fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let mut safe = String::new();
    for c in name.chars() {
        let c = if c.is_control() || "<>:\"/\\|?*".contains(c) { '_' } else { c };
        if safe.len() + c.len_utf8() > LONGEST {
            break;
        }
        safe.push(c);
    }
    let safe = safe.trim_end_matches(['.', ' ']).trim_start();
    // Windows takes these names for devices, whatever the extension.
    let stem = safe.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let is_device = ["con", "prn", "aux", "nul"].contains(&stem.as_str())
        || stem.len() == 4 && (stem.starts_with("com") || stem.starts_with("lpt"));
    let safe = if safe.is_empty() || is_device || safe.starts_with('.') { format!("_{safe}") } else { safe.to_owned() };
    let mut free = safe.clone();
    let mut number = 1;
    while !taken.insert(free.to_lowercase()) {
        number += 1;
        free = match safe.rsplit_once('.') {
            Some((stem, extension)) if !stem.is_empty() => format!("{stem}-{number}.{extension}"),
            _ => format!("{safe}-{number}"),
        };
    }
    free
}

/// The files of an entry in the archive.
pub struct Files {
    /// The name of each file; `None` if its bytes are missing.
    names: Vec<Option<String>>,
    /// The address of a file in the archive, by each address that a text may use for it.
    addresses: Addresses,
    id: u32,
}

impl Files {
    /// Chooses the names of an entry's files.
    pub fn new(entry: &Entry) -> Files {
        let mut taken = HashSet::new();
        let names: Vec<String> =
            entry.content.attachments.iter().map(|attachment| free_name(&attachment.name, &mut taken)).collect();
        let id = entry.at.id;
        let address = |at: usize| names.get(at).map(|name| format!("../files/{id}/{}", encoded(name)));
        let addresses = addresses(&entry.content.attachments, &address);
        Files { names: names.into_iter().map(Some).collect(), addresses, id }
    }

    /// Returns true if the entry has no files.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Marks a file as missing.
    pub fn lose(&mut self, place: usize) {
        if let Some(name) = self.names.get_mut(place) {
            *name = None;
        }
    }

    /// Returns the name of a file; it is empty if the file is missing.
    pub fn name(&self, place: usize) -> &str {
        self.names.get(place).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Returns the address of a file from an entry's page, unless the file is missing.
    pub fn address(&self, place: usize) -> Option<String> {
        let name = self.names.get(place)?.as_deref()?;
        Some(format!("../files/{}/{}", self.id, encoded(name)))
    }

    /// Replaces the addresses of files in sanitised HTML.
    pub fn relinked(&self, html: &str) -> String {
        relinked(html, &self.addresses)
    }
}

/// The address of a file elsewhere, by each address that a text may use for it.
pub type Addresses = HashMap<String, String>;

/// Returns the new addresses of files, of which `address` gives the one at a place.
pub fn addresses(attachments: &[Attachment], address: &dyn Fn(usize) -> Option<String>) -> Addresses {
    let mut out = Addresses::new();
    for (at, attachment) in attachments.iter().enumerate() {
        let Some(address) = address(at) else { continue };
        let of_text = percent_decode_str(&reference::address(attachment)).decode_utf8_lossy().into_owned();
        for known in [stored_name(attachment), of_text, attachment.name.clone()] {
            out.insert(known, address.clone());
        }
    }
    out
}

/// The use of an address in HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressUse {
    /// `src`: a picture is loaded from there.
    Source,
    /// `href`: somebody may go there.
    Link,
}

/// Replaces the addresses of files in sanitised HTML. A relative address of something else leads nowhere.
pub fn relinked(html: &str, addresses: &Addresses) -> String {
    replaced(html, &|_, address| relinked_address(address, addresses))
}

/// Replaces every address in sanitised HTML.
pub fn replaced(html: &str, new: &dyn Fn(AddressUse, &str) -> String) -> String {
    let mut out = String::with_capacity(html.len() + 64);
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        let (text, from) = rest.split_at(at);
        let mut is_quoted = false;
        let end = from.bytes().position(|byte| {
            is_quoted ^= byte == b'"';
            byte == b'>' && !is_quoted
        });
        let (tag, after) = from.split_at(end.map_or(from.len(), |end| end + 1));
        out.push_str(text);
        relink_tag(tag, new, &mut out);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Appends a tag. Names of attributes and their values alternate between the quotation marks.
fn relink_tag(tag: &str, new: &dyn Fn(AddressUse, &str) -> String, out: &mut String) {
    let mut used = None;
    for (at, part) in tag.split('"').enumerate() {
        if at > 0 {
            out.push('"');
        }
        match used.filter(|_| at % 2 == 1) {
            Some(used) => out.push_str(&new(used, part)),
            None => out.push_str(part),
        }
        used = match part {
            part if part.ends_with(" src=") => Some(AddressUse::Source),
            part if part.ends_with(" href=") => Some(AddressUse::Link),
            _ => None,
        };
    }
}

/// Returns what stands for the file that an address leads to, if it leads to one of these.
pub fn of_file<'a>(address: &str, addresses: &'a Addresses) -> Option<&'a String> {
    let bare = address.split(['?', '#']).next().unwrap_or_default();
    let decoded = percent_decode_str(&bare.replace("&amp;", "&")).decode_utf8_lossy().into_owned();
    // The whole address of a page on a server ends as the relative one does.
    let parts: Vec<&str> = decoded.split('/').collect();
    let ends = [2, 1].into_iter().filter_map(|last| parts.len().checked_sub(last));
    ends.map(|from| parts[from..].join("/")).find_map(|end| addresses.get(&end))
}

/// Returns true for an address that means the same on every page.
pub fn is_whole(address: &str) -> bool {
    address.starts_with('#') || address.contains("://") || address.starts_with("mailto:")
}

fn relinked_address(address: &str, addresses: &Addresses) -> String {
    if let Some(known) = of_file(address, addresses) {
        return known.clone();
    }
    let bare = address.split(['?', '#']).next().unwrap_or_default();
    let page = bare.strip_suffix(".html").and_then(|page| page.rsplit('/').next());
    let is_page = page.is_some_and(|page| page.parse::<u32>().is_ok());
    if is_page || is_whole(address) { address.to_owned() } else { "#".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_everywhere_and_stand_once() {
        let mut taken = HashSet::new();
        for (name, free) in [
            ("plot.png", "plot.png"),
            ("Plot.PNG", "Plot-2.PNG"),
            ("a:b?.txt", "a_b_.txt"),
            ("..", "_"),
            ("nul.txt", "_nul.txt"),
            (".profile", "_.profile"),
            ("x. ", "x"),
        ] {
            assert_eq!(free_name(name, &mut taken), free);
        }
        assert!(free_name(&"ä".repeat(300), &mut taken).len() <= LONGEST);
    }
}
