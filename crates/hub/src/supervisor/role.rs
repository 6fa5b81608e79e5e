//! One role under supervision: its process, its lives, and its end.
//!
//! A thread for each role starts the process, reads what it reports, and waits for its end. The kernel kills a process
//! whose thread has died, so a panic here cannot leave a role without a supervisor.

use std::{
    io::{self, BufReader},
    os::{
        fd::OwnedFd,
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tampu_workers::WorkerThread;

use super::{
    backoff::Backoff,
    cgroup::Cgroup,
    handover::{Handover, StartFailure, StartReport, Word, receive, send},
};
use crate::{listen::ListenAddress, part::HubPart, reread::OwnFiles, roles::RoleReport, setting_changes::SettingChanges};

/// Pause of the thread after a panic.
const RESTART: Duration = Duration::from_secs(1);

/// Variables of the environment that can have the database's password.
const SECRETS_OF_THE_BOOK: [&str; 3] = ["TAMPU_BOOK_POSTGRES", "PGPASSWORD", "PGPASSFILE"];

/// An event in the life of a role, for the hub's log.
#[derive(Debug)]
pub(super) enum RoleEvent<'a> {
    /// The process has ended, and is started again after a pause.
    Ended { pid: u32, how: &'a str, pause: Duration },
    /// The process could not start, and is started again after a pause.
    NotStarted { why: &'a str, pause: Duration },
    /// The process works again.
    Back { pid: u32 },
    /// The memory of the process is not limited by a cgroup, for this reason.
    Unlimited { why: &'a io::Error },
}

pub(super) type Tell = Arc<dyn Fn(HubPart, RoleEvent<'_>) + Send + Sync>;

/// The means for a role's processes.
pub(super) struct Means {
    pub program: PathBuf,
    pub handover: Handover,
    pub changes: Arc<SettingChanges>,
    pub cgroup: Option<(Arc<Cgroup>, u64)>,
    pub tell: Tell,
}

#[derive(Default)]
struct RoleState {
    child: Option<Child>,
    report: Option<StartReport>,
    failure: Option<StartFailure>,
    restarts: u64,
    is_up: bool,
    has_ended: bool,
}

struct RoleShared {
    part: HubPart,
    state: Mutex<RoleState>,
    changed: Condvar,
    stopping: AtomicBool,
}

/// A role under supervision. Dropping it kills its process.
pub(super) struct SupervisedRole {
    shared: Arc<RoleShared>,
    thread: Option<JoinHandle<()>>,
}

impl SupervisedRole {
    /// Starts the role; returns at once.
    pub(super) fn start(means: Means) -> io::Result<SupervisedRole> {
        let part = means.handover.part;
        let shared = RoleShared { part, state: Mutex::default(), changed: Condvar::new(), stopping: AtomicBool::new(false) };
        let shared = Arc::new(shared);
        let mut keeper = RoleKeeper { shared: shared.clone(), means, backoff: Backoff::default(), was_up: false };
        let thread =
            WorkerThread::named(format!("role-{part}")).counted_as("role").spawn_restarting(RESTART, move || keeper.run())?;
        Ok(SupervisedRole { shared, thread: Some(thread) })
    }

    pub(super) fn part(&self) -> HubPart {
        self.shared.part
    }

    /// Waits until the role works, is known not to start, or the time is over. `Ok(None)` means that it does not know yet.
    pub(super) fn await_start(&self, timeout: Duration) -> Option<Result<StartReport, StartFailure>> {
        let mut state = self.shared.state.lock();
        let known = |state: &RoleState| match (&state.report, &state.failure) {
            (Some(report), _) => Some(Ok(report.clone())),
            (None, Some(failure)) => Some(Err(failure.clone())),
            (None, None) => None,
        };
        if known(&state).is_none() {
            self.shared.changed.wait_for(&mut state, timeout);
        }
        known(&state)
    }

    /// Returns a function that reports the present state.
    pub(super) fn reporter(&self) -> impl Fn() -> RoleReport + Send + Sync + use<> {
        let shared = self.shared.clone();
        move || {
            let state = shared.state.lock();
            let pid = state.child.as_ref().map(Child::id);
            RoleReport { role: shared.part, pid, up: state.is_up, restarts: state.restarts }
        }
    }

    /// Asks the role to end, and lets it start no more.
    pub(super) fn ask_to_end(&self) {
        self.shared.end(Signal::TERM);
    }

    /// Waits until the role has ended; returns false if it has not until then.
    pub(super) fn await_end(&self, until: Instant) -> bool {
        let mut state = self.shared.state.lock();
        while !state.has_ended && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
        state.has_ended
    }

    /// Ends the role at once.
    pub(super) fn kill(&self) {
        self.shared.end(Signal::KILL);
    }
}

impl Drop for SupervisedRole {
    fn drop(&mut self) {
        self.kill();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl RoleShared {
    fn end(&self, signal: Signal) {
        // Under the lock, so that the process is not one that another program has the number of by now.
        let state = self.state.lock();
        self.stopping.store(true, Ordering::SeqCst);
        if let Some(child) = &state.child {
            let _ = kill_process(Pid::from_child(child), signal);
        }
        self.changed.notify_all();
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn change(&self, change: impl FnOnce(&mut RoleState)) {
        change(&mut self.state.lock());
        self.changed.notify_all();
    }
}

/// The end of one process.
struct LifeEnd {
    pid: u32,
    status: ExitStatus,
    failure: Option<StartFailure>,
    worked: Duration,
}

/// The thread's part of a role.
struct RoleKeeper {
    shared: Arc<RoleShared>,
    means: Means,
    backoff: Backoff,
    was_up: bool,
}

impl RoleKeeper {
    fn run(&mut self) {
        while !self.shared.is_stopping() {
            let life = self.live();
            if self.shared.is_stopping() {
                break;
            }
            let worked = life.as_ref().map_or(Duration::ZERO, |life| life.worked);
            let pause = self.backoff.pause(worked);
            match life {
                Ok(LifeEnd { failure: Some(failure), .. }) => {
                    let is_final = !self.was_up && !failure.optional;
                    let is_known = self.shared.state.lock().failure.as_ref() == Some(&failure);
                    if !is_final && !is_known {
                        (self.means.tell)(self.shared.part, RoleEvent::NotStarted { why: &failure.text, pause });
                    }
                    self.shared.change(|state| state.failure = Some(failure));
                    if is_final {
                        break;
                    }
                }
                Ok(LifeEnd { pid, status, .. }) => {
                    (self.means.tell)(self.shared.part, RoleEvent::Ended { pid, how: &described(status), pause });
                }
                Err(why) => (self.means.tell)(self.shared.part, RoleEvent::NotStarted { why: &why.to_string(), pause }),
            }
            self.shared.change(|state| state.restarts += 1);
            self.rest(pause);
        }
        self.shared.change(|state| state.has_ended = true);
    }

    /// Waits for this time, or until the role must end.
    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        let mut state = self.shared.state.lock();
        while !self.shared.is_stopping() && !self.shared.changed.wait_until(&mut state, until).timed_out() {}
    }

    /// Starts the process and accompanies it to its end.
    fn live(&mut self) -> io::Result<LifeEnd> {
        let part = self.shared.part;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&self.means.program);
        command.arg0("tampu").args(["role", part.name()]).stdin(Stdio::from(OwnedFd::from(theirs)));
        // Ctrl-C reaches the supervisor alone, which ends the roles in sequence.
        command.process_group(0);
        if part.is_exposed() && part != HubPart::Book {
            for variable in SECRETS_OF_THE_BOOK {
                command.env_remove(variable);
            }
        }
        let pid = {
            let mut state = self.shared.state.lock();
            if self.shared.is_stopping() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let child = state.child.insert(command.spawn()?);
            child.id()
        };
        drop(command);
        let _reaper = Reaper(self.shared.clone());
        let mut handover = self.means.handover.clone();
        handover.take_changes(&self.means.changes);
        if let Some((cgroup, memory)) = &self.means.cgroup {
            match cgroup.hold(part, pid, *memory) {
                Ok(()) => handover.in_cgroup = true,
                Err(why) => (self.means.tell)(part, RoleEvent::Unlimited { why: &why }),
            }
        }
        // A process that has died already reads nothing; its end says more than this error.
        let _ = send(&ours, &handover);
        let mut failure = None;
        let mut worked = None;
        let own_files = OwnFiles::of(&self.means.handover.config());
        let mut words = BufReader::new(&ours);
        while let Ok(Some(word)) = receive::<Word>(&mut words) {
            match word {
                Word::Up(report) => {
                    worked = Some(Instant::now());
                    self.up(pid, report);
                }
                Word::Failed(why) => failure = Some(why),
                Word::Asks(question) => drop(send(&ours, &question.answer(&own_files))),
            }
        }
        if let Some(pid) = Pid::from_raw(pid as i32) {
            // The number stays with the process until `wait` below, so nobody sends a signal to another one.
            while waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
                .is_err_and(|why| why == rustix::io::Errno::INTR)
            {}
        }
        let status = self.shared.reap()?;
        Ok(LifeEnd { pid, status, failure, worked: worked.map_or(Duration::ZERO, |since: Instant| since.elapsed()) })
    }

    fn up(&mut self, pid: u32, report: StartReport) {
        if let Some(book) = &report.book {
            // The next process gets the same addresses, also where any free port was wanted.
            let settings = &mut self.means.handover.config_mut().book;
            if let Some(address) = book.listen {
                settings.listen = Some(ListenAddress::At(address));
            }
            if let Some(address) = book.elog {
                settings.elog_listen = ListenAddress::At(address);
            }
        }
        if self.was_up || self.shared.state.lock().restarts > 0 {
            (self.means.tell)(self.shared.part, RoleEvent::Back { pid });
        }
        self.was_up = true;
        self.shared.change(|state| {
            state.report = Some(report);
            state.failure = None;
            state.is_up = true;
        });
    }
}

impl RoleShared {
    fn reap(&self) -> io::Result<ExitStatus> {
        let mut state = self.state.lock();
        state.is_up = false;
        match state.child.take() {
            Some(mut child) => child.wait(),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// Ends a process that its keeper left, by a panic.
struct Reaper(Arc<RoleShared>);

impl Drop for Reaper {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0.state.lock().child {
            let _ = child.kill();
        }
        let _ = self.0.reap();
    }
}

fn described(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}{}", meaning(signal)),
        (None, None) => "ended".to_owned(),
    }
}

/// Returns the name of a signal that ends processes by an error, for people.
fn meaning(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => " (SIGABRT: a panic, or no memory left within its limit)",
        libc::SIGKILL => " (SIGKILL: by hand, or by the kernel for want of memory)",
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGSYS => " (SIGSYS)",
        _ => "",
    }
}
