//! Demands on a log call's two decoders for any bytes: they return, a site that was read survives being written and
//! read again, and a payload is rendered or refused without growing beyond its bound.
//!
//! The fuzz target calls this, and so does `crates/text/tests/mutations.rs`, with seeded mutations on the stable
//! toolchain. It is not in `lib.rs`, which the tests of a crate below `tampu-text` include.

use tampu_text::{Rendered, Site, render::RENDERED_MAX};

/// A site's length in two bytes, the site, a payload.
pub fn call(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk() else { return };
    let (site, payload) = rest.split_at(rest.len().min(u16::from_le_bytes(*length).into()));
    if let Ok(text) = std::str::from_utf8(site)
        && let Ok(parsed) = Site::parse(text)
    {
        shown(&parsed, payload);
    }
    let Ok(decoded) = Site::decode(site) else { return };
    let mut again = Vec::new();
    decoded.encode(&mut again);
    assert_eq!(Site::decode(&again).as_ref(), Ok(&decoded));
    shown(&decoded, payload);
}

fn shown(site: &Site, payload: &[u8]) {
    let mut rendered = Rendered::default();
    let done = rendered.render(site, payload);
    let length = rendered.message().len() + rendered.values().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    // Beyond the bound there is at most the piece that reached it: a width, a text with its escapes, or a float's digits.
    assert!(length <= RENDERED_MAX + (1 << 20), "{length} bytes, {done:?}");
}
