//! `tampu bus qos`: the quality of service of a topic, and the setting behind each value.

use std::{
    io::{self, Write},
    time::Duration,
};

use clap::Args;
use serde_json::{Value, json};
use tampu_bus::{
    Qos, Subject,
    topic_settings::{Explained, FIELDS},
};
use tampu_event::topics;
use tampu_log::Threshold;
use tampu_types::{Level, Partition, TopicName, event::AttributeName, terminal::harmless};

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Longest wait for the settings of a hub elsewhere.
const PATIENCE: Duration = Duration::from_secs(3);

/// Topic of an attribute's own stream. The name of its server makes no difference to settings.
const OWN_STREAM: &str = "event-own/server/0";

/// Show the quality of service of a topic, and why each value holds
///
/// A value comes from the service that writes the topic, unless a setting beats it: [[topic]] of the site's hubs, then [[topic]] in the file
/// that TAMPU_LOG_CONFIG names, then the file that TAMPU_QOS names. The answer is about programs of this host with the environment of this
/// command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu bus qos log/error\n  tampu bus qos log/info --audience operator\n  \
    tampu bus qos --attribute lab/psu/1/voltage --json")]
pub struct ShowQos {
    /// The topic, such as log/error or event/SERVER
    #[arg(required_unless_present = "attribute", conflicts_with = "attribute")]
    topic: Option<String>,
    /// Streams for these audiences
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with = "attribute")]
    audience: Vec<String>,
    /// The stream of this attribute
    #[arg(long, short, value_name = "NAME")]
    attribute: Option<AttributeName>,
    /// Write one JSON object a line
    #[arg(long)]
    json: bool,
}

impl ShowQos {
    pub fn run(self, context: &Context) -> Outcome {
        let topic = self.topic.as_deref().unwrap_or(OWN_STREAM);
        let topic = TopicName::new(topic).map_err(|error| Failure::Usage(error.to_string()))?;
        let partition = Partition::of(self.audience.iter().map(String::as_str));
        let participant = context.common.connect.join_hub("tampu-bus-qos")?;
        if !participant.await_topic_settings(PATIENCE) {
            eprintln!("tampu: no hub has said its settings of topics");
        }
        let settings = participant.topic_settings();
        let attribute = self.attribute.as_ref().map(AttributeName::as_str);
        let subject = Subject { attribute, ..Subject::new(&topic, &partition) };
        let (default, service) = default_of(&topic);
        let explained = settings.explain(&default, &subject);
        explained.iter().try_for_each(|one| if self.json { self.line(one) } else { row(one, service) })?;
        match attribute {
            Some(name) if !self.json && !settings.names_attribute(name) => {
                eprintln!(
                    "tampu: no setting names the attribute: unless it is long, acknowledged or urgent, it shares the stream of its \
                     server (tampu bus qos event/SERVER)"
                );
            }
            _ => {}
        }
        Ok(())
    }

    fn line(&self, one: &Explained) -> Outcome {
        let value = |number: u64| if one.unit.is_empty() { json!(number != 0) } else { json!(number) };
        let mut line = json!({
            "field": one.field, "value": value(one.value), "unit": one.unit, "default": value(one.default),
            "ground": one.ground, "live": one.is_live,
        });
        let audience = (!self.audience.is_empty()).then(|| self.audience.join(","));
        let names = [("topic", self.topic.clone()), ("audience", audience)];
        let names = names.into_iter().chain([("attribute", self.attribute.as_ref().map(ToString::to_string))]);
        for (key, name) in names {
            if let Some(name) = name {
                line[key] = Value::String(name);
            }
        }
        written(writeln!(io::stdout(), "{line}"))
    }
}

fn row(one: &Explained, service: &str) -> Outcome {
    let value = match (one.unit, one.value) {
        ("", flag) => (flag != 0).to_string(),
        (unit, number) => format!("{number} {unit}"),
    };
    let mut why = match &one.ground {
        Some(ground) => ground.clone(),
        None => format!("default of {service}"),
    };
    if one.ground.is_some() && !one.is_live {
        why.push_str(" (streams that open from now on)");
    }
    let width = FIELDS.iter().map(|field| field.name.len()).max().unwrap_or_default();
    written(writeln!(io::stdout(), "{:width$}  {value:18}  {}", one.field, harmless(&why, true)))
}

/// Returns the quality of service of a topic without settings, and the service that writes it.
fn default_of(topic: &TopicName) -> (Qos, &'static str) {
    let (first, rest) = topic.as_str().split_once('/').unwrap_or((topic.as_str(), ""));
    match first.to_lowercase().as_str() {
        "log" | "log-attached" if let Ok(level) = rest.parse::<Level>() => {
            (tampu_log::logger::default_qos(level, Threshold::From(Level::Error)), "the log")
        }
        topics::NAMES => (topics::names_qos(), "declarations of attributes"),
        "event" => (topics::shared_qos(), "event servers"),
        "event-own" => (topics::own_qos(), "streams of one attribute"),
        "bulk-receivers" | "bulk-transfers" => (tampu_bulk::directory::default_qos(), "bulk data"),
        _ => (Qos::default(), "the bus"),
    }
}
