//! The look at the file of changed settings while the hub runs.

use std::{
    io,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::JoinHandle,
    time::Duration,
};

use tampu_log::{Logger, error};
use tampu_workers::WorkerThread;

use super::error::ChangeError;

/// Period of the look at the file.
const LOOK: Duration = Duration::from_millis(500);
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);

/// Watch over the file. Dropping it ends it.
pub(crate) struct SettingsWatch {
    stop: Option<Sender<()>>,
    worker: Option<JoinHandle<()>>,
}

impl SettingsWatch {
    /// Starts to look at the file by this function, which returns true for a change. Without a logger, the faults of the
    /// file are left to other processes of the hub.
    pub(super) fn start(
        mut look: impl FnMut() -> Result<bool, ChangeError> + Send + 'static,
        logger: Option<Logger>,
    ) -> io::Result<SettingsWatch> {
        let (stop, stopped) = channel::<()>();
        let mut said = None;
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(LOOK) {
                match (look(), &logger) {
                    (Ok(false), _) => {}
                    (Ok(true), _) => said = None,
                    (Err(why), Some(logger)) => {
                        // A file that cannot be read is tried again at each look.
                        let why = why.to_string();
                        if said.as_ref() != Some(&why) {
                            error!(logger, "{why}; the settings stay as they were");
                            said = Some(why);
                        }
                    }
                    (Err(_), None) => {}
                }
            }
        };
        let worker = WorkerThread::named("settings").spawn_restarting(RESTART, work)?;
        Ok(SettingsWatch { stop: Some(stop), worker: Some(worker) })
    }
}

impl Drop for SettingsWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
