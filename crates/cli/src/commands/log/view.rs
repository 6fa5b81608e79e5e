//! `tampu log view`.

use std::{
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use clap::Args;
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyEventKind},
};
use tampu_types::LogRecord;

use crate::{
    commands::log::replay::replay_name,
    context::Context,
    failure::{Failure, Outcome},
    filter::{ConditionArgs, SpanArgs},
    output::file::{FileFormat, FileOptions, RecordFile, is_gz},
    paint::{Paint, When},
    time_expression::now,
    viewer::{
        draw,
        feed::{Fed, Feed, Hub, Wish, recent},
        state::{Effect, Viewer},
        theme::Theme,
    },
};

/// Browse the log on the whole terminal: live, from the archive, or from files
///
/// Filters, searches, shows records in full, their surroundings and error chains, pauses with a count; ? shows the keys. Options
/// choose what reaches the viewer, keys what of it is shown. With --since it begins there and goes on live, with --until it shows
/// the archive alone, with files it needs no hub.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu log view\n  tampu log view --mode operator --since 1h\n  \
    tampu log view --since 03:00 --until 03:30 --min-level Info\n  tampu log view night.xml.gz\n  tampu log view --replayed night")]
pub struct View {
    #[command(flatten)]
    filter: ConditionArgs,
    #[command(flatten)]
    span: SpanArgs,
    /// ACS XML and JSON lines, also .gz; without any the hub's log is shown
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Begin with the last N records of the archive
    #[arg(long, value_name = "N", default_value_t = 1000, conflicts_with_all = ["files", "replayed"])]
    last: u64,
    /// Follow the replay of this name ('tampu log replay') instead of the live log
    #[arg(long, value_name = "NAME", conflicts_with_all = ["files", "since", "until"], value_parser = replay_name)]
    replayed: Option<String>,
    /// Number of records kept in memory, and again as many while paused; the oldest are dropped and counted
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    keep: usize,
}

/// The screen is drawn at most so often.
const DRAW_EVERY: Duration = Duration::from_millis(33);
/// Longest delay of a key without other news.
const WAIT: Duration = Duration::from_millis(30);
/// Pieces handled before keys are read again.
const PIECES: usize = 32;

impl View {
    pub fn run(self, context: &Context) -> Outcome {
        if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
            return Err(Failure::Usage(
                "the viewer needs a terminal on standard input and output; 'tampu log query' and 'tampu log tail' need none"
                    .to_owned(),
            ));
        }
        let mut query = self.filter.query()?;
        self.span.apply(&mut query, now())?;
        let (mut viewer, feed) = if self.files.is_empty() {
            let connect = &context.common.connect;
            let (participant, engine) = connect.join_hub_engine("tampu-view")?;
            let live = !self.span.has_end();
            let what = match (&self.replayed, live) {
                (Some(name), _) => format!("replay '{name}' in '{}'", participant.domain()),
                (None, true) => format!("live '{}'", participant.domain()),
                (None, false) => format!("archive '{}'", participant.domain()),
            };
            let before = if live && self.replayed.is_none() { recent(self.last, query.since.take()) } else { None };
            let hub = Hub { participant, engine, connect: connect.clone() };
            let mut viewer = Viewer::new(what, self.keep, live);
            viewer.has_archive = true;
            (viewer, Feed::of_hub(hub, Wish { query, before, live, replayed: self.replayed.clone() }))
        } else {
            let names: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
            // Files that cannot be opened are reported before the screen is cleared.
            for path in &self.files {
                std::fs::File::open(path).map_err(|error| Failure::failed(path.display(), error))?;
            }
            (Viewer::new(names.join(" "), self.keep, false), Feed::of_files(self.files.clone(), query))
        };
        let theme = Theme { colour: Paint::for_stdout(context.common.color) != Paint::for_stdout(When::Never) };
        let screen = Screen::take()?;
        show(&mut viewer, feed, theme, screen, context)
    }
}

/// The terminal, given back when it is dropped.
struct Screen(DefaultTerminal);

impl Screen {
    fn take() -> Result<Screen, Failure> {
        crate::terminal::whole_screen_is_taken();
        ratatui::try_init().map(Screen).map_err(|error| Failure::failed("the terminal", error))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        crate::terminal::restore();
    }
}

fn show(viewer: &mut Viewer, mut feed: Feed, theme: Theme, mut screen: Screen, context: &Context) -> Outcome {
    let trouble = |error: io::Error| Failure::failed("the terminal", error);
    let mut drawn: Option<Instant> = None;
    let mut changed = true;
    while !context.interrupt.asked() {
        let mut came = 0;
        while came < PIECES
            && let Some(fed) = feed.next()
        {
            take(viewer, fed);
            came += 1;
        }
        changed |= came > 0;
        if changed && drawn.is_none_or(|drawn| drawn.elapsed() >= DRAW_EVERY) {
            let area = screen.0.size().map_err(trouble)?;
            viewer.resize(draw::page(viewer, ratatui::layout::Rect::new(0, 0, area.width, area.height)));
            screen.0.draw(|frame| draw::draw(viewer, theme, frame)).map_err(trouble)?;
            drawn = Some(Instant::now());
            changed = false;
        }
        let mut wait = if came == PIECES { Duration::ZERO } else { WAIT };
        while event::poll(wait).map_err(trouble)? {
            wait = Duration::ZERO;
            changed = true;
            let Event::Key(key) = event::read().map_err(trouble)? else { continue };
            if key.kind == KeyEventKind::Release {
                continue;
            }
            match viewer.key(key) {
                None => {}
                Some(Effect::Quit) => return Ok(()),
                Some(Effect::Ask(question)) => feed.ask(question),
                Some(Effect::Save(name)) => {
                    let said = match save(Path::new(&name), &viewer.in_front()) {
                        Ok(count) => format!("{count} rows written to {name}"),
                        Err(failure) => failure.text().unwrap_or_default().to_owned(),
                    };
                    viewer.say(said);
                }
            }
        }
    }
    Ok(())
}

fn take(viewer: &mut Viewer, fed: Fed) {
    match fed {
        Fed::Records(records) => viewer.take(records),
        Fed::Told(line) => viewer.say(line),
        Fed::Ended(line) => {
            viewer.is_live = false;
            viewer.say(line);
        }
        Fed::Link(link) => viewer.linked(link),
        Fed::Answer(question, records) => viewer.answered(question.kind, &question.row, records),
    }
}

/// Writes rows to a new file, in the format its name asks for.
fn save(path: &Path, rows: &[Arc<LogRecord>]) -> Result<usize, Failure> {
    let place = path.display();
    let format = FileFormat::of_name(path)
        .ok_or_else(|| Failure::Failed(format!("{place}: name it .xml, .json or .csv, or one of these with .gz")))?;
    if path.exists() {
        return Err(Failure::Failed(format!("{place} is there already: nothing was written")));
    }
    let mut file = RecordFile::create(path, format, is_gz(path), &FileOptions::default())?;
    rows.iter().try_for_each(|row| file.record(row))?;
    file.close()?;
    Ok(rows.len())
}
