//! The hidden command `tampu role`: the process of one role, which `tampu up` starts.

use std::{sync::Arc, time::Duration};

use clap::Args;
use tampu_hub::{
    Hub, HubError, is_book_optional, limits,
    part::HubPart,
    private,
    reread::ChangingSettings,
    sandbox::{self, Confinement},
    supervisor::handover::{Handover, StartFailure, SupervisorClient, SupervisorLink, Word},
};
use tampu_workers::{OnPanic, WorkerThread};

use crate::{
    commands::up::running,
    demo::shift_log,
    failure::{Failure, Outcome},
    interrupt::Interrupt,
    time_expression::now,
};

/// Period of the check whether the run-time directory is still the same.
const LOOK: Duration = Duration::from_secs(1);

/// Run one role of a hub, for `tampu up`
#[derive(Debug, Args)]
pub struct Role {
    /// The role, for lists of processes; the settings come through standard input
    role: String,
}

/// The exit code after a failure that the supervisor reports.
const REPORTED: Outcome = Err(Failure::Closed);

impl Role {
    /// Runs the role. The sandbox must hold for every thread, so this comes before all others start.
    pub fn run(self) -> Outcome {
        let by_hand = |why| Failure::Usage(format!("'tampu role {}' is a part of 'tampu up', which starts it: {why}", self.role));
        let (link, handover) = SupervisorLink::from_stdin().map_err(by_hand)?;
        let supervisor = link.client();
        match Running::start(&handover, link) {
            Ok(running) => running.accompany(&supervisor),
            Err(failure) => {
                supervisor.send(&Word::Failed(failure));
                REPORTED
            }
        }
    }
}

/// A role at work.
struct Running {
    hub: Hub,
    interrupt: Interrupt,
    confinement: Option<Confinement>,
}

impl Running {
    fn start(handover: &Handover, link: SupervisorLink) -> Result<Running, StartFailure> {
        let config = handover.config();
        let fatal = |text: String| StartFailure { text, usage: false, optional: false };
        crate::private::set(private::umask(&config));
        let mut remarks = vec![limits::apply(config.limits.of(handover.part), handover.in_cgroup)];
        limits::stand_behind(handover.part);
        let confinement = sandbox::apply(&config, handover.part).map_err(|why| fatal(why.to_string()))?;
        remarks.extend(confinement.as_ref().map(|held| held.remark.clone()));
        let interrupt = Interrupt::install().map_err(|failure| fatal(failure.text().unwrap_or_default().to_owned()))?;
        // A confined role cannot read the files of the configuration.
        let settings = confinement.is_some().then(|| link.client() as Arc<dyn ChangingSettings>);
        let of_link = interrupt.clone();
        let watch = move || {
            link.await_end();
            of_link.ask();
        };
        // Without this thread, the kernel's signal still ends the role with its supervisor.
        let _ = WorkerThread::named("supervisor-link").spawn(OnPanic::ReportOnly, watch);
        let is_optional = handover.part == HubPart::Book && is_book_optional(&config);
        let hub = Hub::start_part(config, handover.part, &handover.hub, &remarks, settings).map_err(|error| {
            let optional = is_optional && matches!(error, HubError::Book(_));
            let failure = running::failure(error);
            let usage = matches!(failure, Failure::Usage(_));
            StartFailure { text: failure.text().unwrap_or_default().to_owned(), usage, optional }
        })?;
        if let Some(book) = hub.book().filter(|_| handover.demo) {
            shift_log::begin(&**book.store(), now()).map_err(|why| fatal(format!("the demo's logbook: {why}")))?;
        }
        Ok(Running { hub, interrupt, confinement })
    }

    /// Works until the supervisor asks for the end, or dies, or the sandbox is outdated.
    fn accompany(self, supervisor: &SupervisorClient) -> Outcome {
        supervisor.send(&Word::Up(self.hub.report()));
        let replaced = || self.confinement.as_ref().and_then(Confinement::replaced);
        while !self.interrupt.wait(LOOK) {
            if let Some(path) = replaced() {
                self.hub.log_outdated(path);
                break;
            }
        }
        self.hub.stop();
        Ok(())
    }
}
