//! Publishes a pressure every second: `cargo run -p tampu-event --example server`. The example `client` receives it.

use std::{thread::sleep, time::Duration};

use tampu_event::{AttributeConfig, DataType, Format, Server, Value, join, server::ServerSettings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::start(join("vacuum")?, ServerSettings::default())?;
    let mut config = AttributeConfig::new("sr/vacuum/c01-1/pressure".parse()?, DataType::Double, Format::Scalar);
    config.unit = "mbar".into();
    // A change of 5 % sends a change event.
    config.criteria.change.rel = Some("5".parse()?);
    let pressure = server.declare(config)?;
    for step in 0u32.. {
        let value = 1.2e-9 * (1.0 + 0.02 * f64::from(step % 10));
        let pushed = pressure.push(Value::scalar(&value))?;
        println!("{value:.3e} mbar, sent as: {}", pushed.kinds);
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
