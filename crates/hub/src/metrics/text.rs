//! Prometheus's text format, version 0.0.4.

use std::fmt::{Display, Write};

/// A page under construction: families of metrics in sequence, each begun with [`Text::family`].
#[derive(Default)]
pub(super) struct Text {
    out: String,
    name: &'static str,
}

impl Text {
    /// Begins a family: its name, its type (`counter`, `gauge`, `histogram`) and its help text.
    pub(super) fn family(&mut self, name: &'static str, kind: &str, help: &str) -> &mut Text {
        self.name = name;
        let _ = writeln!(self.out, "# HELP {name} {}\n# TYPE {name} {kind}", help.replace('\\', "\\\\").replace('\n', "\\n"));
        self
    }

    /// Writes one series of the family.
    pub(super) fn value(&mut self, labels: &[(&str, &str)], value: impl Display) -> &mut Text {
        self.series("", labels, value)
    }

    fn series(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) -> &mut Text {
        let _ = write!(self.out, "{}{suffix}", self.name);
        for (number, (name, value)) in labels.iter().enumerate() {
            let _ = write!(self.out, "{}{name}=\"", if number == 0 { '{' } else { ',' });
            for character in value.chars() {
                match character {
                    '\\' => self.out.push_str("\\\\"),
                    '"' => self.out.push_str("\\\""),
                    '\n' => self.out.push_str("\\n"),
                    other => self.out.push(other),
                }
            }
            self.out.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.out, "{end} {value}");
        self
    }

    /// Writes the series of a histogram whose bounds are in microseconds; there is one count more than bounds.
    pub(super) fn histogram(&mut self, labels: &[(&str, &str)], bounds_us: &[u64], counts: &[u64], sum_us: u64) {
        let mut total = 0;
        for (number, count) in counts.iter().enumerate() {
            total += count;
            let bound = bounds_us.get(number).map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
            self.series("_bucket", &[labels, &[("le", &bound)]].concat(), total);
        }
        self.series("_sum", labels, seconds(sum_us)).series("_count", labels, total);
    }

    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// Converts microseconds to seconds.
pub(super) fn seconds(us: u64) -> String {
    (us as f64 / 1e6).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_as_the_format_has_it() {
        let mut text = Text::default();
        text.family("a_total", "counter", "What \\ it\nis.").value(&[("x", "a\"b\\c\nd"), ("y", "")], 1);
        text.family("h", "histogram", "H.").histogram(&[], &[1000, 2_500_000], &[1, 2, 3], 1_500_000);
        assert_eq!(
            text.finish(),
            "# HELP a_total What \\\\ it\\nis.\n# TYPE a_total counter\na_total{x=\"a\\\"b\\\\c\\nd\",y=\"\"} 1\n\
             # HELP h H.\n# TYPE h histogram\nh_bucket{le=\"0.001\"} 1\nh_bucket{le=\"2.5\"} 3\nh_bucket{le=\"+Inf\"} 6\n\
             h_sum 1.5\nh_count 6\n"
        );
    }
}
