//! The digest of the content of an entry.

use sha2::{Digest, Sha256};

use super::fields::Fields;
use crate::{attachment::hex, entry::Content};

/// The first field of the bytes of a content.
const CONTENT: &str = "tampu-content-1";

/// Returns the bytes of a content of which the digest is made.
pub fn content_bytes(content: &Content) -> Vec<u8> {
    let Content { attributes, encoding, text, attachments, links } = content;
    let mut fields = Fields::default();
    fields.add(CONTENT).add(encoding.name()).add(text).count(attributes.len());
    for attribute in attributes {
        fields.add(&attribute.name).count(attribute.values.len());
        attribute.values.iter().for_each(|value| {
            fields.add(value);
        });
    }
    fields.count(attachments.len());
    for file in attachments {
        let sha = file.sha.as_ref().map_or("", |sha| sha.as_str());
        fields.add(&file.name).add(sha).add(&file.size.to_string()).add(file.elog.as_deref().unwrap_or_default());
    }
    fields.count(links.len());
    for link in links {
        fields.add(&link.to_string());
    }
    fields.0
}

/// Returns the digest of a content in hexadecimal digits.
pub fn content_digest(content: &Content) -> String {
    hex(&Sha256::digest(content_bytes(content)))
}
