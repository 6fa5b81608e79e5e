//! Pictures for a PDF: read within limits, and reduced to what a page can show.

use std::io::{BufRead, Cursor, Seek};

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits, metadata::Orientation};

/// Pixels of a side of a picture that is read.
const MAX_SIDE: u32 = 16_384;
/// Bytes of memory for reading a picture.
const MAX_BYTES: u64 = 128 << 20;
/// Pixels of a side of a picture in a PDF: about 180 an inch on a page.
const SIDE: u32 = 1200;
/// Pixels of a side after the first [`LARGE`] pictures, because the typesetter holds all of them in memory.
const SMALL_SIDE: u32 = 600;
/// The number of pictures that are shown in the larger size.
const LARGE: usize = 40;

/// Returns a picture as JPEG or PNG of a bounded size. `number` is that of the picture in its document. An error is the
/// reason for the reader.
pub fn reduced(bytes: Vec<u8>, number: usize) -> Result<Vec<u8>, String> {
    let side = if number < LARGE { SIDE } else { SMALL_SIDE };
    let wrong = |error: image::ImageError| format!("it is damaged or too large ({error})");
    let mut reader = ImageReader::new(Cursor::new(&bytes)).with_guessed_format().map_err(|error| error.to_string())?;
    let format = reader.format();
    let known = [ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Gif, ImageFormat::WebP];
    if !format.is_some_and(|format| known.contains(&format)) {
        return Err("it is no JPEG, PNG, GIF or WebP picture".to_owned());
    }
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height, limits.max_alloc) = (Some(MAX_SIDE), Some(MAX_SIDE), Some(MAX_BYTES));
    reader.limits(limits);
    let (picture, orientation) = decoded(reader)?;
    let is_small = picture.width() <= side && picture.height() <= side;
    if is_small && orientation == Orientation::NoTransforms && matches!(format, Some(ImageFormat::Jpeg | ImageFormat::Png)) {
        return Ok(bytes);
    }
    let mut picture = if is_small { picture } else { picture.thumbnail(side, side) };
    picture.apply_orientation(orientation);
    let mut out = Cursor::new(Vec::new());
    let kind = if format == Some(ImageFormat::Jpeg) { ImageFormat::Jpeg } else { ImageFormat::Png };
    // A channel of opacity that is full everywhere would be a second picture in the PDF.
    if kind == ImageFormat::Png && picture.color().has_alpha() {
        picture.to_rgba8().write_to(&mut out, kind).map_err(wrong)?;
    } else {
        picture.to_rgb8().write_to(&mut out, kind).map_err(wrong)?;
    }
    Ok(out.into_inner())
}

fn decoded<R: BufRead + Seek>(reader: ImageReader<R>) -> Result<(DynamicImage, Orientation), String> {
    let wrong = |error: image::ImageError| format!("it is damaged or too large ({error})");
    let mut decoder = reader.into_decoder().map_err(wrong)?;
    // A decoder checks the limits of its own memory only.
    if decoder.total_bytes() > MAX_BYTES {
        return Err(format!("it has more than {} MiB of pixels", MAX_BYTES >> 20));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder).map_err(wrong)?, orientation))
}
