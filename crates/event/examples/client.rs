//! Prints the events of all vacuum pressures: `cargo run -p tampu-event --example client`. The example `server` publishes one.

use std::time::Duration;

use tampu_event::{
    Client,
    client::{ClientSettings, SubscribeOptions},
    join,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::start(join("panel")?, ClientSettings::default())?;
    // At most 1000 events wait; beyond that the oldest is dropped and counted.
    let events = client.stream(SubscribeOptions::of(["*/vacuum/*/pressure".parse()?]), 1000);
    loop {
        let Some(event) = events.next(Duration::from_secs(5)) else {
            println!("no event for 5 s; is a server running?");
            continue;
        };
        let config = &event.attribute.config;
        match event.reading().and_then(|reading| reading.value?.number(0)) {
            Some(value) => println!("{}: {value:e} {} ({})", config.name, config.unit, event.reason.name()),
            None => println!("{}: {}", config.name, event.reason.name()),
        }
    }
}
