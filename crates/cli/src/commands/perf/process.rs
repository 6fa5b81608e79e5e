//! Common parts of the processes of a measurement: joining the bus, begin and end, one line for each report.

use std::{
    io::{BufRead, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;
use tampu_bus::{Participant, QosTable, ReaderState};
use tampu_types::SourceName;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
};

/// Time limit of the parts for one another at the beginning, and for the last acknowledgement at the end.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Prints one line at once.
pub fn say(report: &Value) -> Outcome {
    let mut out = std::io::stdout().lock();
    written(writeln!(out, "{report}").and_then(|()| out.flush()))
}

/// Commands to this part by its standard input.
#[derive(Debug, Default)]
pub struct Input {
    /// True after the first line: the process may begin.
    pub begun: AtomicBool,
    /// True after the end of the input.
    pub ended: AtomicBool,
}

/// Listens to it.
pub fn input() -> Arc<Input> {
    let input = Arc::new(Input::default());
    let told = input.clone();
    std::thread::spawn(move || {
        for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
            told.begun.store(true, Ordering::Release);
        }
        told.ended.store(true, Ordering::Release);
    });
    input
}

/// Joins the scene's domain under this name. The settings of topics of the environment beat these ones.
pub fn join(context: &Context, name: &str, qos: QosTable) -> Result<Participant, Failure> {
    let config = context.common.connect.config()?;
    let domain = config.domain.clone();
    let failed = |error: String| Failure::Unreachable(error);
    let engine = config.open().map_err(|error| failed(error.to_string()))?;
    let source = SourceName::new(name).map_err(|error| failed(error.to_string()))?;
    Participant::on(engine, domain, source, qos.and(config.qos)).map_err(|error| failed(error.to_string()))
}

/// Processor time of this process so far.
pub fn cpu_s() -> f64 {
    let spent = clock_gettime(ClockId::ProcessCPUTime);
    spent.tv_sec as f64 + spent.tv_nsec as f64 / 1e9
}

/// Waits until this many readers of the topic are matched.
pub fn await_readers(writer: &tampu_bus::Writer, readers: usize) -> Result<(), Failure> {
    let until = Instant::now() + PATIENCE;
    let here = || writer.readers().iter().filter(|reader| reader.state != ReaderState::Gone).count();
    while here() < readers {
        if Instant::now() > until {
            return Err(Failure::Failed(format!("{} of {readers} readers came within {PATIENCE:?}", here())));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
