//! Blocks of a PDF, made from texts of every encoding.

use tampu_logbook::{
    entry::Encoding,
    export::pdf::{
        MAX_LINES, PdfError,
        blocks::{MAX_DEPTH, TextRoom, blocks},
        document::{PdfBlock, PdfCell, PdfRun, PdfStyle},
    },
    render,
};

fn of(encoding: Encoding, text: &str) -> Vec<PdfBlock> {
    let html = render::html(encoding, text, &|_| String::new()).replace("src=\"plot.png\"", "src=\"tampu-file:3\"");
    blocks(&html, encoding == Encoding::Plain, &mut TextRoom::default(), &mut |place| (place == 3).then_some(0)).unwrap()
}

fn text(runs: &[PdfRun]) -> String {
    runs.iter().map(PdfRun::text).collect()
}

fn paragraph(block: &PdfBlock) -> String {
    match block {
        PdfBlock::Paragraph { runs, .. } => text(runs),
        block => panic!("no paragraph: {block:?}"),
    }
}

fn plain(words: &str) -> PdfRun {
    PdfRun::Plain(words.to_owned())
}

fn styled(words: &str, change: impl FnOnce(&mut PdfStyle)) -> PdfRun {
    let mut style = PdfStyle::default();
    change(&mut style);
    PdfRun::Styled { text: words.to_owned(), style }
}

#[test]
fn a_text_becomes_the_same_blocks_in_every_encoding() {
    let bold = vec![plain("the "), styled("HV", |style| style.bold = true), plain(" tripped")];
    for (encoding, text) in [
        (Encoding::Markdown, "the **HV**\ntripped"),
        (Encoding::Html, "<p>the   <b>HV</b>\n tripped</p>"),
        (Encoding::ElCode, "the [b]HV[/b] tripped"),
    ] {
        assert_eq!(of(encoding, text), [PdfBlock::Paragraph { runs: bold.clone(), align: "" }], "{encoding:?}");
    }
    let kept = "a  b\n\tc #import \"x\" $1$ \\ ] <b>\n";
    let lines = PdfBlock::Lines { runs: vec![plain("a  b\n        c #import \"x\" $1$ \\ ] <b>")], plain: true };
    assert_eq!(of(Encoding::Plain, kept), [lines]);
}

#[test]
fn lists_tables_pictures_and_links_keep_their_structure() {
    let list = of(Encoding::Markdown, "3. one\n4. two\n   - below\n\n> said\n\n---\n\n## Head\n\n```\nx = 1\n```");
    let [PdfBlock::List { start: Some(3), items }, PdfBlock::Quote { blocks }, PdfBlock::Rule, heading, code] = &list[..] else {
        panic!("{list:?}")
    };
    assert_eq!((items.len(), paragraph(&items[0][0]), paragraph(&blocks[0])), (2, "one".to_owned(), "said".to_owned()));
    assert!(matches!(&items[1][1], PdfBlock::List { start: None, items } if items.len() == 1), "{items:?}");
    assert_eq!(*heading, PdfBlock::Heading { level: 2, runs: vec![plain("Head")] });
    assert!(matches!(code, PdfBlock::Lines { runs, plain: false } if text(runs) == "x = 1"), "{code:?}");

    let table = of(Encoding::Markdown, "|a|b|\n|-|-|\n|1|![p](plot.png)|");
    let [PdfBlock::Table { columns: 2, cells }] = &table[..] else { panic!("{table:?}") };
    assert_eq!((cells[0].head, cells[2].head, (cells[3].x, cells[3].y)), (true, false, (1, 1)));
    assert_eq!(cells[3].blocks, [PdfBlock::Picture { picture: 0 }]);

    let link =
        of(Encoding::Html, "<p><a href=\"https://a.b/c\">x</a> <a href=\"../12\">y</a> <img src=\"other.png\" alt=\"z\"></p>");
    let runs = vec![styled("x", |style| style.link = Some("https://a.b/c".to_owned())), plain(" y [z]")];
    let spaces = link[0].clone();
    assert!(matches!(&spaces, PdfBlock::Paragraph { runs: found, .. } if text(found) == text(&runs)), "{spaces:?}");
    assert!(
        matches!(&spaces, PdfBlock::Paragraph { runs, .. } if matches!(&runs[0], PdfRun::Styled { style, .. } if style.link.is_some()))
    );
    let centre = of(
        Encoding::Html,
        "<div style=\"text-align:center\"><font color=\"red\">r</font><span style=\"color:white\">w</span></div>",
    );
    let red = styled("r", |style| style.color = Some("#ff0000".to_owned()));
    assert_eq!(centre, [PdfBlock::Paragraph { runs: vec![red, plain("w")], align: "center" }]);
}

#[test]
fn cells_never_overlap_and_stay_in_their_table() {
    let html = "<table><tr><td rowspan=9 colspan=2>a<td>b</tr><tr><td colspan=99>c</tr><tr></tr><tr><th>d</table>";
    let table = of(Encoding::Html, html);
    let [PdfBlock::Table { columns, cells }] = &table[..] else { panic!("{table:?}") };
    let mut taken = std::collections::HashSet::new();
    for PdfCell { x, y, colspan, rowspan, .. } in cells {
        for place in (*y..y + rowspan).flat_map(|y| (*x..x + colspan).map(move |x| (x, y))) {
            assert!(place.0 < *columns && place.1 < 4 && taken.insert(place), "{place:?} of {cells:?}");
        }
    }
    let wide = format!("<table><tr>{}</tr></table>", "<td>w</td>".repeat(100));
    let wide = of(Encoding::Html, &wide);
    assert!(paragraph(&wide[0]).starts_with("w | w | w"), "a table that is too wide is shown as lines");
}

fn depth(blocks: &[PdfBlock]) -> usize {
    let below = |block: &PdfBlock| match block {
        PdfBlock::List { items, .. } => 1 + items.iter().map(|item| depth(item)).max().unwrap_or(0),
        PdfBlock::Quote { blocks } => 1 + depth(blocks),
        PdfBlock::Table { cells, .. } => 1 + cells.iter().map(|cell| depth(&cell.blocks)).max().unwrap_or(0),
        _ => 0,
    };
    blocks.iter().map(below).max().unwrap_or(0)
}

#[test]
fn blocks_nest_to_a_depth_and_nothing_is_lost_below_it() {
    for (open, close) in [("<ul><li>Z", "</ul>"), ("<blockquote>Z", "</blockquote>"), ("<table><tr><td>Z", "</table>")] {
        let nested = of(Encoding::Html, &format!("{}{}", open.repeat(60), close.repeat(60)));
        assert_eq!(depth(&nested), MAX_DEPTH, "{open}");
        assert_eq!(format!("{nested:?}").matches('Z').count(), 60, "{open}");
    }
    // Deeper texts are shown as source by the renderer.
    assert!(depth(&of(Encoding::Html, &"<ul><li>".repeat(10_000))) == 0);
}

#[test]
fn long_words_can_be_broken_and_long_texts_are_split() {
    let word = of(Encoding::Markdown, &"x".repeat(200));
    assert_eq!(paragraph(&word[0]).matches('\u{200b}').count(), 4);
    let long = of(Encoding::Plain, &"0123456789abcde\n".repeat(10_000));
    assert!(long.len() > 10 && long.iter().all(|block| matches!(block, PdfBlock::Lines { plain: true, .. })));
    let lines: usize =
        long.iter().map(|block| if let PdfBlock::Lines { runs, .. } = block { text(runs).lines().count() } else { 0 }).sum();
    assert_eq!(lines, 10_000);
    let too_many = blocks(&format!("<pre>{}</pre>", "\n".repeat(MAX_LINES + 1)), true, &mut TextRoom::default(), &mut |_| None);
    assert!(matches!(too_many, Err(PdfError::TooLarge { most: MAX_LINES, .. })), "{too_many:?}");
}

#[test]
fn no_html_is_a_panic() {
    for html in [
        "",
        "<",
        "</p></p>",
        "<p",
        "<table><td>",
        "<pre><ul><li><pre>x",
        "&#0;&#xffff;",
        "<img src=\"tampu-file:99999999999999999999\">",
    ] {
        let _ = blocks(html, false, &mut TextRoom::default(), &mut |_| None).unwrap();
    }
}
