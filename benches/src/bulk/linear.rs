//! Test whether the time of a block grows linearly with its size.

use super::row::Row;

/// The straight line that fits times best, and the point farthest from it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Seconds that a block costs before its first byte.
    pub base: f64,
    /// Seconds a byte.
    pub slope: f64,
    /// The largest deviation of a point, as a fraction of the line's value there.
    pub deviation: f64,
    /// The size of that point.
    pub at: f64,
}

/// Fits `(size, time)`. Each point is weighted by its own length, because large points would otherwise dominate small
/// ones. Returns `None` for less than three points.
pub fn fit(points: &[(f64, f64)]) -> Option<Line> {
    if points.len() < 3 {
        return None;
    }
    // Least squares of (base + slope * x) / y - 1.
    let sum = |of: fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(*x, *y)).sum::<f64>();
    let (aa, ab, bb) = (sum(|_, y| 1.0 / (y * y)), sum(|x, y| x / (y * y)), sum(|x, y| x * x / (y * y)));
    let (a, b) = (sum(|_, y| 1.0 / y), sum(|x, y| x / y));
    let determinant = aa * bb - ab * ab;
    let (base, slope) = ((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant);
    let deviation = |(x, y): &(f64, f64)| ((y / (base + slope * x) - 1.0).abs(), *x);
    let (deviation, at) = points.iter().map(deviation).max_by(|one, other| one.0.total_cmp(&other.0))?;
    deviation.is_finite().then_some(Line { base, slope, deviation, at })
}

/// Returns the line of a carrier with one receiver.
pub fn of(rows: &[Row], carrier: &str) -> Option<Line> {
    let own = rows.iter().filter(|row| row.carrier.name == carrier && row.receivers == 1);
    let points: Vec<(f64, f64)> = own.map(|row| (row.size as f64, row.size as f64 / row.rate().0)).collect();
    fit(&points)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_is_found_and_who_is_not_on_it() {
        let on = |x: f64| (x, 2e-6 + 1e-9 * x);
        let line = fit(&[on(4096.0), on(65536.0), on(1e6), on(6.4e7)]).unwrap();
        assert!((line.base - 2e-6).abs() < 1e-12 && (line.slope - 1e-9).abs() < 1e-15 && line.deviation < 1e-9, "{line:?}");
        let off = fit(&[on(4096.0), on(65536.0), (1e6, on(1e6).1 * 1.5), on(6.4e7)]).unwrap();
        assert!(off.deviation > 0.1 && off.at == 1e6, "{off:?}");
        assert_eq!(fit(&[on(1.0), on(2.0)]), None);
    }
}
