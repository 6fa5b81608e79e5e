//! Declaration of an attribute by its server: its number in this incarnation, its configuration, and the stream of its
//! events.
//!
//! A server declares into one stream of its own. Readers of that stream know all attributes, and notice when the server
//! dies.

use serde::{Deserialize, Serialize};

use super::{
    config::{AttributeConfig, Band, Criteria, Limits, Thresholds, Writable},
    data::{DataType, Format},
    name::AttributeName,
    view::unknown,
};
use crate::cdr::{BadCdr, Decoder, ENCAPSULATION, encode};

/// The longest label, unit or description, bytes.
pub const TEXT_LIMIT: usize = 65_536;
/// The most labels of a DevEnum.
pub const LABELS_LIMIT: usize = 32_767;

/// Presence of an attribute on its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Presence {
    /// The server has removed the attribute.
    Withdrawn = 0,
    /// The server has the attribute.
    Declared = 1,
}

/// A server's declaration of one attribute. The last one is valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Declaration {
    /// Its number in this incarnation of the server; not used for another attribute later.
    pub attribute: u32,
    /// Counts the configurations, from 1.
    pub epoch: u32,
    /// Presence of the attribute on the server.
    pub presence: Presence,
    /// True if its events go to a stream of its own, not to the common one of the server.
    pub own_stream: bool,
    /// True if its events also go into the streams for other hosts, as far as readers there ask for that.
    pub for_hosts: bool,
    /// True if other servers may have it too, with the same declaration.
    pub redundant: bool,
    /// Configuration of the attribute.
    pub config: AttributeConfig,
    /// Members of a later release, unchanged.
    pub unknown: Vec<u8>,
}

/// Reason for which a declaration cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} of {name} has {length} bytes or entries; {limit} are allowed")]
pub struct BadDeclaration {
    /// Member that is too long.
    pub what: &'static str,
    /// Name of the attribute.
    pub name: AttributeName,
    /// Length of that member in bytes.
    pub length: usize,
    /// The longest allowed.
    pub limit: usize,
}

impl Declaration {
    /// Writes the declaration into `out`, whose content is replaced.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), BadDeclaration> {
        self.check()?;
        let config = &self.config;
        out.clear();
        out.extend_from_slice(&ENCAPSULATION);
        let start = encode::begin(out);
        encode::u32(out, self.attribute);
        encode::u32(out, self.epoch);
        let flags = u8::from(self.own_stream) | u8::from(self.redundant) << 1 | u8::from(self.for_hosts) << 2;
        out.extend([self.presence as u8, flags, config.data_type as u8, config.format as u8]);
        encode::u32(out, config.max_x);
        encode::u32(out, config.max_y);
        encode::u32(out, u32::from(config.writable as u8));
        encode::string(out, config.name.as_str());
        encode::string(out, &config.label);
        encode::string(out, &config.description);
        encode::string(out, &config.unit);
        let labels = encode::begin(out);
        encode::u32(out, config.labels.len() as u32);
        config.labels.iter().for_each(|label| encode::string(out, label));
        encode::end(out, labels);
        config.limits.numbers().into_iter().for_each(|number| put_number(out, number));
        let Criteria { change, archive, archive_period_ms, period_ms } = config.criteria;
        for band in [change.rel, change.abs, archive.rel, archive.abs] {
            put_number(out, band.map(Band::low));
            put_number(out, band.map(Band::high));
        }
        put_count(out, archive_period_ms);
        encode::u64(out, period_ms);
        put_count(out, config.polled_ms.map(u64::from));
        encode::align(out);
        out.extend_from_slice(&self.unknown);
        encode::end(out, start);
        Ok(())
    }

    fn check(&self) -> Result<(), BadDeclaration> {
        let config = &self.config;
        let within = |what, length, limit| {
            if length > limit { Err(BadDeclaration { what, name: config.name.clone(), length, limit }) } else { Ok(()) }
        };
        within("label", config.label.len(), TEXT_LIMIT)?;
        within("description", config.description.len(), TEXT_LIMIT)?;
        within("unit", config.unit.len(), TEXT_LIMIT)?;
        within("labels", config.labels.len(), LABELS_LIMIT)?;
        config.labels.iter().try_for_each(|label| within("label of a value", label.len(), TEXT_LIMIT))
    }

    /// Reads a declaration.
    pub fn parse(bytes: &[u8]) -> Result<Declaration, BadCdr> {
        let mut at = Decoder::new(bytes)?.delimited()?;
        let [attribute, epoch] = at.u32s()?;
        // A number of a later release is read as withdrawn: an unreadable attribute is better not offered.
        let presence = if at.u8()? == 1 { Presence::Declared } else { Presence::Withdrawn };
        let flags = at.u8()?;
        let data_type = DataType::from_number(at.u8()?).ok_or_else(|| at.bad("unknown data type"))?;
        let format = Format::from_number(at.u8()?).ok_or_else(|| at.bad("unknown format"))?;
        let [max_x, max_y, writable] = at.u32s()?;
        let text = |at: &mut Decoder<'_>| match at.string()? {
            long if long.len() > TEXT_LIMIT => Err(at.bad("a text is too long")),
            text => Ok(text.to_owned()),
        };
        let name = AttributeName::new(at.string()?).map_err(|_| at.bad("invalid attribute name"))?;
        let (label, description, unit) = (text(&mut at)?, text(&mut at)?, text(&mut at)?);
        let mut listed = at.delimited()?;
        let count = listed.count(5)?;
        if count > LABELS_LIMIT {
            return Err(listed.bad("too many labels"));
        }
        let labels = (0..count).map(|_| text(&mut listed)).collect::<Result<_, _>>()?;
        let mut numbers = [None; 6];
        for number in &mut numbers {
            *number = number_at(&mut at)?;
        }
        let mut bands = [None; 4];
        for band in &mut bands {
            *band = match (number_at(&mut at)?, number_at(&mut at)?) {
                (Some(low), Some(high)) => Some(Band::new(low, high).map_err(|_| at.bad("invalid threshold"))?),
                _ => None,
            };
        }
        let [change_rel, change_abs, archive_rel, archive_abs] = bands;
        let archive_period_ms = count_at(&mut at)?;
        let period_ms = at.u64()?;
        let polled_ms = count_at(&mut at)?.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
        let config = AttributeConfig {
            name,
            data_type,
            format,
            max_x,
            max_y,
            writable: Writable::from_number(writable as u8),
            label,
            description,
            unit,
            labels,
            limits: Limits::of_numbers(numbers),
            criteria: Criteria {
                change: Thresholds { rel: change_rel, abs: change_abs },
                archive: Thresholds { rel: archive_rel, abs: archive_abs },
                archive_period_ms,
                period_ms,
            },
            polled_ms,
        };
        Ok(Declaration {
            attribute,
            epoch,
            presence,
            own_stream: flags & 1 != 0,
            for_hosts: flags & 4 != 0,
            redundant: flags & 2 != 0,
            config,
            unknown: unknown(at).to_vec(),
        })
    }
}

fn put_number(out: &mut Vec<u8>, number: Option<f64>) {
    put_count(out, number.map(f64::to_bits));
}

fn number_at(at: &mut Decoder<'_>) -> Result<Option<f64>, BadCdr> {
    Ok(count_at(at)?.map(f64::from_bits))
}

fn put_count(out: &mut Vec<u8>, count: Option<u64>) {
    out.push(u8::from(count.is_some()));
    if let Some(count) = count {
        encode::u64(out, count);
    }
}

fn count_at(at: &mut Decoder<'_>) -> Result<Option<u64>, BadCdr> {
    if at.present()? { at.u64().map(Some) } else { Ok(None) }
}
