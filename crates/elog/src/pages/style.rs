//! Styles and images: one file of this program, and those that a configuration adds, from the directory of themes or from
//! the import. No other file can be read.

use std::{fs, path::Path};

use http::{
    StatusCode,
    header::{self, HeaderValue},
};

use crate::{
    pages::{
        response::{self, LoggedFailure, Response},
        settings::BookSettings,
        site::Site,
    },
    site_files,
};

/// The style sheet of this program.
const OWN: &str = include_str!("elog.css");
/// Bytes of a file of styles.
const MAX_STYLE: u64 = 1 << 20;
const KIND: &str = "text/css; charset=utf-8";

/// Returns the style files that a book adds, by name: those of `CSS`, and its theme's.
pub fn of_book(settings: &BookSettings) -> Vec<String> {
    let theme = settings.theme();
    let mut names: Vec<String> = Vec::new();
    if theme != "default" && is_name(theme) {
        names.push(format!("theme-{theme}.css"));
    }
    names.extend(site_files::styles(settings.css()));
    names.retain(|name| name != "elog.css" && name != "default.css" && is_name(name) && name.ends_with(".css"));
    names
}

/// Returns whether a name stays in its directory.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Answers with `elog.css`, or with a file of the site: `<themes>/<name>`, or for `theme-dark.css`
/// `<themes>/dark/elog.css`.
pub fn answer(site: &Site, name: &str) -> Response {
    if matches!(name, "elog.css" | "default.css") {
        return cached(response::with_bytes(StatusCode::OK, KIND, OWN.as_bytes().to_vec()));
    }
    let theme = name.strip_prefix("theme-").and_then(|name| name.strip_suffix(".css")).filter(|theme| is_name(theme));
    let found = site.config.themes.as_deref().filter(|_| is_name(name)).and_then(|themes| {
        let of_theme =
            theme.and_then(|theme| ["elog.css", "default.css"].iter().find_map(|file| read(&themes.join(theme).join(file))));
        of_theme.or_else(|| read(&themes.join(name))).or_else(|| read(&themes.join("default").join(name)))
    });
    // Without a file in the directory of themes, the one that the import has stored.
    let found = found.or_else(|| site.file(name).ok().flatten());
    match found {
        Some(bytes) => cached(response::with_bytes(StatusCode::OK, KIND, bytes)),
        // A theme without a file looks like the default one; a missing file would be an error in every page of a browser.
        None if theme.is_some() => cached(response::with_bytes(StatusCode::OK, KIND, Vec::new())),
        None => response::bare(StatusCode::NOT_FOUND, "There is no such file of styles"),
    }
}

/// Answers with an image that the configuration names.
pub fn image(site: &Site, name: &str) -> Response {
    let kind = match name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        _ => "image/jpeg",
    };
    match site.file(name) {
        Ok(Some(bytes)) => cached(response::with_bytes(StatusCode::OK, kind, bytes)),
        Ok(None) => response::bare(StatusCode::NOT_FOUND, "The import has found no image of this name"),
        Err(error) => {
            let mut answer = response::bare(StatusCode::INTERNAL_SERVER_ERROR, "The image cannot be read");
            answer.extensions_mut().insert(LoggedFailure(error.to_string()));
            answer
        }
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
