//! How pages look: one file of styles of ours, and what a configuration adds from its own directory. Nothing else can be added.

use std::{fs, path::Path};

use http::{StatusCode, header, header::HeaderValue};

use super::{Response, Site, layout, response, settings::Settings};

/// Ours.
const OWN: &str = include_str!("elog.css");
/// Bytes of a file of styles.
const MAX_STYLE: u64 = 1 << 20;
const KIND: &str = "text/css; charset=utf-8";

/// The files of styles that a book adds, by name: those of `CSS`, and its theme's.
pub fn of_book(settings: &Settings) -> Vec<String> {
    let theme = settings.theme();
    let mut names: Vec<String> = Vec::new();
    if theme != "default" && is_name(theme) {
        names.push(format!("theme-{theme}.css"));
    }
    // `CSS = all&screen.css` names a medium; the file is behind it.
    names.extend(settings.css().iter().map(|css| css.rsplit('&').next().unwrap_or_default().trim().to_owned()));
    names.retain(|name| name != "elog.css" && name != "default.css" && is_name(name) && name.ends_with(".css"));
    names
}

/// A name that leads nowhere else.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// `elog.css`, or one of the site's: `<themes>/<name>`, or for `theme-dark.css` `<themes>/dark/elog.css`.
pub fn answer(site: &Site, name: &str) -> Response {
    if matches!(name, "elog.css" | "default.css") {
        return cached(response(StatusCode::OK, KIND, OWN.as_bytes().to_vec()));
    }
    let theme = name.strip_prefix("theme-").and_then(|name| name.strip_suffix(".css")).filter(|theme| is_name(theme));
    let found = site.config.themes.as_deref().filter(|_| is_name(name)).and_then(|themes| {
        let of_theme =
            theme.and_then(|theme| ["elog.css", "default.css"].iter().find_map(|file| read(&themes.join(theme).join(file))));
        of_theme.or_else(|| read(&themes.join(name))).or_else(|| read(&themes.join("default").join(name)))
    });
    match found {
        Some(bytes) => cached(response(StatusCode::OK, KIND, bytes)),
        // A theme that has no file looks like the default one; a browser is not told of an error in every page.
        None if theme.is_some() => cached(response(StatusCode::OK, KIND, Vec::new())),
        None => layout::bare(StatusCode::NOT_FOUND, "There is no such file of styles"),
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_STYLE { None } else { fs::read(path).ok() }
}

fn cached(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    response
}
