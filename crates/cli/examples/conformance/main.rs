//! Driver of the conformance kit in Rust. `tests/conformance/README.md` has its protocol, `tests/peers/conformance.py` runs it.

use std::{
    collections::{BTreeMap, VecDeque},
    error::Error,
    fmt::Display,
    io::{Write, stdin, stdout},
    str::FromStr,
    thread::sleep,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value as Json, json};
use tampu_archive::query::Query;
use tampu_event::{
    Attribute, AttributeConfig, Client, Kinds, Quality, Server, Value,
    client::{ClientSettings, Event, SubscribeOptions, Subscription},
    criteria::Reading,
    join,
    server::ServerSettings,
};
use tampu_log::{
    LogSettings, Logger, alert, collector::ask, critical, debug, delouse, emergency, error, info, notice, trace, warning,
};
use tampu_types::event::{
    DataType, EventKind, Format, Missed,
    data::{DevState, Shape},
    value::Values,
};

mod bulk;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// One line from the runner. The verb says which members count.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Command {
    #[serde(rename = "do")]
    verb: String,
    name: String,
    #[serde(rename = "type")]
    data_type: String,
    format: String,
    labels: Vec<String>,
    elements: Vec<String>,
    x: String,
    y: String,
    quality: String,
    kinds: Vec<String>,
    attributes: Vec<String>,
    level: String,
    message: String,
    word: String,
    count: String,
    ratio: String,
    truth: String,
    process: String,
    directory: String,
    receivers: String,
    rate: String,
    parameter: String,
    file: String,
    blocks: Vec<String>,
}

/// The process: what it publishes and what it follows.
struct Driver {
    server: Server,
    client: Client,
    logger: Logger,
    attributes: BTreeMap<String, Attribute>,
    subscriptions: Vec<Subscription>,
    bulk: bulk::Bulk,
}

fn main() -> Outcome {
    let name = std::env::args().nth(1).ok_or("give the name of the process")?;
    let mut driver = Driver {
        server: Server::start(join(&format!("{name}/server"))?, ServerSettings::default())?,
        client: Client::start(join(&format!("{name}/client"))?, ClientSettings::default())?,
        logger: Logger::open(LogSettings::from_env(name.parse()?)?)?,
        attributes: BTreeMap::new(),
        subscriptions: Vec::new(),
        bulk: bulk::Bulk::new(&format!("{name}/bulk"))?,
    };
    say(&json!({"line": "ready"}));
    for line in stdin().lines() {
        let command: Command = serde_json::from_str(&line?)?;
        if command.verb == "end" {
            break;
        }
        match driver.run(&command) {
            Ok(()) if command.verb == "push" || command.verb == "log" => {}
            Ok(()) => say(&json!({"line": "done", "do": command.verb, "name": command.name})),
            Err(why) => say(&json!({"line": "error", "do": command.verb, "name": command.name, "why": why.to_string()})),
        }
    }
    Ok(())
}

/// Prints a line for the runner.
fn say(line: &Json) {
    let mut out = stdout().lock();
    // Without a runner nobody is left to read it.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

impl Driver {
    fn run(&mut self, command: &Command) -> Outcome {
        match command.verb.as_str() {
            "declare" => {
                let mut config = AttributeConfig::new(command.name.parse()?, command.data_type.parse()?, command.format.parse()?);
                config.labels.clone_from(&command.labels);
                self.attributes.insert(command.name.clone(), self.server.declare(config)?);
            }
            "readable" => {
                let config = AttributeConfig::new(command.name.parse()?, DataType::Double, Format::Scalar);
                let attribute = self.server.declare(config)?;
                let mut left = VecDeque::from(command.elements.clone());
                attribute.on_read(Duration::ZERO, move |attribute| {
                    let next = if left.len() > 1 { left.pop_front() } else { left.front().cloned() };
                    let pushed = values(DataType::Double, &Vec::from_iter(next)).map(|values| {
                        let shape = Shape { format: Format::Scalar, x: 1, y: 0 };
                        attribute.push(Value { data: values.as_data(), shape }).map(drop)
                    });
                    // What is not pushed is seen by the runner.
                    let _ = pushed;
                });
                self.attributes.insert(command.name.clone(), attribute);
            }
            "withdraw" => drop(self.attributes.remove(&command.name)),
            "push" => self.push(command)?,
            "follow" => {
                let patterns = all(&command.attributes)?;
                let options = SubscribeOptions::of(patterns).kinds(kinds(&command.kinds)?);
                self.subscriptions.push(self.client.subscribe(options, |event| say(&shown(event))));
            }
            "log" => self.log(command)?,
            "records" => self.records(command)?,
            "receive" => self.bulk.receive(command)?,
            "sender" => self.bulk.open(command)?,
            "transfer" => self.bulk.transfer(command)?,
            "close" => self.bulk.close(command),
            other => return Err(format!("there is no command '{other}'").into()),
        }
        Ok(())
    }

    fn attribute(&self, name: &str) -> Outcome<&Attribute> {
        Ok(self.attributes.get(name).ok_or("not declared")?)
    }

    fn push(&self, command: &Command) -> Outcome {
        let attribute = self.attribute(&command.name)?;
        let config = attribute.config();
        let values = values(config.data_type, &command.elements)?;
        let shape = Shape { format: config.format, x: command.x.parse()?, y: command.y.parse()? };
        let value = Value { data: values.as_data(), shape };
        let quality: Quality = command.quality.parse()?;
        if !command.kinds.is_empty() {
            attribute.push_as(kinds(&command.kinds)?, &Reading { quality, ..Reading::of(value) }, None)?;
        } else if quality == Quality::Valid {
            attribute.push(value)?;
        } else {
            attribute.push_reading(&Reading { quality, ..Reading::of(value) }, None)?;
        }
        Ok(())
    }

    fn log(&self, command: &Command) -> Outcome {
        let (logger, message, word) = (&self.logger, &command.message, &command.word);
        let (count, ratio, truth): (i64, f64, bool) = (command.count.parse()?, command.ratio.parse()?, command.truth.parse()?);
        macro_rules! at {
            ($($level:literal => $macro:ident),*) => {
                match command.level.as_str() {
                    $($level => $macro!(logger, "{}", message; word = word, count = count, ratio = ratio, truth = truth),)*
                    other => return Err(format!("there is no level '{other}'").into()),
                }
            };
        }
        at!("Trace" => trace, "Delouse" => delouse, "Debug" => debug, "Info" => info, "Notice" => notice, "Warning" => warning,
            "Error" => error, "Critical" => critical, "Alert" => alert, "Emergency" => emergency);
        Ok(())
    }

    /// Prints the records of a process, once the archive has as many as asked for.
    fn records(&self, command: &Command) -> Outcome {
        let query = Query::from_json(json!({"fields": {"process": [command.process]}}).to_string().as_bytes())?;
        let wanted: usize = command.count.parse()?;
        let mut found = Vec::new();
        for _ in 0..200 {
            found.clear();
            let mut keep = |record| {
                found.push(record);
                true
            };
            ask::query(self.client.participant(), &query, Duration::from_secs(10), &mut keep)?;
            if found.len() >= wanted {
                break;
            }
            sleep(Duration::from_millis(50));
        }
        for record in found {
            let names: Vec<_> = record.data.iter().map(|datum| &datum.name).collect();
            let values: Vec<_> = record.data.iter().map(|datum| &datum.value).collect();
            say(&json!({"line": "record", "process": record.process, "level": record.level.name(), "message": record.message,
                "names": names, "values": values}));
        }
        Ok(())
    }
}

/// An event or a notice as the runner reads it.
fn shown(event: &Event<'_>) -> Json {
    let missed = match event.missed {
        Missed::Nothing => vec![],
        Missed::Exactly(from, to) => vec![from.to_string(), to.to_string()],
        Missed::Unknown => vec!["unknown".to_owned()],
    };
    let name = event.attribute.config.name.to_string();
    let mut line = json!({"line": "event", "name": name, "source": event.source.source.to_string(), "reason": event.reason.name(),
        "missed": missed});
    let Some(reading) = event.reading else { return line };
    let errors = reading.errors.iter().flat_map(|error| [&error.reason, &error.description, &error.origin]);
    line["number"] = json!(event.number.to_string());
    line["quality"] = json!(reading.quality.name());
    line["errors"] = json!(errors.collect::<Vec<_>>());
    if let Some(value) = &reading.value {
        line["type"] = json!(value.data_type().name());
        line["format"] = json!(Format::name(reading.shape.format));
        line["x"] = json!(reading.shape.x.to_string());
        line["y"] = json!(reading.shape.y.to_string());
        line["elements"] = json!(texts(&value.to_values()));
    }
    line
}

fn all<T: FromStr<Err: Error + 'static>>(texts: &[String]) -> Outcome<Vec<T>> {
    Ok(texts.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

fn kinds(names: &[String]) -> Outcome<Kinds> {
    let kinds: Vec<EventKind> = all(names)?;
    Ok(Kinds(kinds.iter().fold(0, |bits, kind| bits | 1 << *kind as u32)))
}

/// Reads elements from their texts.
fn values(data_type: DataType, texts: &[String]) -> Outcome<Values> {
    let hex = |text: &String| u64::from_str_radix(text, 16);
    Ok(match data_type {
        DataType::Boolean => Values::Boolean(all(texts)?),
        DataType::UChar => Values::UChar(all(texts)?),
        DataType::Short => Values::Short(all(texts)?),
        DataType::UShort => Values::UShort(all(texts)?),
        DataType::Long => Values::Long(all(texts)?),
        DataType::ULong => Values::ULong(all(texts)?),
        DataType::Long64 => Values::Long64(all(texts)?),
        DataType::ULong64 => Values::ULong64(all(texts)?),
        DataType::Float => {
            Values::Float(texts.iter().map(|text| hex(text).map(|bits| f32::from_bits(bits as u32))).collect::<Result<_, _>>()?)
        }
        DataType::Double => Values::Double(texts.iter().map(|text| hex(text).map(f64::from_bits)).collect::<Result<_, _>>()?),
        DataType::String => Values::String(texts.to_vec()),
        DataType::State => Values::State(all::<DevState>(texts)?),
        DataType::Enum => Values::Enum(all(texts)?),
        DataType::Encoded => {
            let [format, data] = texts else { return Err("encoded bytes are a format and the bytes".into()) };
            let byte = |at| u8::from_str_radix(&data[at..at + 2], 16);
            Values::Encoded { format: format.clone(), data: (0..data.len()).step_by(2).map(byte).collect::<Result<_, _>>()? }
        }
    })
}

/// Writes elements as texts.
fn texts(values: &Values) -> Vec<String> {
    fn each(all: &[impl Display]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }
    match values {
        Values::Boolean(all) => each(all),
        Values::UChar(all) => each(all),
        Values::Short(all) | Values::Enum(all) => each(all),
        Values::UShort(all) => each(all),
        Values::Long(all) => each(all),
        Values::ULong(all) => each(all),
        Values::Long64(all) => each(all),
        Values::ULong64(all) => each(all),
        Values::Float(all) => all.iter().map(|number| format!("{:08x}", number.to_bits())).collect(),
        Values::Double(all) => all.iter().map(|number| format!("{:016x}", number.to_bits())).collect(),
        Values::String(all) => all.clone(),
        Values::State(all) => each(all),
        Values::Encoded { format, data } => vec![format.clone(), data.iter().map(|byte| format!("{byte:02x}")).collect()],
    }
}
