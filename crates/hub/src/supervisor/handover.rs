//! Messages between the supervisor and the process of a role: JSON lines on the socket that is the process's standard
//! input.
//!
//! ```text
//! supervisor                               role
//!   Handover (configuration, role)  --->
//!                                   <---   Word::Up(StartReport)  or  Word::Failed(StartFailure)
//!                                   <---   Word::Asks(Question)
//!   Answer                          --->
//!   the end of the socket           --->   the supervisor is dead: the role ends in order
//! ```
//! Decision: the configuration is resolved once, from flags, environment and file, and handed over whole. So all roles
//! agree, and no secret stands in a list of processes. A confined role cannot read the files of the configuration, and
//! asks for changed settings. The database's address can have a password, and only the logbook gets it. Rejected: the
//! command line or environment of `tampu up` again, which would be read at another time, with another content of the file.

use std::{
    io::{self, BufRead, BufReader, Write},
    net::SocketAddr,
    os::{fd::AsFd, unix::net::UnixStream},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tampu_bus::QosPatch;
use tampu_log::logger::config::{LogFile, LogPatch};

use crate::{
    config::{Config, lines::SettingLines},
    part::HubPart,
    reread::{ChangingSettings, OwnFiles},
    setting_changes::{SettingChanges, text_of},
};

/// Time limit of an answer.
const PATIENCE: Duration = Duration::from_secs(10);
const MIXED: &str = "the supervisor answered another question";

/// Everything that the process of a role needs to know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Handover {
    /// The role that the process runs.
    pub part: HubPart,
    /// Name of the hub, for the services that its roles have for one another.
    pub hub: String,
    /// True if the hub shows a demo, whose logbook has entries of a night.
    pub demo: bool,
    /// True if a cgroup limits the memory of the process.
    pub in_cgroup: bool,
    config: Config,
    // The configuration leaves these out, because no file has them.
    log_flags: LogPatch,
    file: Option<PathBuf>,
    joined_by: Option<PathBuf>,
    lines: SettingLines,
    changes: Option<String>,
}

impl Handover {
    /// Makes the handover for a role.
    pub(crate) fn new(config: &Config, part: HubPart, hub: &str, demo: bool, in_cgroup: bool) -> Handover {
        let mut own = config.clone();
        if part.is_exposed() && part != HubPart::Book {
            // It can have a password.
            own.book.postgres = None;
        }
        Handover {
            part,
            hub: hub.to_owned(),
            demo,
            in_cgroup,
            config: own,
            log_flags: config.log_flags.clone(),
            file: config.file.clone(),
            joined_by: config.joined_by.clone(),
            lines: config.lines.clone(),
            changes: config.changes.clone(),
        }
    }

    /// Returns the configuration as the supervisor has it.
    pub fn config(&self) -> Config {
        let Handover { log_flags, file, joined_by, lines, changes, .. } = self.clone();
        Config { log_flags, file, joined_by, lines, changes, ..self.config.clone() }
    }

    /// Takes the changed settings in force, and the quotas for a role that divides them: it is confined, and cannot read
    /// the file of these settings.
    pub(super) fn take_changes(&mut self, changes: &SettingChanges) {
        let in_force = changes.in_force();
        self.changes = text_of(&in_force.changes);
        if self.part == HubPart::Inputs {
            self.config.quota.clone_from(&in_force.config.quota);
        }
    }

    pub(super) fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }
}

/// The addresses of a logbook, and remarks for its users.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookStart {
    /// The base address of the API, as `http://127.0.0.1:7449`.
    pub url: Option<String>,
    /// The addresses of ELOG's pages.
    pub elog_urls: Vec<String>,
    /// The address that makes one browser the owner, while there are no users.
    pub owner_url: Option<String>,
    /// The program that has the default port.
    pub port_holder: Option<String>,
    /// A warning about logbooks that other hosts can read.
    pub warning: Option<String>,
    /// The socket address of the API.
    pub listen: Option<SocketAddr>,
    /// The socket address of ELOG's pages alone.
    pub elog: Option<SocketAddr>,
}

/// The result of a successful start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartReport {
    /// The network addresses of the node.
    pub addresses: Vec<String>,
    /// The logbook, if it works.
    pub book: Option<BookStart>,
}

/// The reason why a role did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartFailure {
    /// The reason, for people.
    pub text: String,
    /// True if settings are wrong.
    pub usage: bool,
    /// True if the hub works without the role.
    pub optional: bool,
}

/// A message of a role to its supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The role works.
    Up(StartReport),
    /// The role ends, because it cannot work.
    Failed(StartFailure),
    /// The role asks for settings that may have changed. A role asks for one thing at a time.
    Asks(Question),
}

/// A question of a role about settings that may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// The settings of the log.
    Log,
    /// The text of the policy file.
    Policy,
    /// The settings of topics.
    Topics,
}

/// The supervisor's answer to a question of its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The settings of the log, or the reason why they cannot be read.
    Log(Result<LogFile, String>),
    /// The text of the policy file, if there is one, or the reason why it cannot be read.
    Policy(Result<Option<String>, String>),
    /// The settings of topics, or the reason why they cannot be read.
    Topics(Result<Vec<QosPatch>, String>),
}

impl Question {
    /// Reads the settings.
    pub(super) fn answer(self, files: &OwnFiles) -> Answer {
        match self {
            Question::Log => Answer::Log(files.log()),
            Question::Policy => Answer::Policy(files.policy()),
            Question::Topics => Answer::Topics(files.topics()),
        }
    }
}

/// The supervisor, as the process of a role sees it.
pub struct SupervisorLink {
    reader: BufReader<UnixStream>,
    answers: Sender<Answer>,
    own: Arc<SupervisorClient>,
}

/// Questions and messages of a role to its supervisor.
pub struct SupervisorClient {
    socket: Mutex<UnixStream>,
    /// The answers; one question is asked at a time.
    answers: Mutex<Receiver<Answer>>,
}

impl SupervisorClient {
    /// Sends a message. A supervisor that has died needs none.
    pub fn send(&self, word: &Word) {
        let _ = send(&self.socket.lock(), word);
    }

    fn ask(&self, question: Question) -> Result<Answer, String> {
        let answers = self.answers.lock();
        // An answer that came too late is of an earlier question.
        while answers.try_recv().is_ok() {}
        self.send(&Word::Asks(question));
        answers.recv_timeout(PATIENCE).map_err(|_| format!("the supervisor does not answer within {PATIENCE:?}"))
    }
}

impl ChangingSettings for SupervisorClient {
    fn log(&self) -> Result<LogFile, String> {
        match self.ask(Question::Log)? {
            Answer::Log(answer) => answer,
            _ => Err(MIXED.to_owned()),
        }
    }

    fn policy(&self) -> Result<Option<String>, String> {
        match self.ask(Question::Policy)? {
            Answer::Policy(answer) => answer,
            _ => Err(MIXED.to_owned()),
        }
    }

    fn topics(&self) -> Result<Vec<QosPatch>, String> {
        match self.ask(Question::Topics)? {
            Answer::Topics(answer) => answer,
            _ => Err(MIXED.to_owned()),
        }
    }
}

impl SupervisorLink {
    /// Takes the socket that this process was started with as standard input, and reads the handover. The kernel
    /// kills this process when the supervisor dies.
    pub fn from_stdin() -> io::Result<(SupervisorLink, Handover)> {
        use rustix::process::{Signal, set_parent_process_death_signal};
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let (answers, received) = channel();
        let own = SupervisorClient { socket: Mutex::new(socket.try_clone()?), answers: Mutex::new(received) };
        let mut link = SupervisorLink { reader: BufReader::new(socket), answers, own: Arc::new(own) };
        let handover = receive(&mut link.reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((link, handover))
    }

    /// Returns the part that sends and asks.
    pub fn client(&self) -> Arc<SupervisorClient> {
        self.own.clone()
    }

    /// Passes answers on until the supervisor is dead.
    pub fn await_end(mut self) {
        while let Ok(Some(answer)) = receive::<Answer>(&mut self.reader) {
            let _ = self.answers.send(answer);
        }
    }
}

/// Sends one message.
pub(super) fn send(mut socket: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    socket.write_all(&line)
}

/// Receives one message; none at the end.
pub(super) fn receive<T: DeserializeOwned>(reader: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(serde_json::from_str(&line)?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tampu_log::Threshold;
    use tampu_types::Level;

    use super::*;
    use crate::config::lines::lines_of;

    #[test]
    fn a_role_gets_the_configuration_as_the_supervisor_has_it() {
        let sample = include_str!("../../tampu.toml");
        let text: String = sample.lines().map(|line| format!("{}\n", line.strip_prefix("#: ").unwrap_or(line))).collect();
        let mut config = Config::parse(&text, Path::new("t.toml")).unwrap();
        config.file = Some("/etc/tampu.toml".into());
        config.lines = lines_of(&text);
        config.log_flags.local = Some(Threshold::From(Level::Alert));
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sent = Handover::new(&config, HubPart::Book, "hub", true, false);
        let writer = std::thread::spawn(move || send(&ours, &sent).unwrap());
        let received: Handover = receive(&mut BufReader::new(theirs)).unwrap().unwrap();
        writer.join().unwrap();
        assert_eq!((received.part, received.demo, received.config()), (HubPart::Book, true, config));
    }
}
