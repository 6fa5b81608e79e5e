//! Limits for the work of sanitising HTML.
//!
//! The sanitiser uses a browser's parser. For each tag, such a parser walks up all open elements. It repeats unclosed
//! elements in each paragraph, and compares each attribute with those before it. A malicious text can therefore take
//! hours, or all memory. So the text is first parsed piece by piece without a result. It is rejected if it nests too
//! deeply, becomes too large, or costs too much processor time. Rejected: a separate scanner for tags, because there are hundreds of
//! rules for the end of an element.

use std::{borrow::Cow, cell::Cell, rc::Rc, time::Duration};

use html5ever::{
    Attribute, ExpandedName, ParseOpts, QualName, local_name, ns, parse_fragment,
    tendril::{StrTendril, TendrilSink},
    tree_builder::{ElementFlags, NodeOrText, QuirksMode, TreeSink},
};
use tampu_workers::{Stop, thread_cpu};

/// Elements inside one another.
pub const MAX_DEPTH: u32 = 256;
/// Elements and comments of a text.
pub const MAX_NODES: u32 = 100_000;
/// Limit for the thread's processor time in parsing; the sanitiser takes about as much again. Texts that people write
/// take a few milliseconds. On a busy host the same text takes longer, and is not rejected for that.
const MAX_TIME: Duration = Duration::from_secs(2);
/// Number of bytes that are parsed between two checks.
const PIECE: usize = 2048;

/// Returns whether a text stays within the bounds. Parsing ends early when it is stopped.
pub fn is_bounded(text: &str, stop: &Stop) -> bool {
    let counts = Rc::new(Counts::default());
    let name = QualName::new(None, ns!(html), local_name!("div"));
    let mut parser = parse_fragment(Sink(counts.clone()), ParseOpts::default(), name, vec![], false);
    let (begun, mut rest) = (thread_cpu(), text);
    while !rest.is_empty() {
        let end = (0..=PIECE.min(rest.len())).rev().find(|&end| rest.is_char_boundary(end)).unwrap_or(0);
        let (piece, after) = rest.split_at(end);
        parser.process(StrTendril::from_slice(piece));
        if counts.depth.get() > MAX_DEPTH
            || counts.nodes.get() > MAX_NODES
            || thread_cpu().saturating_sub(begun) > MAX_TIME
            || stop.is_stopped()
        {
            return false;
        }
        rest = after;
    }
    true
}

/// The deepest element so far, and how many there are.
#[derive(Default)]
struct Counts {
    depth: Cell<u32>,
    nodes: Cell<u32>,
}

/// A sink for the parser's tree that stores nothing.
struct Sink(Rc<Counts>);

/// A node, with the properties that the parser reads again. Comments have an empty name.
struct Node {
    name: QualName,
    depth: Cell<u32>,
}

type Handle = Rc<Node>;

impl Sink {
    fn node(&self, name: Option<QualName>) -> Handle {
        let name = name.unwrap_or_else(|| QualName::new(None, ns!(), local_name!("")));
        self.0.nodes.set(self.0.nodes.get().saturating_add(1));
        Rc::new(Node { name, depth: Cell::new(0) })
    }

    fn put(&self, node: NodeOrText<Handle>, depth: u32) {
        if let NodeOrText::AppendNode(node) = node {
            node.depth.set(depth);
            self.0.depth.set(self.0.depth.get().max(depth));
        }
    }
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = ();
    type ElemName<'a> = ExpandedName<'a>;

    fn finish(self) {}

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        self.node(None)
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> ExpandedName<'a> {
        target.name.expanded()
    }

    fn create_element(&self, name: QualName, _: Vec<Attribute>, _: ElementFlags) -> Handle {
        self.node(Some(name))
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.node(None)
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.node(None)
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.put(child, parent.depth.get() + 1);
    }

    fn append_based_on_parent_node(&self, element: &Handle, _: &Handle, child: NodeOrText<Handle>) {
        self.put(child, element.depth.get());
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        Rc::ptr_eq(x, y)
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, new: NodeOrText<Handle>) {
        self.put(new, sibling.depth.get());
    }

    fn add_attrs_if_missing(&self, _: &Handle, _: Vec<Attribute>) {}

    fn remove_from_parent(&self, _: &Handle) {}

    fn reparent_children(&self, _: &Handle, new_parent: &Handle) {
        // Each child is one level deeper after the move. The depth of their contents is unknown here, so each such move counts as a
        // level.
        let depth = new_parent.depth.get() + 1;
        self.0.depth.set(self.0.depth.get().max(depth));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(text: &str) -> bool {
        is_bounded(text, &Stop::default())
    }

    #[test]
    fn what_people_write_is_bounded_and_what_is_made_to_last_is_not() {
        let page = "<div><p>a <b>b</b><table><tr><td>c<td>d</table><ul><li>e<li>f</ul></div>".repeat(2000);
        assert!(bounded(&page) && bounded("") && bounded("é".repeat(5000).as_str()));
        let many: String = (0..300).map(|n| format!("<b id={n}>")).collect();
        for bomb in [
            "<div>".repeat(100_000),
            "<b><table><td></b></table>".repeat(20_000),
            many + &"<p>".repeat(100_000),
            "<i></i>".repeat(MAX_NODES as usize + 1000),
            "<svg><g>".repeat(50_000),
            "<template>".repeat(50_000),
            (0..1_000_000).fold("<a".to_owned(), |tag, n| tag + &format!(" a{n}")),
        ] {
            assert!(!bounded(&bomb), "{}", &bomb[..40]);
        }
    }
}
