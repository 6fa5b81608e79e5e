//! Curves as SVG: points with the error of the mean, straight lines through the origin, axes with round numbers. It has
//! only the features that a bench needs; a library for charts would be larger than the bench.

use std::fmt::Write;

#[derive(Debug, Clone)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// Colour in the notation of SVG.
    pub colour: String,
    /// x, y, and the error of y.
    pub points: Vec<(f64, f64, f64)>,
    /// If true, the best straight line through the origin by least squares, instead of lines from point to point.
    pub line: bool,
}

#[derive(Debug, Clone)]
pub struct Axis {
    /// Name of the quantity.
    pub name: String,
    /// True if its steps multiply.
    pub log: bool,
}

impl Axis {
    /// Creates an axis that begins at 0.
    pub fn linear(name: &str) -> Axis {
        Axis { name: name.to_owned(), log: false }
    }

    /// Creates an axis whose steps are powers of two.
    pub fn log(name: &str) -> Axis {
        Axis { name: name.to_owned(), log: true }
    }
}

#[derive(Debug, Clone)]
pub struct Chart {
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    pub y: Axis,
    /// Curves to draw.
    pub series: Vec<Series>,
}

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 440.0;
/// Left, top, right, bottom.
const MARGIN: [f64; 4] = [80.0, 40.0, 20.0, 60.0];
const TICKS: f64 = 6.0;

/// Converts values to positions.
struct Scale {
    log: bool,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn new(log: bool, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        // Without a value any scale is valid.
        let low = if low.is_finite() { low } else { 1.0 };
        if log {
            let (low, high) = (low.max(f64::MIN_POSITIVE).log2().floor(), high.max(f64::MIN_POSITIVE).log2().ceil());
            return Scale { log, low, high: high.max(low + 1.0), from, to };
        }
        Scale { log, low: 0.0, high: if high > 0.0 { high * 1.05 } else { 1.0 }, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log2() } else { value };
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn ticks(&self) -> Vec<f64> {
        if self.log {
            let step = ((self.high - self.low) / TICKS).ceil().max(1.0) as usize;
            return (self.low as i32..=self.high as i32).step_by(step).map(|power| f64::from(power).exp2()).collect();
        }
        let rough = self.high / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
        (0..).map(|count| f64::from(count) * step).take_while(|tick| *tick <= self.high).collect()
    }
}

/// `64 K`, `1 M` for powers of two, else a short number.
fn label(value: f64, log: bool) -> String {
    let binary = [(1u64 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    if log {
        let fitting = binary.into_iter().find(|(unit, _)| value >= *unit as f64);
        return fitting.map_or_else(|| format!("{value}"), |(unit, name)| format!("{} {name}", value / unit as f64));
    }
    if value >= 1e6 { format!("{} M", value / 1e6) } else { format!("{}", (value * 1e6).round() / 1e6) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Chart {
    /// Returns the SVG file.
    pub fn render(&self) -> String {
        let [left, top, right, bottom] = MARGIN;
        let all = || self.series.iter().flat_map(|series| series.points.iter());
        let x = Scale::new(self.x.log, all().map(|point| point.0), left, WIDTH - right);
        let y = Scale::new(self.y.log, all().map(|point| point.1 + point.2), HEIGHT - bottom, top);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
        );
        let text = |svg: &mut String, at: (f64, f64), anchor: &str, what: &str| {
            // Writing to a string does not fail.
            let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>", at.0, at.1, escaped(what));
        };
        let line = |svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str| {
            let _ =
                writeln!(svg, "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" {style}/>", from.0, from.1, to.0, to.1);
        };
        let (floor, edge) = (HEIGHT - bottom, WIDTH - right);
        for tick in x.ticks() {
            let at = x.place(tick);
            line(&mut svg, (at, floor), (at, top), "stroke=\"#ddd\"");
            text(&mut svg, (at, floor + 18.0), "middle", &label(tick, self.x.log));
        }
        for tick in y.ticks() {
            let at = y.place(tick);
            line(&mut svg, (left, at), (edge, at), "stroke=\"#ddd\"");
            text(&mut svg, (left - 8.0, at + 4.0), "end", &label(tick, self.y.log));
        }
        line(&mut svg, (left, floor), (edge, floor), "stroke=\"black\"");
        line(&mut svg, (left, floor), (left, top), "stroke=\"black\"");
        text(&mut svg, ((left + edge) / 2.0, HEIGHT - 16.0), "middle", &self.x.name);
        text(&mut svg, (left, top - 8.0), "end", &self.y.name);
        text(&mut svg, (WIDTH / 2.0, 20.0), "middle", &self.title);
        for (number, series) in self.series.iter().enumerate() {
            let style = format!("stroke=\"{}\" fill=\"none\"", escaped(&series.colour));
            if let Some(slope) = series.slope().filter(|_| series.line && !self.x.log && !self.y.log) {
                let end = series.points.iter().map(|point| point.0).fold(0.0, f64::max);
                line(&mut svg, (x.place(0.0), y.place(0.0)), (x.place(end), y.place(slope * end)), &style);
            } else {
                let places: Vec<String> =
                    series.points.iter().map(|point| format!("{:.1},{:.1}", x.place(point.0), y.place(point.1))).collect();
                let _ = writeln!(svg, "<polyline points=\"{}\" {style}/>", places.join(" "));
            }
            for (value, result, error) in &series.points {
                let (at, low, high) = (x.place(*value), y.place(result - error), y.place(result + error));
                line(&mut svg, (at, low), (at, high), &style);
                for end in [low, high] {
                    line(&mut svg, (at - 4.0, end), (at + 4.0, end), &style);
                }
                let _ = writeln!(svg, "<circle cx=\"{at:.1}\" cy=\"{:.1}\" r=\"3.5\" {style}/>", y.place(*result));
            }
            let row = top + 16.0 + 18.0 * number as f64;
            line(&mut svg, (left + 12.0, row - 4.0), (left + 36.0, row - 4.0), &style);
            text(&mut svg, (left + 42.0, row), "start", &series.name);
        }
        svg.push_str("</svg>\n");
        svg
    }
}

impl Series {
    /// Returns the slope of the best straight line through the origin, by least squares.
    pub fn slope(&self) -> Option<f64> {
        let squares: f64 = self.points.iter().map(|point| point.0 * point.0).sum();
        (squares > 0.0).then(|| self.points.iter().map(|point| point.0 * point.1).sum::<f64>() / squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_each_point_with_its_error_and_escapes_names() {
        let series = Series {
            name: "a<b".to_owned(),
            colour: "#000".to_owned(),
            points: vec![(4096.0, 10.0, 1.0), (65536.0, 20.0, 2.0)],
            line: false,
        };
        let chart = Chart { title: "t".to_owned(), x: Axis::log("bytes"), y: Axis::linear("MB/s"), series: vec![series] };
        let svg = chart.render();
        assert_eq!((svg.matches("<circle").count(), svg.matches("<polyline").count()), (2, 1));
        assert!(svg.contains("a&lt;b") && svg.contains(">4 K<") && svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }

    #[test]
    fn places_and_ticks_are_in_order() {
        let scale = Scale::new(false, [3.0, 95.0].into_iter(), 0.0, 100.0);
        assert_eq!(scale.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!(scale.place(0.0) == 0.0 && scale.place(95.0) < 100.0);
        let scale = Scale::new(true, [4096.0, 65536.0].into_iter(), 0.0, 100.0);
        assert_eq!((scale.place(4096.0), scale.place(65536.0)), (0.0, 100.0));
        // A chart without values does not fail.
        assert!(!Scale::new(true, std::iter::empty(), 0.0, 1.0).place(1.0).is_nan());
    }
}
