//! Which records: the options that `tail`, `query`, `export` and `stat` share.

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use tampu_log::{
    logger::attach,
    query::{Condition, Field, Mode, Query},
};
use tampu_types::{Level, Time};

use crate::{failure::Failure, output::highlight::Highlight, time_expression::TimeExpression};

/// Which records: conditions, and words to find.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which records")]
pub struct FilterArgs {
    #[command(flatten)]
    conditions: ConditionArgs,
    /// With all these words
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Which records. All conditions must hold; several values of one are alternatives. What is excluded is left out in any case.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which records")]
pub struct ConditionArgs {
    /// This level and graver ones
    #[arg(short = 'l', long = "min-level", value_name = "LEVEL")]
    min_level: Option<Level>,
    /// These levels only
    #[arg(long = "level", value_name = "LEVEL,...", value_delimiter = ',')]
    levels: Vec<Level>,
    /// For these audiences, or for everybody
    #[arg(short = 'a', long = "audience", value_name = "NAME,...", value_delimiter = ',')]
    audiences: Vec<String>,
    /// ACS's audience mode: engineer (all), operator (for Operator or SciLog, and from Warning on what is not for Developer),
    /// scilog (for SciLog, of level Notice)
    #[arg(long, value_name = "MODE", default_value_t, hide_default_value = true, value_parser = mode_values())]
    mode: Mode,
    /// From these hosts (* and ? stand for any characters)
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    host: Vec<String>,
    /// From these processes (containers)
    #[arg(short = 'p', long, value_name = "PATTERN", value_delimiter = ',')]
    process: Vec<String>,
    /// From these components
    #[arg(short = 's', long, value_name = "PATTERN", value_delimiter = ',')]
    source: Vec<String>,
    /// From these named loggers
    #[arg(long, value_name = "PATTERN", value_delimiter = ',')]
    logger: Vec<String>,
    /// Of this error chain
    #[arg(long, value_name = "STACK ID")]
    stack: Option<String>,
    /// Where another field matches: file, routine, thread, context, array, antenna, run_id, log_id, uri
    #[arg(long = "field", value_name = "NAME=PATTERN", value_parser = field_pattern)]
    fields: Vec<(Field, String)>,
    /// With this text, in any case
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// Matching this regular expression
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
    /// Without this text, in any case; repeatable
    #[arg(long, value_name = "TEXT")]
    exclude: Vec<String>,
    /// Not matching this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    exclude_regex: Vec<String>,
    /// Without those whose level, audience or field matches; names as for --field, and level, audience, source, process, host,
    /// logger; repeatable
    #[arg(long = "not", value_name = "NAME=PATTERN", value_parser = left_out)]
    not: Vec<Condition>,
}

/// From when to when.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "When")]
pub struct SpanArgs {
    /// From this time on: 10m, 08:15, yesterday, 2026-11-21T08:15:30 (UTC)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<TimeExpression>,
    /// Up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<TimeExpression>,
}

fn mode_values() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::name)).try_map(|name| name.parse::<Mode>())
}

fn left_out(text: &str) -> Result<Condition, String> {
    match text.split_once('=').map(|(name, value)| (name.trim(), value)) {
        Some(("level", value)) => {
            let level = value.parse::<Level>().map_err(|error| error.to_string())?;
            Ok(Condition { levels: vec![level], ..Condition::default() })
        }
        Some(("audience", value)) => Ok(Condition { audiences: vec![value.to_owned()], ..Condition::default() }),
        Some(("source", value)) => left_out(&format!("source_object={value}")),
        _ => {
            let (field, pattern) = field_pattern(text)?;
            Ok(Condition { fields: [(field, vec![pattern])].into(), ..Condition::default() })
        }
    }
}

fn field_pattern(text: &str) -> Result<(Field, String), String> {
    let names = || Field::ALL.map(Field::name).join(", ");
    let (name, pattern) = text.split_once('=').ok_or_else(|| format!("write NAME=PATTERN; names are {}", names()))?;
    let field = Field::from_name(name.trim()).ok_or_else(|| format!("'{name}' is no field; fields are {}", names()))?;
    Ok((field, pattern.to_owned()))
}

impl FilterArgs {
    /// What an attached reader asks of the processes.
    pub fn attachment(&self) -> Result<attach::Wanted, Failure> {
        self.conditions.attachment()
    }

    /// The query these options mean.
    pub fn query(&self) -> Result<Query, Failure> {
        let query = Query { words: self.words.clone(), ..self.conditions.query()? };
        query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(query)
    }

    /// What to mark in the records shown.
    pub fn highlight(&self) -> Highlight {
        let words = self.words.iter().flat_map(|words| words.split_whitespace());
        Highlight::of(words.chain(self.conditions.contains.as_deref()), self.conditions.regex.as_deref())
    }
}

impl ConditionArgs {
    /// The query these options mean.
    pub fn query(&self) -> Result<Query, Failure> {
        let mut query = Query {
            min_level: self.min_level,
            levels: self.levels.clone(),
            audiences: self.audiences.clone(),
            text: self.contains.clone(),
            regex: self.regex.clone(),
            mode: self.mode,
            without: self.not.clone(),
            ..Query::default()
        };
        let texts = self.exclude.iter().map(|text| Condition { text: Some(text.clone()), ..Condition::default() });
        let expressions = self.exclude_regex.iter().map(|regex| Condition { regex: Some(regex.clone()), ..Condition::default() });
        query.without.extend(texts.chain(expressions));
        for (field, patterns) in [
            (Field::Host, &self.host),
            (Field::Process, &self.process),
            (Field::SourceObject, &self.source),
            (Field::Logger, &self.logger),
        ] {
            if !patterns.is_empty() {
                query.fields.insert(field, patterns.clone());
            }
        }
        if let Some(stack) = &self.stack {
            query.fields.insert(Field::StackId, vec![stack.clone()]);
        }
        for (field, pattern) in &self.fields {
            query.fields.entry(*field).or_default().push(pattern.clone());
        }
        // A bad expression is the user's to mend, here and not at the hub.
        query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(query)
    }

    /// What an attached reader asks of the processes: the least of the levels asked for, of these processes and loggers.
    pub fn attachment(&self) -> Result<attach::Wanted, Failure> {
        let least = self.min_level.into_iter().chain(self.levels.iter().copied()).min();
        let none =
            || Failure::Usage("--attach needs --min-level or --level: from which level on shall the processes publish?".into());
        let level = Some(least.ok_or_else(none)?);
        Ok(attach::Wanted { level, sources: self.process.clone(), loggers: self.logger.clone() })
    }
}

impl SpanArgs {
    /// Whether an end is given.
    pub fn has_end(&self) -> bool {
        self.until.is_some()
    }

    /// Sets the query's time range, as meant now.
    pub fn apply(&self, query: &mut Query, now: Time) -> Result<(), Failure> {
        (query.since, query.until) = self.resolve(now)?;
        Ok(())
    }

    /// The time range, as meant now.
    pub fn resolve(&self, now: Time) -> Result<(Option<Time>, Option<Time>), Failure> {
        let span = (self.since.map(|time| time.resolve(now)), self.until.map(|time| time.resolve(now)));
        match span {
            (Some(since), Some(until)) if since >= until => Err(Failure::Usage(format!(
                "--since {} is not before --until {}: nothing can lie between them",
                since.to_acs(),
                until.to_acs()
            ))),
            _ => Ok(span),
        }
    }
}
