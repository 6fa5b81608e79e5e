//! Bulk data: a stream of flows from a sender to receivers, outside the message fabric, at the speed of the wire.
//!
//! A sender gives a flow a parameter (`start`), data of any length (`send`), and an end (`stop`). Its receivers'
//! handlers get the parameter first. Then they get every byte once and in order, or a report of the lost ranges. The
//! end always comes, also when the sender dies. The contract, frame by frame, is `spec/bulk.md`.
//!
//! | subject | module |
//! |-|-|
//! | frame headers; payloads of control frames | [`frame`], [`message`] |
//! | a flow at its sender and at its receiver, as values | [`sending`], [`receiving`], [`window`] |
//! | sending: flows, receivers' links, waiting | [`sender`] |
//! | receiving: listener, handlers, whole blocks, queues for `await` | [`receiver`], [`handler`] |
//! | proof of a sender's host | `passes` |
//! | protection between hosts: setting, keys, sealed frames | [`protection`], [`seal`] |
//! | one sender, many receivers | [`distributor`] |
//! | a multicast group, for all receivers at once | [`group`] |
//! | senders and receivers on the bus; their states; reports of transfers | [`directory`], [`asking`], [`note`], [`transfers`] |
//! | commands of others to a sender or a receiver | [`control`] |
//! | settings of flows: the file of a site, the environment | [`settings`] |
//! | the parameter of a file; directories of received files | [`file`], [`store`] |
//! | waiting senders and receivers, and results of transfers | [`state`] |
//!
//! ```
//! use tampu_bulk::{
//!     Name, Receiver, Sender,
//!     handler::{CallbackError, Data, End, Handler, Start},
//!     receiver::{FlowSettings, Identity, ReceiverSettings},
//!     sender::SendFlow,
//! };
//!
//! #[derive(Default)]
//! struct Dump(Vec<u8>);
//!
//! impl Handler for Dump {
//!     fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
//!         assert_eq!(start.parameter, b"uid://A002/X1");
//!         Ok(0)
//!     }
//!     fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
//!         self.0.extend_from_slice(data.bytes);
//!         Ok(())
//!     }
//!     fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
//!         assert!(end.complete && self.0 == b"spectra");
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (stream, flow) = (Name::new("correlator")?, Name::new("spectra")?);
//! let handler: Box<dyn Handler> = Box::new(Dump::default());
//! let flows = vec![(FlowSettings::new(flow.clone()), handler)];
//! let receiver = Receiver::open(Identity::alone("demo", "archive"), stream.clone(), ReceiverSettings::default(), flows)?;
//!
//! let sender = Sender::open(Identity::alone("demo", "correlator"), stream, vec![SendFlow::new(flow.clone())])?;
//! sender.connect(&receiver.target())?;
//! let flow = sender.flow(&flow).ok_or("it was opened")?;
//! flow.start(b"uid://A002/X1")?;
//! flow.send("spectra".into())?;
//! assert!(flow.stop()?.complete());
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod asking;
pub mod control;
pub mod directory;
pub mod distributor;
pub mod file;
pub mod frame;
pub mod group;
pub mod handler;
pub mod interface;
pub mod message;
pub mod name;
pub mod note;
pub mod protection;
pub mod receiver;
pub mod receiving;
pub mod seal;
pub mod sender;
pub mod sending;
pub mod settings;
pub mod state;
pub mod store;
pub mod target;
pub mod throttle;
pub mod transfers;
pub mod window;

mod datagram;
mod declared_flow;
mod identity;
mod open;
mod passes;
mod poll;
mod reorder;
mod shm;
mod time;

pub use distributor::Distributor;
pub use name::Name;
pub use protection::Protection;
pub use receiver::Receiver;
pub use sender::Sender;
pub use target::Target;
