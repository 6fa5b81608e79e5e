//! The routes in force, which can change while the hub runs.
//!
//! Decision: the former routes end before the targets of the new ones start, because both may write the same file.
//! Packets wait in the queue of the new routes meanwhile. What a target that cannot be written still has when it ends is
//! counted and logged as lost; the archive has what it keeps. The counts of a target go on under its name. If the new
//! routes do not start, the former ones start again and get the packets. Rejected: the same workers with other settings,
//! where each setting needs a change of its own.

use std::{collections::BTreeMap, path::PathBuf};

use parking_lot::{Mutex, RwLock};
use tampu_log::{
    Logger,
    collector::router::{Router, Sifted, TargetReport},
    error, warning,
};

use super::{
    RULES, RouteError, Routes,
    settings::{RouteSettings, TargetSettings},
};

type Settings = (Vec<RouteSettings>, BTreeMap<String, TargetSettings>);

#[derive(Debug, Default)]
struct State {
    /// The settings of the running routes.
    settings: Settings,
    /// The last reports of ended targets, by name.
    ended: BTreeMap<String, TargetReport>,
}

/// Routes that can be exchanged.
#[derive(Debug)]
pub(crate) struct RouteSwitch {
    directory: PathBuf,
    logger: Logger,
    /// Its lock is held during a change.
    state: Mutex<State>,
    running: RwLock<Option<Routes>>,
}

impl RouteSwitch {
    /// Starts the configured routes. Files without a path are in `directory`.
    pub(crate) fn start(
        routes: &[RouteSettings],
        targets: &BTreeMap<String, TargetSettings>,
        directory: PathBuf,
        logger: Logger,
    ) -> Result<RouteSwitch, RouteError> {
        let switch = RouteSwitch { directory, logger, state: Mutex::default(), running: RwLock::default() };
        switch.change(routes, targets)?;
        Ok(switch)
    }

    /// Exchanges the routes, if they differ. Invalid ones change nothing.
    pub(crate) fn change(&self, routes: &[RouteSettings], targets: &BTreeMap<String, TargetSettings>) -> Result<(), RouteError> {
        let mut state = self.state.lock();
        let wanted = (routes.to_vec(), targets.clone());
        if state.settings == wanted {
            return Ok(());
        }
        let next = Routes::prepare(routes, targets)?;
        self.exchange(&mut state, next, wanted)
    }

    /// Starts other routes in place of the running ones; if that fails, the former ones again.
    fn exchange(&self, state: &mut State, next: Option<Routes>, wanted: Settings) -> Result<(), RouteError> {
        if let Err(why) = self.start_in_place(state, next, &wanted.1) {
            // If they do not start either, none run, and the next change tries again.
            let former = std::mem::take(&mut state.settings);
            let again = Routes::prepare(&former.0, &former.1).and_then(|again| self.start_in_place(state, again, &former.1));
            match again {
                Ok(()) => state.settings = former,
                Err(again) => error!(self.logger, "the former routes do not start again: {again}; no record is routed"),
            }
            return Err(why);
        }
        state.ended.retain(|name, _| name == RULES || wanted.1.contains_key(name));
        state.settings = wanted;
        Ok(())
    }

    fn start_in_place(
        &self,
        state: &mut State,
        next: Option<Routes>,
        targets: &BTreeMap<String, TargetSettings>,
    ) -> Result<(), RouteError> {
        let former = {
            let mut running = self.running.write();
            let former = std::mem::replace(&mut *running, next);
            if let (Some(former), Some(next)) = (&former, &*running) {
                former.hand_over(next);
            }
            former
        };
        for ended in former.map(Routes::finish).unwrap_or_default() {
            let (name, lost) = (ended.report.target.as_str(), ended.untold);
            if lost > 0 {
                warning!(self.logger, "{lost} records lost to the target '{name}' until the routes changed; the archive has those that it keeps"; target = name);
            }
            state.ended.insert(name.to_owned(), ended.report);
        }
        match &mut *self.running.write() {
            Some(routes) => routes.start(targets, &state.ended, &self.directory, self.logger.clone()),
            None => Ok(()),
        }
    }
}

impl Router for RouteSwitch {
    fn is_idle(&self) -> bool {
        self.running.read().is_none()
    }

    fn sift(&self, packet: &[u8]) -> Option<Sifted> {
        self.running.read().as_ref().and_then(|routes| routes.sift(packet))
    }

    fn route(&self, packet: Vec<u8>) {
        if let Some(routes) = &*self.running.read() {
            routes.route(packet);
        }
    }

    fn report(&self) -> Vec<TargetReport> {
        self.running.read().as_ref().map(Routes::report).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tampu_bus::BusError;
    use tampu_log::{LogSettings, Threshold, logger::local::Output};
    use tampu_types::{Domain, Level, LogRecord, SourceName, log_batch::encode_records};

    use super::*;

    fn settings(text: &str) -> Settings {
        let config = crate::Config::parse(text, Path::new("test.toml")).unwrap();
        (config.route, config.target)
    }

    fn packet(messages: &[&str]) -> Vec<u8> {
        let records: Vec<LogRecord> = messages.iter().map(|message| LogRecord::new(Level::Info, *message)).collect();
        encode_records(&records).unwrap()
    }

    fn started(directory: &Path, (routes, targets): &Settings) -> RouteSwitch {
        let mut settings = LogSettings::isolated(Domain::new("test").unwrap(), SourceName::new("hub").unwrap());
        settings.output = Output::File(directory.join("hub.log"));
        (settings.local, settings.close_wait) = (Threshold::From(Level::Info), std::time::Duration::ZERO);
        let no_bus = || Err(BusError::RunDir { place: "none".into(), why: "a test".to_owned() });
        let logger = Logger::joining(no_bus, settings).unwrap();
        RouteSwitch::start(routes, targets, directory.to_owned(), logger).unwrap()
    }

    /// Waits for a text in the log.
    fn logged(directory: &Path, text: &str) {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !std::fs::read_to_string(directory.join("hub.log")).unwrap_or_default().contains(text) {
            assert!(std::time::Instant::now() < end, "not in the log: {text}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    fn counts(switch: &RouteSwitch) -> Vec<(String, u64, u64)> {
        switch.report().into_iter().map(|report| (report.target, report.written, report.lost)).collect()
    }

    fn count(name: &str, written: u64, lost: u64) -> (String, u64, u64) {
        (name.to_owned(), written, lost)
    }

    #[test]
    fn losses_until_a_change_are_counted_and_go_on_under_the_name() {
        let directory = tempfile::tempdir().unwrap();
        // A file in the place of its directory: the target cannot be written.
        std::fs::write(directory.path().join("taken"), "").unwrap();
        let file = directory.path().join("taken/a.log");
        let broken = settings(&format!("[[route]]\nto = [\"a\"]\n[target.a]\nfile = {file:?}\n"));
        let switch = started(directory.path(), &broken);
        switch.route(packet(&["one", "two"]));
        if let Some(routes) = &*switch.running.read() {
            routes.lose(&packet(&["three"]));
        }
        let whole = settings("[[route]]\nto = [\"a\"]\n[target.a]\n");
        switch.change(&whole.0, &whole.1).unwrap();
        assert_eq!(counts(&switch), [count("a", 0, 2), count(RULES, 0, 1)]);
        logged(directory.path(), "2 records lost to the target 'a' until the routes changed");
        logged(directory.path(), "1 records lost to the target '(rules)'");
        switch.route(packet(&["four"]));
        // Each change ends the targets, which write what waits.
        let other = settings("[[route]]\nto = [\"a\"]\n[target.a]\nfiles = 3\n");
        switch.change(&other.0, &other.1).unwrap();
        assert_eq!(counts(&switch), [count("a", 1, 2), count(RULES, 0, 1)]);
        assert!(std::fs::read_to_string(directory.path().join("a.log")).unwrap().contains("four"));
    }

    #[test]
    fn what_was_told_is_not_told_again() {
        let (routes, targets) = settings("[[route]]\nto = [\"a\"]\n[target.a]\n");
        let routes = Routes::prepare(&routes, &targets).unwrap().unwrap();
        *routes.told.lock() = vec![TargetReport { target: RULES.to_owned(), lost: 1, ..TargetReport::default() }];
        routes.route(packet(&["one", "two", "three"]));
        let ended = routes.finish().into_iter().map(|ended| (ended.report.target, ended.report.lost, ended.untold));
        assert_eq!(ended.collect::<Vec<_>>(), [count(RULES, 3, 2)]);
    }

    #[test]
    fn former_routes_go_on_where_others_do_not_start() {
        let directory = tempfile::tempdir().unwrap();
        let former = settings("[[route]]\nto = [\"a\"]\n[target.a]\n");
        let switch = started(directory.path(), &former);
        let mut wrong = former.clone();
        let next = Routes::prepare(&wrong.0, &wrong.1).unwrap();
        // It came while the new routes had not started.
        next.as_ref().unwrap().route(packet(&["meanwhile"]));
        wrong.1.get_mut("a").unwrap().facility = "none".to_owned();
        let mut state = switch.state.lock();
        assert!(switch.exchange(&mut state, next, wrong).is_err());
        assert!(state.settings == former);
        drop(state);
        switch.route(packet(&["later"]));
        switch.change(&[], &BTreeMap::new()).unwrap();
        let text = std::fs::read_to_string(directory.path().join("a.log")).unwrap();
        assert!(text.contains("meanwhile") && text.contains("later"), "{text}");
        assert!(switch.is_idle());
    }
}
