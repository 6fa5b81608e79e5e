//! `tampu event pub`.

use std::{
    io::{BufRead, Write},
    time::Duration,
};

use clap::Args;
use tampu_event::server::{Attribute, Server, ServerSettings};
use tampu_types::event::{AttributeConfig, AttributeName, Band, Data, DataType, DevState, Element, Format, Kinds, Shape, Value};
use tampu_types::units::parse_duration;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Publish an attribute, for scripts and tests
///
/// The attribute exists while the command runs. Values are arguments, or lines of standard input: one number or
/// text for a scalar, several between commas for a spectrum.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu event pub lab/script/1/answer 42 --type DevLong --stay 10s\n  \
    while sleep 1; do date +%s.%N; done | tampu event pub lab/script/1/clock --user")]
pub struct Publish {
    /// The attribute: domain/family/member/attribute
    name: AttributeName,
    /// Values, one after the other
    values: Vec<String>,
    /// Data type of the elements
    #[arg(long = "type", default_value = "DevDouble", value_name = "TYPE")]
    data_type: DataType,
    /// Publish spectra: elements separated by commas
    #[arg(long)]
    spectrum: bool,
    /// The unit, as a UCUM code
    #[arg(long, value_name = "UNIT", default_value = "", hide_default_value = true)]
    unit: String,
    /// Send a change of at least this much, in the unit of the attribute: 0.5, or -1,2
    #[arg(long, value_name = "BAND", allow_hyphen_values = true)]
    abs: Option<Band>,
    /// Send a change of at least this much, in percent of the value sent last
    #[arg(long, value_name = "BAND", allow_hyphen_values = true)]
    rel: Option<Band>,
    /// Send every value as a user event and as a change
    #[arg(long)]
    user: bool,
    /// Stay for this time after the last value
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    stay: Option<Duration>,
    /// The name of this process on the bus
    #[arg(short, long, default_value = "tampu-event-pub", value_name = "NAME")]
    process: String,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Publish {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub(&self.process)?;
        let failed = |error: &dyn std::error::Error| Failure::Failed(error.to_string());
        let server = Server::start(participant, ServerSettings::default()).map_err(|error| failed(&error))?;
        let format = if self.spectrum { Format::Spectrum } else { Format::Scalar };
        let mut config = AttributeConfig::new(self.name.clone(), self.data_type, format);
        config.unit.clone_from(&self.unit);
        config.criteria.change.abs = self.abs;
        config.criteria.change.rel = self.rel;
        let attribute = server.declare(config).map_err(|error| failed(&error))?;
        let mut published = self.values.len();
        if self.values.is_empty() {
            for line in std::io::stdin().lock().lines() {
                if context.interrupt.asked() {
                    break;
                }
                self.push(&attribute, line.map_err(|error| Failure::failed("standard input", error))?.trim())?;
                published += 1;
            }
        }
        self.values.iter().try_for_each(|value| self.push(&attribute, value))?;
        server.send_now();
        if self.json {
            let line = serde_json::json!({ "attribute": self.name, "published": published });
            written(writeln!(std::io::stdout().lock(), "{line}"))?;
        }
        if let Some(stay) = self.stay {
            context.interrupt.wait(stay);
        }
        Ok(())
    }

    fn push(&self, attribute: &Attribute, text: &str) -> Outcome {
        let parts: Vec<&str> =
            if self.spectrum { text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect() } else { vec![text] };
        match self.data_type {
            DataType::Boolean => self.elements::<bool>(attribute, &parts),
            DataType::UChar => self.elements::<u8>(attribute, &parts),
            DataType::Short => self.elements::<i16>(attribute, &parts),
            DataType::UShort => self.elements::<u16>(attribute, &parts),
            DataType::Long => self.elements::<i32>(attribute, &parts),
            DataType::ULong => self.elements::<u32>(attribute, &parts),
            DataType::Long64 => self.elements::<i64>(attribute, &parts),
            DataType::ULong64 => self.elements::<u64>(attribute, &parts),
            DataType::Float => self.elements::<f32>(attribute, &parts),
            DataType::Double => self.elements::<f64>(attribute, &parts),
            DataType::String => self.elements::<String>(attribute, &parts),
            DataType::State => self.elements::<DevState>(attribute, &parts),
            DataType::Encoded => self.send(attribute, Value::encoded("text", text.as_bytes())),
            DataType::Enum => Err(Failure::Usage("a DevEnum needs labels; publish it from a program".to_owned())),
        }
    }

    fn elements<T: Element + std::str::FromStr>(&self, attribute: &Attribute, parts: &[&str]) -> Outcome {
        let read = |part: &&str| part.parse().map_err(|_| Failure::Usage(format!("invalid {} '{part}'", self.data_type)));
        let all: Vec<T> = parts.iter().map(read).collect::<Result<_, _>>()?;
        let data: Data<'_> = T::data(&all);
        let shape = if self.spectrum { Shape::spectrum(all.len() as u32) } else { Shape::SCALAR };
        self.send(attribute, Value { data, shape })
    }

    fn send(&self, attribute: &Attribute, value: Value<'_>) -> Outcome {
        let reading = tampu_event::criteria::Reading::of(value);
        let pushed = if self.user {
            attribute.push_as(Kinds::USER | Kinds::CHANGE, &reading, None)
        } else {
            attribute.push_reading(&reading, None)
        };
        pushed.map(drop).map_err(|error| Failure::Failed(error.to_string()))
    }
}
