//! Previews of attached pictures: JPEG, PNG, GIF and WebP, of limited size, with a cache. The cache also remembers
//! that a file is not a picture or cannot be read. A preview is made under a permit
//! ([`crate::http::admission::PICTURES`]), because it may take much memory.

use std::{
    collections::HashMap,
    io::{BufReader, Cursor},
};

use bytes::Bytes;
use image::{ImageFormat, ImageReader, Limits};
use parking_lot::Mutex;
use tampu_logbook::attachment::{ReadSeek, Sha};

/// Maximum width and height of a picture in pixels.
pub const MAX_SIDE: u32 = 16_384;
/// Maximum memory for reading a picture, in bytes.
pub const MAX_BYTES: u64 = 128 << 20;
/// Maximum width and height of a preview in pixels.
pub const MAX_PREVIEW: u32 = 1024;
/// Maximum size of the cached previews, in bytes.
pub const CACHE: usize = 16 << 20;

/// Reasons for a missing preview.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPreview {
    /// The file is not a picture of a supported kind.
    #[error("the file is not a JPEG, PNG, GIF or WebP picture")]
    Kind,
    /// The picture is damaged or too large.
    #[error("cannot make a preview of the picture: {0}")]
    Picture(String),
    /// The file could not be read; a later attempt may succeed.
    #[error("the file could not be read: {0}")]
    File(String),
}

/// A preview, or the reason for its absence.
type Made = Result<Bytes, NoPreview>;

/// Size of a missing preview in the cache, in bytes.
const NONE: usize = 256;

#[derive(Debug, Default)]
struct Cache {
    kept: HashMap<(Sha, u32), (Made, u64)>,
    bytes: usize,
    turn: u64,
}

/// Makes previews and caches the most recent ones.
#[derive(Debug, Default)]
pub struct Previews {
    cache: Mutex<Cache>,
}

/// Returns the side of the preview for a requested side.
fn side(asked: u32) -> u32 {
    asked.clamp(16, MAX_PREVIEW)
}

fn size(made: &Made) -> usize {
    made.as_ref().map_or(NONE, Bytes::len)
}

impl Previews {
    /// Returns a PNG of at most `asked` pixels a side.
    pub fn of<F: ReadSeek>(&self, sha: &Sha, asked: u32, open: impl FnOnce() -> Result<F, NoPreview>) -> Made {
        // Another request may have made it while this one waited for its permit.
        if let Some(found) = self.kept(sha, asked) {
            return found;
        }
        let made = open().and_then(|file| make(file, side(asked)));
        if !matches!(made, Err(NoPreview::File(_))) {
            self.keep((sha.clone(), side(asked)), made.clone());
        }
        made
    }

    /// Removes all cached previews.
    pub fn forget_all(&self) {
        *self.cache.lock() = Cache::default();
    }

    /// Returns a cached preview, or the cached reason for its absence.
    pub fn kept(&self, sha: &Sha, asked: u32) -> Option<Made> {
        let mut cache = self.cache.lock();
        cache.turn += 1;
        let turn = cache.turn;
        let (made, used) = cache.kept.get_mut(&(sha.clone(), side(asked)))?;
        *used = turn;
        Some(made.clone())
    }

    fn keep(&self, key: (Sha, u32), made: Made) {
        let mut cache = self.cache.lock();
        cache.bytes += size(&made);
        let turn = cache.turn;
        if let Some((before, _)) = cache.kept.insert(key, (made, turn)) {
            cache.bytes -= size(&before);
        }
        while cache.bytes > CACHE {
            let Some(oldest) = cache.kept.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone()) else { break };
            if let Some((made, _)) = cache.kept.remove(&oldest) {
                cache.bytes -= size(&made);
            }
        }
    }
}

fn make(file: impl ReadSeek, side: u32) -> Result<Bytes, NoPreview> {
    let io = |error: std::io::Error| NoPreview::File(error.to_string());
    let wrong = |error: image::ImageError| match error {
        // A picture that ends early is damaged; any other error is the file's.
        image::ImageError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => io(error),
        error => NoPreview::Picture(error.to_string()),
    };
    let mut reader = ImageReader::new(BufReader::new(file)).with_guessed_format().map_err(io)?;
    let known = [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP];
    if !reader.format().is_some_and(|format| known.contains(&format)) {
        return Err(NoPreview::Kind);
    }
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height, limits.max_alloc) = (Some(MAX_SIDE), Some(MAX_SIDE), Some(MAX_BYTES));
    reader.limits(limits);
    let small = reader.decode().map_err(wrong)?.thumbnail(side, side);
    let mut out = Cursor::new(Vec::new());
    // Browsers show this format; the picture's own depth may differ.
    small.to_rgba8().write_to(&mut out, ImageFormat::Png).map_err(wrong)?;
    Ok(out.into_inner().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: &[u8]) -> Cursor<Vec<u8>> {
        Cursor::new(bytes.to_vec())
    }

    fn picture(format: ImageFormat, width: u32, height: u32) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        image::RgbImage::from_fn(width, height, |x, y| image::Rgb([x as u8, y as u8, 7])).write_to(&mut out, format).unwrap();
        out.into_inner()
    }

    #[test]
    fn pictures_become_small() {
        for format in [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP] {
            let made = make(file(&picture(format, 300, 100)), 60).unwrap();
            let small = image::load_from_memory(&made).unwrap();
            assert_eq!((small.width(), small.height()), (60, 20), "{format:?}");
        }
        assert_eq!(make(file(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), 60), Err(NoPreview::Kind));
        assert_eq!(make(file(b""), 60), Err(NoPreview::Kind));
    }

    #[test]
    fn bombs_and_broken_pictures_are_refused() {
        // A header that claims more pixels than are allowed.
        let mut bomb = picture(ImageFormat::Png, 8, 8);
        bomb[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
        let whole = picture(ImageFormat::Jpeg, 64, 64);
        for bytes in [&bomb[..], &whole[..whole.len() / 3], b"\x89PNG\r\n\x1a\n", b"GIF89a\xff\xff\xff\xff"] {
            assert!(matches!(make(file(bytes), 60), Err(NoPreview::Picture(_))), "{bytes:?}");
        }
    }

    #[test]
    fn the_last_ones_are_kept() {
        let previews = Previews::default();
        let sha = |n: u8| Sha::try_from(format!("{n:064x}")).unwrap();
        let open = |n: u32| move || Ok(file(&picture(ImageFormat::Png, 200 + n, 200)));
        let first = previews.of(&sha(1), 100, open(1)).unwrap();
        let kept = previews.of(&sha(1), 100, || -> Result<Cursor<Vec<u8>>, NoPreview> { panic!("it is kept") }).unwrap();
        assert_eq!(first, kept);
        assert!(previews.cache.lock().bytes == first.len());
        // The cache remembers missing previews, but not read errors.
        let none = || Ok(file(b"no picture"));
        for open in [none as fn() -> _, || panic!("it is known")] {
            assert_eq!(previews.of(&sha(2), 100, open), Err(NoPreview::Kind));
        }
        assert_eq!(
            previews.of(&sha(3), 100, || Err::<Cursor<Vec<u8>>, _>(NoPreview::File("gone".into()))).map(drop),
            Err(NoPreview::File("gone".into()))
        );
        assert!(previews.of(&sha(3), 100, open(3)).is_ok());
        assert!(previews.cache.lock().bytes > first.len() + NONE);
    }
}
