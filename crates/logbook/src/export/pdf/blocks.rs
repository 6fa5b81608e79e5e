//! The blocks of a text, made from its cleaned HTML.
//!
//! The HTML is what [`crate::render`] returns for every encoding: well-formed, with an end for each element. So the
//! tokenizer of the sanitiser's parser suffices, and a stack of open elements. Blocks nest to a bounded depth, because the
//! typesetter has a limit. Deeper blocks stand at the deepest level.

use super::{
    MAX_CELLS, MAX_LINES, PdfError,
    document::{PdfBlock, PdfRun, PdfStyle},
};
use tree::{Element, Node, parse};

mod color;
mod line;
mod table;
mod tree;

use line::Line;

/// The scheme of the addresses of an entry's files in the HTML: `tampu-file:3` is the file at place 3. The sanitiser
/// removes this scheme from texts that people write.
pub const FILE_SCHEME: &str = "tampu-file:";
/// Lists, quotations and tables inside one another.
pub const MAX_DEPTH: usize = 6;
/// Bytes of an address of a link.
const MAX_LINK: usize = 2000;

/// The number of blocks and cells that a document may still have.
#[derive(Debug)]
pub struct TextRoom {
    lines: usize,
    pub(super) cells: usize,
}

impl Default for TextRoom {
    fn default() -> TextRoom {
        TextRoom { lines: MAX_LINES, cells: MAX_CELLS }
    }
}

impl TextRoom {
    /// Takes the room of lines and blocks.
    pub fn take(&mut self, lines: usize) -> Result<(), PdfError> {
        let too_large = PdfError::TooLarge { what: "lines and paragraphs", most: MAX_LINES };
        self.lines = self.lines.checked_sub(lines).ok_or(too_large)?;
        Ok(())
    }
}

/// Converts cleaned HTML. `picture` returns the number of the picture that is the entry's file at a place. `plain` marks a
/// text without markup.
pub fn blocks(
    html: &str,
    plain: bool,
    room: &mut TextRoom,
    picture: &mut dyn FnMut(usize) -> Option<usize>,
) -> Result<Vec<PdfBlock>, PdfError> {
    let mut flow = Flow { room, picture, plain };
    let mut out = Out::default();
    flow.nodes(&parse(html), &Context::default(), &mut out)?;
    out.end_line();
    flow.counted(out)
}

/// The surroundings of a node.
#[derive(Debug, Clone, Default)]
struct Context {
    style: PdfStyle,
    align: &'static str,
    depth: usize,
    /// True if spaces and line ends are kept.
    is_kept: bool,
}

/// Finished blocks, and the paragraph that has begun.
#[derive(Debug, Default)]
struct Out {
    blocks: Vec<PdfBlock>,
    line: Line,
    align: &'static str,
}

impl Out {
    /// Ends the paragraph that has begun.
    fn end_line(&mut self) {
        let runs = self.line.take();
        if !runs.is_empty() {
            self.blocks.push(PdfBlock::Paragraph { runs, align: self.align });
        }
    }

    fn push(&mut self, block: PdfBlock) {
        self.end_line();
        self.blocks.push(block);
    }
}

/// The conversion of a text.
struct Flow<'a> {
    room: &'a mut TextRoom,
    picture: &'a mut dyn FnMut(usize) -> Option<usize>,
    plain: bool,
}

impl Flow<'_> {
    /// Counts the blocks of a level, and returns them.
    fn counted(&mut self, out: Out) -> Result<Vec<PdfBlock>, PdfError> {
        self.room.take(out.blocks.len())?;
        Ok(out.blocks)
    }

    fn nodes(&mut self, nodes: &[Node], context: &Context, out: &mut Out) -> Result<(), PdfError> {
        for node in nodes {
            match node {
                Node::Text(text) => {
                    for piece in line::pieces(text) {
                        if context.is_kept {
                            self.room.take(piece.matches('\n').count())?;
                            out.line.kept(piece, &context.style);
                        } else {
                            out.line.text(piece, &context.style);
                        }
                        self.end_if_long(context, out);
                    }
                }
                Node::Element(element) => self.element(element, context, out)?,
            }
            self.end_if_long(context, out);
        }
        Ok(())
    }

    /// Ends a very long paragraph, which goes on in the next one.
    fn end_if_long(&mut self, context: &Context, out: &mut Out) {
        if !out.line.is_long() {
            return;
        }
        out.align = context.align;
        if context.is_kept {
            self.end_lines(out);
        } else {
            out.end_line();
        }
    }

    /// Ends the lines of a text whose spaces are kept.
    fn end_lines(&mut self, out: &mut Out) {
        let runs = out.line.take_kept();
        if !runs.is_empty() {
            out.blocks.push(PdfBlock::Lines { runs, plain: self.plain });
        }
    }

    /// Converts nodes as a level of their own.
    fn level(&mut self, nodes: &[Node], context: &Context) -> Result<Vec<PdfBlock>, PdfError> {
        let mut out = Out::default();
        self.nodes(nodes, context, &mut out)?;
        out.align = context.align;
        out.end_line();
        self.counted(out)
    }

    fn element(&mut self, element: &Element, context: &Context, out: &mut Out) -> Result<(), PdfError> {
        let below = |change: &dyn Fn(&mut PdfStyle)| {
            let mut context = context.clone();
            change(&mut context.style);
            context
        };
        let nodes = &element.children;
        let inline = match element.name.as_str() {
            "b" | "strong" => below(&|style| style.bold = true),
            "i" | "em" | "cite" | "dfn" | "var" => below(&|style| style.italic = true),
            "u" | "ins" => below(&|style| style.underline = true),
            "s" | "strike" | "del" => below(&|style| style.strike = true),
            "code" | "tt" | "kbd" | "samp" => below(&|style| style.code = true),
            "sub" => below(&|style| style.sub = true),
            "sup" => below(&|style| style.sup = true),
            "font" => below(&|style| color::apply(element.attribute("color"), style)),
            "span" => below(&|style| color::declarations(element.attribute("style"), style)),
            "a" => {
                let address = element.attribute("href").filter(|address| is_link(address)).map(str::to_owned);
                below(&|style| style.link = address.clone().or(style.link.take()))
            }
            "br" => {
                self.room.take(1)?;
                out.line.end_of_line();
                return Ok(());
            }
            "wbr" => {
                out.line.text("\u{200b}", &context.style);
                return Ok(());
            }
            "input" => {
                let mark = if element.attribute("checked").is_some() { "\u{2611} " } else { "\u{2610} " };
                out.line.text(mark, &context.style);
                return Ok(());
            }
            "img" => {
                self.image(element, context, out);
                return Ok(());
            }
            _ => return self.block(element, context, out),
        };
        self.nodes(nodes, &inline, out)
    }

    fn image(&mut self, element: &Element, context: &Context, out: &mut Out) {
        let source = element.attribute("src").unwrap_or_default();
        let place = source.strip_prefix(FILE_SCHEME).and_then(|place| place.parse().ok());
        match place.and_then(|place: usize| (self.picture)(place)) {
            Some(picture) => {
                out.align = context.align;
                out.push(PdfBlock::Picture { picture });
            }
            None => {
                // Nothing is fetched: a picture elsewhere is named.
                let name = element.attribute("alt").filter(|name| !name.trim().is_empty());
                let name = name.or(Some(source).filter(|source| is_link(source))).unwrap_or("picture");
                out.line.text(&format!("[{name}]"), &context.style);
            }
        }
    }

    fn block(&mut self, element: &Element, context: &Context, out: &mut Out) -> Result<(), PdfError> {
        let nodes = &element.children;
        let mut context = context.clone();
        if let Some(align) = alignment(element) {
            context.align = align;
        }
        match element.name.as_str() {
            "hr" => out.push(PdfBlock::Rule),
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                out.end_line();
                let level = element.name.as_bytes().get(1).map_or(1, |digit| digit - b'0');
                // A heading is one line; blocks within it stand below.
                for block in self.level(nodes, &context)? {
                    match block {
                        PdfBlock::Paragraph { runs, .. } => out.push(PdfBlock::Heading { level, runs }),
                        block => out.push(block),
                    }
                }
            }
            "pre" => {
                out.end_line();
                let was = std::mem::replace(&mut context.is_kept, true);
                self.nodes(nodes, &context, out)?;
                if was { out.line.end_of_line() } else { self.end_lines(out) }
            }
            "blockquote" => {
                let quoted = self.level(nodes, &Context { depth: context.depth + 1, ..context.clone() })?;
                out.end_line();
                if context.depth < MAX_DEPTH { out.push(PdfBlock::Quote { blocks: quoted }) } else { out.blocks.extend(quoted) }
            }
            "ul" | "ol" | "dl" => self.list(element, &context, out)?,
            "table" => {
                out.end_line();
                let inside = Context { depth: context.depth + 1, ..context.clone() };
                let made = self.table(element, &inside, context.depth < MAX_DEPTH)?;
                out.blocks.extend(made);
            }
            // Elements within a line that have no style.
            "abbr" | "acronym" | "bdi" | "bdo" | "data" | "label" | "mark" | "q" | "rp" | "rt" | "ruby" | "small" | "time"
            | "big" => {
                self.nodes(nodes, &context, out)?;
            }
            _ => {
                out.end_line();
                let was = std::mem::replace(&mut out.align, context.align);
                self.nodes(nodes, &context, out)?;
                out.end_line();
                out.align = was;
            }
        }
        Ok(())
    }

    fn list(&mut self, element: &Element, context: &Context, out: &mut Out) -> Result<(), PdfError> {
        out.end_line();
        let inside = Context { depth: context.depth + 1, ..context.clone() };
        let mut items: Vec<Vec<PdfBlock>> = Vec::new();
        for node in &element.children {
            let (nodes, is_item) = match node {
                Node::Element(item) if item.name == "li" || item.name == "dt" => (&item.children[..], true),
                Node::Element(item) if item.name == "dd" => (&item.children[..], false),
                Node::Text(text) if text.trim().is_empty() => continue,
                node => (std::slice::from_ref(node), false),
            };
            let blocks = self.level(nodes, &inside)?;
            match items.last_mut() {
                // A list between two items belongs to the first of them.
                Some(last) if !is_item => last.extend(blocks),
                _ => items.push(blocks),
            }
        }
        let is_numbered = element.name == "ol";
        let first: u32 = element.attribute("start").and_then(|start| start.parse().ok()).unwrap_or(1);
        if context.depth < MAX_DEPTH {
            out.push(PdfBlock::List { start: is_numbered.then_some(first), items });
            return Ok(());
        }
        for (at, mut item) in items.into_iter().enumerate() {
            let mark = if is_numbered { format!("{}. ", first as usize + at) } else { "\u{2022} ".to_owned() };
            if let Some(PdfBlock::Paragraph { runs, .. }) = item.first_mut() {
                runs.insert(0, PdfRun::Plain(mark));
            }
            out.blocks.extend(item);
        }
        Ok(())
    }
}

/// Returns true if an address is one that a PDF may lead to.
fn is_link(address: &str) -> bool {
    address.len() <= MAX_LINK && ["http://", "https://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

fn alignment(element: &Element) -> Option<&'static str> {
    let named = |name: &str| match name.trim().to_ascii_lowercase().as_str() {
        "center" | "middle" => Some("center"),
        "right" | "end" => Some("right"),
        "left" | "start" | "justify" => Some(""),
        _ => None,
    };
    if element.name == "center" {
        return Some("center");
    }
    let declared = element.attribute("style").and_then(|style| color::value(style, "text-align"));
    declared.and_then(named).or_else(|| element.attribute("align").and_then(named))
}
