//! `tampu event bridge-tango`.

use std::{io::Write, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use serde_json::json;
use tampu_hub::Config;
use tampu_tango::{Bridge, SOURCE, settings::TangoSettings};
use tampu_types::event::{AttributePattern, EventKind};
use tampu_types::units::parse_duration;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    output::table::printable,
};

/// Bridge events from Tango to Tampu, and attributes of Tampu to Tango, until it ends
///
/// Servers and clients of Tango stay as they are. Events of Tango come under their own names, from the source tango@INSTANCE; attributes of Tampu
/// are devices of the server TampuBridge/INSTANCE, and what came from Tango is not among them. Needs Python 3.9 and PyTango 10
/// (python3 -m pip install pytango), which run in processes of their own. Settings are flags, else those of [tango] in --config.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu event bridge-tango --tango-host tango-db:10000 --subscribe 'sr/vacuum/*/pressure' --serve 'antenna/*'\n  \
    tampu event bridge-tango --no-database --subscribe 'tango://host:45678/lab/gauge/1/*#dbase=no'\n  \
    tampu event bridge-tango --no-database --serve '*/mount/*' --listen 127.0.0.1:45679"
)]
pub struct BridgeTango {
    /// Attributes of Tango: domain/family/member/attribute with * and ?, or with tango://HOST:PORT/ before and #dbase=no behind it
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    subscribe: Vec<String>,
    /// Attributes of Tampu to serve: names, or patterns with * and ?
    #[arg(long, value_name = "PATTERN", num_args = 1..)]
    serve: Vec<AttributePattern>,
    /// Address of the Tango database [default: TANGO_HOST]
    #[arg(long, value_name = "ADDRESS")]
    tango_host: Option<String>,
    /// Work without a Tango database
    #[arg(long, conflicts_with = "tango_host")]
    no_database: bool,
    /// Kinds of events taken from Tango [default: change,alarm,archive,user,data_ready,interface]
    #[arg(short, long, value_delimiter = ',', value_name = "KIND,...")]
    kind: Vec<EventKind>,
    /// Address of served attributes without a database [default: 127.0.0.1 and a free port]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Have Tango poll the served attributes at this period, which gives its clients periodic events
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    poll: Option<Duration>,
    /// Name of the bridge [default: the name of this host]
    #[arg(long, value_name = "NAME")]
    instance: Option<String>,
    /// The Python interpreter that has PyTango [default: python3]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// The hub's configuration file (TOML)
    #[arg(short, long, env = "TAMPU_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Time between two progress reports
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    interval: Duration,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
    /// Print nothing on standard error unless something fails
    #[arg(short, long)]
    quiet: bool,
}

impl BridgeTango {
    pub fn run(self, context: &Context) -> Outcome {
        let settings = self.settings()?;
        if settings.subscribe.is_empty() && settings.serve.is_empty() {
            let text = "nothing to bridge: name attributes of Tango with --subscribe, or attributes of Tampu with --serve";
            return Err(Failure::Usage(text.to_owned()));
        }
        let database = settings.database(std::env::var("TANGO_HOST").ok());
        settings.check(&database).map_err(|error| Failure::Usage(error.to_string()))?;
        let participant = context.common.connect.join_hub(&format!("{SOURCE}{}", settings.instance()))?;
        // Missing parts are reported at once, before the bridge is in use.
        tampu_tango::check(&settings, &database).map_err(|error| Failure::Unreachable(error.to_string()))?;
        let quiet = self.quiet;
        let bridge = Bridge::start(&participant, settings, database, move |news| {
            if news.is_trouble() || !quiet {
                eprintln!("tampu: {}", printable(&news.to_string()));
            }
        })
        .map_err(|error| Failure::Failed(error.to_string()))?;
        let mut told = None;
        let mut ended = false;
        while !ended {
            ended = context.interrupt.wait(self.interval);
            let report = bridge.report();
            if told == Some(report) && !ended {
                continue;
            }
            told = Some(report);
            if self.json {
                let mut out = std::io::stdout().lock();
                written(writeln!(out, "{}", json!(report)))?;
                written(out.flush())?;
            } else if !quiet {
                eprintln!("tampu: {report}");
            }
        }
        Ok(())
    }

    /// Returns the file's settings, changed by the flags.
    fn settings(&self) -> Result<TangoSettings, Failure> {
        let mut settings = match &self.config {
            Some(path) => Config::from_file(path).map_err(|error| Failure::Usage(error.to_string()))?.tango,
            None => TangoSettings::default(),
        };
        if !self.subscribe.is_empty() || !self.serve.is_empty() {
            (settings.subscribe, settings.serve) = (self.subscribe.clone(), self.serve.clone());
        }
        if self.no_database {
            settings.database = Some("none".to_owned());
        } else if self.tango_host.is_some() {
            settings.database.clone_from(&self.tango_host);
        }
        if !self.kind.is_empty() {
            settings.kinds.clone_from(&self.kind);
        }
        if let Some(listen) = self.listen {
            settings.listen = listen;
        }
        if let Some(poll) = self.poll {
            settings.poll_ms = u32::try_from(poll.as_millis()).map_err(|_| Failure::Usage("--poll: too long".to_owned()))?;
        }
        if self.instance.is_some() {
            settings.instance.clone_from(&self.instance);
        }
        if let Some(python) = &self.python {
            settings.python.clone_from(python);
        }
        Ok(settings)
    }
}
