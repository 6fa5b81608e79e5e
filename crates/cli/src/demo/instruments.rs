//! Attributes of the observatory's instruments: mounts, cryostats, the weather, the correlator, a camera, and
//! occasional faults.
//!
//! There are two servers, as in practice: the antennas' control, and the correlator with its spectra and images. Every
//! attribute is polled by its server. Its readings follow from the seed and the number of readings, not from the clock.

use std::sync::Arc;

use tampu_bus::{Participant, QosTable, engine::Engine};
use tampu_event::{
    Attribute, Server,
    criteria::Reading,
    server::{PushError, Pushed, ServerSettings},
};
use tampu_types::{
    Domain, SourceName,
    event::{AttributeConfig, AttributeName, DataType, DevState, Failure as Fault, Format, Kinds, Limits, Value},
};

use crate::{
    demo::{ANTENNAS, chance::Chance},
    failure::Failure,
};

/// Elements of the correlator's spectrum: 4 KB.
const CHANNELS: u32 = 1024;
/// The camera's image: 1 MB.
const IMAGE: (u32, u32) = (1024, 512);
/// Readings of a cryostat in one round, of which the last few fail.
const ROUND: u64 = 60;
const FAILING: u64 = 5;

/// The instruments at work, until dropped.
pub struct Instruments {
    // Dropped before the servers: attributes are withdrawn while the servers still publish.
    _attributes: Vec<Attribute>,
    _servers: Vec<Server>,
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::failed("the demo's instruments", error)
}

fn config(name: &str, data_type: DataType, format: Format, unit: &str) -> Result<AttributeConfig, Failure> {
    let name: AttributeName = name.parse().map_err(failed)?;
    Ok(AttributeConfig { unit: unit.to_owned(), ..AttributeConfig::new(name, data_type, format) })
}

impl Instruments {
    /// Joins the bus and begins.
    pub fn start(engine: &Arc<dyn Engine>, domain: &Domain, seed: u64) -> Result<Instruments, Failure> {
        let server = |name: &str| -> Result<Server, Failure> {
            let source = SourceName::new(name).map_err(failed)?;
            let participant = Participant::on(engine.clone(), domain.clone(), source, QosTable::default()).map_err(failed)?;
            Server::start(participant, ServerSettings::default()).map_err(failed)
        };
        let (control, correlator) = (server("CONTROL/instruments")?, server("CORR/instruments")?);
        let mut attributes = Vec::new();
        for antenna in 1..=ANTENNAS {
            let chance = Chance::new(seed.wrapping_add(antenna as u64));
            attributes.push(mount(&control, antenna, chance)?);
            attributes.push(cryostat(&control, antenna)?);
            attributes.push(lock(&control, antenna, Chance::new(seed ^ antenna as u64))?);
        }
        for (name, unit, mean, swing) in [
            ("temperature", "Cel", -3.0, 4.0),
            ("wind", "m/s", 7.0, 6.0),
            ("humidity", "%", 12.0, 8.0),
            ("pressure", "hPa", 556.0, 2.0),
        ] {
            attributes.push(weather(&control, name, unit, mean, swing)?);
        }
        attributes.push(spectrum(&correlator)?);
        attributes.push(camera(&correlator)?);
        Ok(Instruments { _attributes: attributes, _servers: vec![control, correlator] })
    }
}

/// Declares an attribute and has it read.
fn polled(
    server: &Server,
    config: AttributeConfig,
    period_ms: u32,
    mut read: impl FnMut(&Attribute, u64) -> Result<Pushed, PushError> + Send + 'static,
) -> Result<Attribute, Failure> {
    let attribute = server.declare(config).map_err(failed)?;
    let mut count = 0;
    attribute.poll(period_ms, move |attribute| {
        // If another observatory of this name runs, it owns the attributes, and `tampu event doctor` reports it.
        let _ = read(attribute, count);
        count += 1;
    });
    Ok(attribute)
}

/// Azimuth and elevation, commanded and actual, 20 times a second.
fn mount(server: &Server, antenna: usize, mut chance: Chance) -> Result<Attribute, Failure> {
    let mut config = config(&format!("obs/mount/dv{antenna:02}/position"), DataType::Double, Format::Spectrum, "deg")?;
    config.max_x = 4;
    config.label = "azimuth, elevation; commanded, actual".to_owned();
    config.criteria.change.abs = "0.0005".parse().ok();
    polled(server, config, 50, move |attribute, count| {
        let turn = count as f64 / 20.0;
        let commanded = [180.0 + 60.0 * (turn / 97.0).sin(), 50.0 + 20.0 * (turn / 61.0).cos()];
        let actual = commanded.map(|angle| angle + chance.between(-0.0003, 0.0003));
        attribute.push(Value::spectrum(&[commanded[0], commanded[1], actual[0], actual[1]]))
    })
}

/// Four stages; the sensor of one antenna fails now and then.
fn cryostat(server: &Server, antenna: usize) -> Result<Attribute, Failure> {
    let mut config = config(&format!("obs/cryostat/dv{antenna:02}/temperature"), DataType::Double, Format::Spectrum, "K")?;
    config.max_x = 4;
    config.label = "stages".to_owned();
    config.limits = Limits { alarm_high: Some(160.0), warning_high: Some(130.0), ..Limits::default() };
    config.criteria.change.abs = "0.02".parse().ok();
    config.criteria.archive_period_ms = Some(60_000);
    polled(server, config, 1000, move |attribute, count| {
        if antenna == 3 && count % ROUND >= ROUND - FAILING {
            return attribute.fail(&[Fault::new("Cryo_SensorOpen", "the sensor of stage 2 does not answer")]);
        }
        let drift = (count as f64 / 40.0 + antenna as f64).sin() * 0.2;
        // One warms up slowly and is cooled again.
        let warm = if antenna == 5 { (count % 120) as f64 / 3.0 } else { 0.0 };
        attribute.push(Value::spectrum(&[4.0 + drift / 10.0, 15.0 + drift, 70.0 + drift, 110.0 + warm + drift]))
    })
}

/// The state of the first local oscillator.
fn lock(server: &Server, antenna: usize, mut chance: Chance) -> Result<Attribute, Failure> {
    let config = config(&format!("obs/lo/dv{antenna:02}/state"), DataType::State, Format::Scalar, "")?;
    let mut state = DevState::On;
    polled(server, config, 500, move |attribute, _| {
        let roll = chance.between(0.0, 1.0);
        state = match state {
            DevState::On if roll < 0.01 => DevState::Fault,
            DevState::Fault if roll < 0.2 => DevState::Init,
            DevState::Init if roll < 0.5 => DevState::On,
            other => other,
        };
        attribute.push(Value::scalar(&state))
    })
}

fn weather(server: &Server, name: &str, unit: &str, mean: f64, swing: f64) -> Result<Attribute, Failure> {
    let mut config = config(&format!("obs/weather/1/{name}"), DataType::Double, Format::Scalar, unit)?;
    config.criteria.change.rel = "1".parse().ok();
    config.criteria.archive_period_ms = Some(60_000);
    let pace = 20.0 + name.len() as f64;
    polled(server, config, 1000, move |attribute, count| {
        attribute.push(Value::scalar(&(mean + swing * (count as f64 / pace).sin())))
    })
}

/// A line that moves through a band, ten times a second.
fn spectrum(server: &Server) -> Result<Attribute, Failure> {
    let mut config = config("obs/correlator/1/spectrum", DataType::Float, Format::Spectrum, "Jy")?;
    config.max_x = CHANNELS;
    let mut channels = vec![0.0f32; CHANNELS as usize];
    polled(server, config, 100, move |attribute, count| {
        let centre = (count % u64::from(CHANNELS)) as f32;
        for (at, channel) in channels.iter_mut().enumerate() {
            let distance = (at as f32 - centre) / 20.0;
            *channel = 0.1 + (-distance * distance).exp();
        }
        attribute.push_as(Kinds::USER | Kinds::CHANGE, &Reading::of(Value::spectrum(&channels)), None)
    })
}

/// An image a second, written where the subscribers read it.
fn camera(server: &Server) -> Result<Attribute, Failure> {
    let mut config = config("obs/camera/1/image", DataType::UShort, Format::Image, "")?;
    (config.max_x, config.max_y) = IMAGE;
    polled(server, config, 1000, move |attribute, count| {
        let mut image = attribute.lend::<u16>(tampu_types::event::Shape::image(IMAGE.0, IMAGE.1))?;
        image.iter_mut().enumerate().for_each(|(at, pixel)| *pixel = (at as u64 + count) as u16);
        image.publish(Kinds::USER | Kinds::CHANGE, tampu_types::event::Quality::Valid)
    })
}
