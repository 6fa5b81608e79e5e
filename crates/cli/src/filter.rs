//! Options that choose records, shared by `tail`, `query`, `export` and `stat`.

use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};
use tampu_archive::query::{Condition, Expression, Field, FieldPattern, Mode, Query};
use tampu_log::logger::attach;
use tampu_types::{Level, Time};

use crate::{failure::Failure, level::parse_level, output::highlight::Highlight, time_expression::TimeExpression, time_text};

/// Conditions on records, and words to find.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which records")]
pub struct FilterArgs {
    #[command(flatten)]
    conditions: ConditionArgs,
    /// With all these words
    #[arg(value_name = "WORD")]
    words: Vec<String>,
}

/// Conditions on records. Different conditions are combined with AND, several values of one with OR. Exclusions always win.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Which records")]
pub struct ConditionArgs {
    /// This level and more severe ones
    #[arg(short = 'l', long = "min-level", value_name = "LEVEL", value_parser = parse_level)]
    min_level: Option<Level>,
    /// These levels exactly
    #[arg(long = "level", value_name = "LEVEL,...", value_delimiter = ',', value_parser = parse_level)]
    levels: Vec<Level>,
    /// Records for these audiences, or for everybody
    #[arg(long = "audience", value_name = "NAME,...", value_delimiter = ',')]
    audiences: Vec<String>,
    /// ACS's audience mode: engineer (all), operator (for Operator or SciLog, and from Warning on what is not for Developer),
    /// scilog (for SciLog, of level Notice)
    #[arg(long, value_name = "MODE", default_value_t, hide_default_value = true, value_parser = mode_values())]
    mode: Mode,
    /// From these hosts (* and ? are wildcards)
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    host: Vec<String>,
    /// From these processes (* and ? are wildcards)
    #[arg(short = 'p', long, value_name = "PATTERN,...", value_delimiter = ',')]
    process: Vec<String>,
    /// From these sources, as the column SOURCE shows them (* and ? are wildcards)
    #[arg(short = 's', long, value_name = "PATTERN,...", value_delimiter = ',')]
    source: Vec<String>,
    /// From these named loggers (* and ? are wildcards)
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    logger: Vec<String>,
    /// Of the error chain with this id
    #[arg(long, value_name = "ID")]
    stack: Option<String>,
    /// With another field that matches: file, routine, thread, context, array, antenna, run_id, log_id, uri, ...
    #[arg(long = "field", value_name = "NAME=PATTERN", value_parser = str::parse::<FieldPattern>)]
    fields: Vec<FieldPattern>,
    /// With this text, ignoring case
    #[arg(long, value_name = "TEXT")]
    contains: Option<String>,
    /// Matching this regular expression
    #[arg(long, value_name = "REGEX")]
    regex: Option<String>,
    /// Meeting a condition on named data and fields, with and, or, not and parentheses: 'scan = 7 or elevation > 60'
    #[arg(long = "where", value_name = "CONDITION")]
    expression: Option<Expression>,
    /// Without this text, ignoring case; repeatable
    #[arg(long, value_name = "TEXT")]
    exclude: Vec<String>,
    /// Not matching this regular expression; repeatable
    #[arg(long, value_name = "REGEX")]
    exclude_regex: Vec<String>,
    /// Without records whose level, audience or field matches; names as for --field, and level, audience, source, process, host, logger; repeatable
    #[arg(long = "not", value_name = "NAME=PATTERN", value_parser = str::parse::<Condition>)]
    not: Vec<Condition>,
}

/// From when to when.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "When")]
pub struct SpanArgs {
    /// From this time on: 10m (ago), 08:15, yesterday, 2026-11-21T08:15:30 (local time, or with Z or +01:00)
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<TimeExpression>,
    /// Up to this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<TimeExpression>,
}

fn mode_values() -> impl TypedValueParser<Value = Mode> {
    PossibleValuesParser::new(Mode::ALL.map(Mode::name)).try_map(|name| name.parse::<Mode>())
}

impl FilterArgs {
    /// The records from this level on; all without one.
    pub fn from_level(least: Option<Level>) -> FilterArgs {
        FilterArgs { conditions: ConditionArgs { min_level: least, ..ConditionArgs::default() }, words: Vec::new() }
    }

    /// Returns the request of an attached reader to the processes.
    pub fn attachment(&self) -> Result<attach::AttachRequest, Failure> {
        self.conditions.attachment()
    }

    /// The query these options mean.
    pub fn query(&self) -> Result<Query, Failure> {
        let query = Query { words: self.words.clone(), ..self.conditions.query()? };
        query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(query)
    }

    /// Returns the matches to mark in the output.
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
            sources: self.source.clone(),
            mode: self.mode,
            expression: self.expression.clone(),
            without: self.not.clone(),
            ..Query::default()
        };
        let texts = self.exclude.iter().map(|text| Condition { text: Some(text.clone()), ..Condition::default() });
        let expressions = self.exclude_regex.iter().map(|regex| Condition { regex: Some(regex.clone()), ..Condition::default() });
        query.without.extend(texts.chain(expressions));
        for (field, patterns) in [(Field::Host, &self.host), (Field::Process, &self.process), (Field::Logger, &self.logger)] {
            if !patterns.is_empty() {
                query.fields.insert(field, patterns.clone());
            }
        }
        if let Some(stack) = &self.stack {
            query.fields.insert(Field::StackId, vec![stack.clone()]);
        }
        for FieldPattern { field, pattern } in &self.fields {
            query.fields.entry(*field).or_default().push(pattern.clone());
        }
        // An invalid expression is reported here, before the hub sees it.
        query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(query)
    }

    /// Returns the request of an attached reader: the least of the requested levels, for the chosen processes and loggers.
    pub fn attachment(&self) -> Result<attach::AttachRequest, Failure> {
        let least = self.min_level.into_iter().chain(self.levels.iter().copied()).min();
        let none =
            || Failure::Usage("--attach needs --min-level or --level: from which level on shall the processes publish?".into());
        let level = Some(least.ok_or_else(none)?);
        Ok(attach::AttachRequest { level, sources: self.process.clone(), loggers: self.logger.clone() })
    }
}

impl SpanArgs {
    /// Returns true if an end is given.
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
                time_text::with_zone(since),
                time_text::with_zone(until)
            ))),
            _ => Ok(span),
        }
    }
}
