//! The catalogue of bounds: every queue and limit that a site may reach, with its default and the effect of reaching
//! it.
//!
//! `docs/reference/bounds.md` is made from it, and a test compares the two. The defaults of settings are read from
//! [`Config`]. A test compares constants with the sources, so that neither can differ from the program.

use crate::config::Config;

use bound::Limit::{Constant, Other, Setting};

pub use bound::{Bound, Limit};

mod bound;
mod bulk;
mod bus;
mod clients;
mod events;
mod gateway;
mod hub;
mod logbook;
mod logs;

/// The subject that a bound belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    /// The bus: streams, readers, shared memory.
    Bus,
    /// Loggers, the spool, the collector and its archive.
    Logs,
    /// Attribute events and their history.
    Events,
    /// Flows and transfers of bulk data.
    Bulk,
    /// The logbook, its HTTP and its search.
    Logbook,
    /// Inputs, routes, metrics and the bridge to Tango.
    Hub,
    /// Sessions of programs that are not on the bus.
    Gateway,
    /// The libraries of such programs.
    Clients,
}

impl Area {
    /// All areas, in the order of the page.
    pub const ALL: [Area; 8] =
        [Area::Bus, Area::Logs, Area::Events, Area::Bulk, Area::Logbook, Area::Hub, Area::Gateway, Area::Clients];

    /// The heading of the page.
    pub fn title(self) -> &'static str {
        match self {
            Area::Bus => "Bus",
            Area::Logs => "Logs",
            Area::Events => "Events",
            Area::Bulk => "Bulk data",
            Area::Logbook => "Logbook",
            Area::Hub => "Inputs, routes, metrics, Tango",
            Area::Gateway => "Gateway",
            Area::Clients => "Programs in Java, Python and TypeScript",
        }
    }

    /// Returns the bounds of the subject, in the order of the page.
    pub fn bounds(self) -> impl Iterator<Item = &'static Bound> {
        let lists = match self {
            Area::Bus => &[bus::BOUNDS],
            Area::Logs => &[logs::BOUNDS],
            Area::Events => &[events::BOUNDS],
            Area::Bulk => &[bulk::BOUNDS],
            Area::Logbook => logbook::BOUNDS,
            Area::Hub => &[hub::BOUNDS],
            Area::Gateway => &[gateway::BOUNDS],
            Area::Clients => &[clients::BOUNDS],
        };
        lists.iter().copied().flatten()
    }
}

/// Makes the page of all bounds.
pub fn page() -> String {
    let config = Config::default();
    let mut page = "# Bounds\nEvery queue and limit has a default and a defined behaviour when it is full. Settings stand in the configuration file\nas \
                    `[section] name`. This page is made from the catalogue in `crates/hub/src/bounds`.\n"
        .to_owned();
    for area in Area::ALL {
        page.push_str(&format!("\n## {}\n| bound | setting | default | when it is full |\n|-|-|-|-|\n", area.title()));
        for bound in area.bounds() {
            let (setting, default) = match bound.limit {
                Setting(name, default) => (format!("`{name}`"), default(&config)),
                Constant(_, _, _, value) | Other(value) => (String::new(), value.to_owned()),
            };
            page.push_str(&format!("| {} | {setting} | {default} | {} |\n", bound.what, bound.full));
        }
    }
    page
}
