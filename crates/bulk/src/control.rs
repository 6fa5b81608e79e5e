//! Remote control of transfers: other programs start, pace, pause and stop a sender, and open and close a receiver.
//!
//! A program opts in: it offers its sender or its receiver under a name of the service [`CONTROL`]. Without an offer nobody
//! can control it. Another program finds the offer by its name ([`list`]) and sends a command ([`command`]). The
//! access hook decides about each command: `read` for the state, `set` for all others, on the service
//! `bulk/control/NAME`. By default only the user of the host may `set`.
//!
//! | subject | file |
//! |-|-|
//! | questions, commands, answers | `question` |
//! | the asking side | `call` |
//! | the offering side: names, rights | `serve` |
//! | a sender; a receiver | `sender`, `receiver` |
//!
//! Decision: the answering program chooses what is sent and where received data goes. A command names a file only among the
//! ones that the program offers. Rejected: paths in commands, which would let an operator of a stream read and
//! write files of the program's user.
//!
//! ```no_run
//! use std::{sync::Arc, time::Duration};
//! use tampu_bulk::{
//!     Name, Sender,
//!     control::{self, ControlCommand, ControlledSender, StartCommand},
//!     receiver::Identity,
//!     sender::SendFlow,
//! };
//! # use tampu_bus::Participant;
//!
//! # fn both(participant: Participant) -> Result<(), Box<dyn std::error::Error>> {
//! // The program at the correlator.
//! let flows = vec![SendFlow::new("spectra".parse()?)];
//! let sender = Arc::new(Sender::open(Identity::of(&participant), "correlator".parse()?, flows)?);
//! let controlled = ControlledSender::starting(sender, |order| {
//!     order.flow.start(order.parameter.as_bytes()).map_err(|why| why.to_string())?;
//!     while order.flow.send_copy(&[0; 4096]).is_ok() {}
//!     order.flow.stop().map(drop).map_err(|why| why.to_string())
//! });
//! let _offer = control::offer_sender(&participant, Name::new("correlator")?, &controlled)?;
//!
//! // Another program, on any host.
//! let (name, wait) = (Name::new("correlator")?, Duration::from_secs(5));
//! let start = StartCommand { parameter: "uid://A002/X1".to_owned(), ..StartCommand::default() };
//! control::command(&participant, &name, ControlCommand::Start(start), wait)?;
//! control::command(&participant, &name, ControlCommand::Pace { flow: None, bytes_per_s: 50e6 }, wait)?;
//! control::command(&participant, &name, ControlCommand::Stop { flow: None }, wait)?;
//! # Ok(())
//! # }
//! ```

mod call;
mod question;
mod receiver;
mod sender;
mod serve;

pub use call::{ControlError, command, command_json, list};
pub use question::{
    CONTROL, ControlCommand, ControlKind, ControlQuestion, ControlState, FASTEST, OpenCommand, SLOWEST, StartCommand,
};
pub use receiver::{ControlledReceiver, offer_receiver};
pub use sender::{ControlledSender, OwnWork, StartOrder, offer_sender};
