//! Small pictures of attached ones: JPEG, PNG, GIF and WebP, of bounded size, the last ones kept. That a file is none, or cannot be read, is
//! remembered as well. Whoever makes one has a turn for it ([`super::turns::PICTURES`]), because it may take much memory.

use std::{
    collections::HashMap,
    io::{BufReader, Cursor},
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use image::{ImageFormat, ImageReader, Limits};
use tampu_logbook::attachment::{ReadSeek, Sha};

/// Pixels of a side of a picture that is read.
pub const MAX_SIDE: u32 = 16_384;
/// Bytes that reading one may take.
pub const MAX_BYTES: u64 = 128 << 20;
/// Pixels of a side of a preview.
pub const MAX_PREVIEW: u32 = 1024;
/// Bytes of previews that are kept.
pub const CACHE: usize = 16 << 20;

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPreview {
    /// It is no picture of these kinds.
    #[error("it is no JPEG, PNG, GIF or WebP")]
    Kind,
    /// It is broken, or too large.
    #[error("the picture cannot be shown small: {0}")]
    Picture(String),
    /// The file could not be read; perhaps it can be another time.
    #[error("the file could not be read: {0}")]
    File(String),
}

/// A preview, or that there never is one.
type Made = Result<Bytes, NoPreview>;

/// Bytes that count for one that there never is.
const NONE: usize = 256;

#[derive(Debug, Default)]
struct Cache {
    kept: HashMap<(Sha, u32), (Made, u64)>,
    bytes: usize,
    turn: u64,
}

/// Makes them and keeps some.
#[derive(Debug, Default)]
pub struct Previews {
    cache: Mutex<Cache>,
}

/// Pixels of a side that are made for who asks for so many.
fn side(asked: u32) -> u32 {
    asked.clamp(16, MAX_PREVIEW)
}

fn size(made: &Made) -> usize {
    made.as_ref().map_or(NONE, Bytes::len)
}

impl Previews {
    /// A PNG of at most so many pixels a side.
    pub fn of<F: ReadSeek>(&self, sha: &Sha, asked: u32, open: impl FnOnce() -> Result<F, NoPreview>) -> Made {
        // Somebody may have made it while one waited for a turn.
        if let Some(found) = self.kept(sha, asked) {
            return found;
        }
        let made = open().and_then(|file| make(file, side(asked)));
        if !matches!(made, Err(NoPreview::File(_))) {
            self.keep((sha.clone(), side(asked)), made.clone());
        }
        made
    }

    /// One that was made, or that was found to be impossible.
    pub fn kept(&self, sha: &Sha, asked: u32) -> Option<Made> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.turn += 1;
        let turn = cache.turn;
        let (made, used) = cache.kept.get_mut(&(sha.clone(), side(asked)))?;
        *used = turn;
        Some(made.clone())
    }

    fn keep(&self, key: (Sha, u32), made: Made) {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
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
        // A picture that ends before its end is broken; anything else is the file's.
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
    // Whatever the picture's own depth is, browsers show this.
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
        // A head that promises more pixels than there may be.
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
        assert!(previews.cache.lock().unwrap().bytes == first.len());
        // So is that there is none; but not that it could not be looked at.
        let none = || Ok(file(b"no picture"));
        for open in [none as fn() -> _, || panic!("it is known")] {
            assert_eq!(previews.of(&sha(2), 100, open), Err(NoPreview::Kind));
        }
        assert_eq!(
            previews.of(&sha(3), 100, || Err::<Cursor<Vec<u8>>, _>(NoPreview::File("gone".into()))).map(drop),
            Err(NoPreview::File("gone".into()))
        );
        assert!(previews.of(&sha(3), 100, open(3)).is_ok());
        assert!(previews.cache.lock().unwrap().bytes > first.len() + NONE);
    }
}
