//! `tampu event pub`.

use std::{io::BufRead, time::Duration};

use clap::Args;
use tampu_event::server::{Attribute, Server, ServerSettings};
use tampu_types::event::{AttributeConfig, AttributeName, Band, Data, DataType, DevState, Element, Format, Kinds, Shape, Value};

use crate::{
    commands::Context,
    failure::{Failure, Outcome},
    time_expression::parse_duration,
};

/// Publish an attribute, for scripts and tests
///
/// It exists while the command runs. Values are given as arguments, or else read from standard input, a line each: one number or
/// text for a scalar, several between commas for a spectrum.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu event pub lab/script/1/answer 42 --type DevLong --keep 10s\n  \
    while sleep 1; do date +%s.%N; done | tampu event pub lab/script/1/clock --user")]
pub struct Publish {
    /// The attribute: domain/family/member/attribute
    name: AttributeName,
    /// Values, one after the other
    values: Vec<String>,
    /// The type of the elements
    #[arg(short = 't', long = "type", default_value = "DevDouble", value_name = "TYPE")]
    data_type: DataType,
    /// Values are spectra, elements between commas
    #[arg(long)]
    spectrum: bool,
    /// The unit, a UCUM code
    #[arg(long, default_value = "")]
    unit: String,
    /// Changes of at least this much are sent: 0.5, or -1,2
    #[arg(long, value_name = "BAND", allow_hyphen_values = true)]
    abs: Option<Band>,
    /// The same in percent
    #[arg(long, value_name = "BAND", allow_hyphen_values = true)]
    rel: Option<Band>,
    /// Every value is sent, as a user event and as a change
    #[arg(long)]
    user: bool,
    /// Stay for this time after the last value
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    keep: Option<Duration>,
    /// The source's name
    #[arg(long, default_value = "tampu-event-pub", value_name = "NAME")]
    source: String,
}

impl Publish {
    pub fn run(self, context: &Context) -> Outcome {
        let participant = context.common.connect.join_hub(&self.source)?;
        let failed = |error: &dyn std::error::Error| Failure::Failed(error.to_string());
        let server = Server::start(participant, ServerSettings::default()).map_err(|error| failed(&error))?;
        let format = if self.spectrum { Format::Spectrum } else { Format::Scalar };
        let mut config = AttributeConfig::new(self.name.clone(), self.data_type, format);
        config.unit.clone_from(&self.unit);
        config.criteria.change.abs = self.abs;
        config.criteria.change.rel = self.rel;
        let attribute = server.declare(config).map_err(|error| failed(&error))?;
        if self.values.is_empty() {
            for line in std::io::stdin().lock().lines() {
                if context.interrupt.asked() {
                    break;
                }
                self.push(&attribute, line.map_err(|error| Failure::failed("standard input", error))?.trim())?;
            }
        }
        self.values.iter().try_for_each(|value| self.push(&attribute, value))?;
        server.send_now();
        if let Some(keep) = self.keep {
            context.interrupt.wait(keep);
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
        let read = |part: &&str| part.parse().map_err(|_| Failure::Usage(format!("'{part}' is no {}", self.data_type)));
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
