//! Memory of living spans: the fields of each span, and the path of names to it.

use std::sync::Arc;

use tracing_core::span;

use crate::bridge::{table::Mix, tracing::fields::each_field};

/// Longest path of spans. Beyond it, in a recursion perhaps, deeper spans add nothing to it; their fields count all the same.
const PATH_MAX: usize = 200;

/// The names of nested spans, from the outside in: `observation:scan`. Empty outside of spans.
#[derive(Debug, Clone, Default)]
pub(super) struct Path(Option<Arc<(u64, String)>>);

impl Path {
    fn with(self, name: &str) -> Path {
        let outer = self.text();
        if outer.len() + 1 + name.len() > PATH_MAX {
            return self;
        }
        let text = if outer.is_empty() { name.to_owned() } else { format!("{outer}:{name}") };
        Path(Some(Arc::new((Mix::START.text(&text).hash(), text))))
    }

    /// Returns the path as text.
    pub fn text(&self) -> &str {
        self.0.as_ref().map_or("", |path| &path.1)
    }

    /// The hash of the text, made when the span began.
    pub fn hash(&self) -> u64 {
        self.0.as_ref().map_or(0, |path| path.0)
    }
}

impl PartialEq for Path {
    fn eq(&self, other: &Path) -> bool {
        self.hash() == other.hash() && self.text() == other.text()
    }
}

/// Contribution of a span to the events in it.
pub(super) struct SpanSaid {
    path: Path,
    values: Vec<(&'static str, String)>,
}

impl SpanSaid {
    /// Makes the path of a span within `outer`.
    pub fn new(outer: Path, attributes: &span::Attributes<'_>) -> SpanSaid {
        let mut values = Vec::with_capacity(attributes.fields().len());
        attributes.record(&mut each_field(|name, value| values.push((name, value.to_string()))));
        SpanSaid { path: outer.with(attributes.metadata().name()), values }
    }

    /// Takes values that became known later.
    pub fn learn(&mut self, record: &span::Record<'_>) {
        record.record(&mut each_field(|name, value| match self.values.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value.to_string(),
            None => self.values.push((name, value.to_string())),
        }));
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.values.iter().map(|(name, value)| (*name, value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursion_does_not_lengthen_the_path_for_ever() {
        let deep = (0..1000).fold(Path::default(), |path, _| path.with("step"));
        assert!((PATH_MAX - 5..=PATH_MAX).contains(&deep.text().len()), "{}", deep.text());
        assert_eq!(deep, deep.clone().with("step"));
        assert_ne!(deep, Path::default().with("step"));
    }
}
