//! `tampu mail ...`: a test of the logbook's mail, and the queue of mails that wait or failed.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tampu_logbook::client::Client;

use super::{
    book::place::refused,
    hub_api::{HubApi, say},
};
use crate::{
    context::Context,
    failure::{Failure, Outcome},
    plural::counted,
};

/// Try the mail of the logbook, and list, retry and drop mails that wait or failed
///
/// The section [mail] of the hub's configuration names the mail server. The hub of this host answers, or with --hub http://HOST:PORT another one.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu mail test zoe@example.org\n  tampu mail queue list\n  tampu mail queue retry --all\n  \
    tampu mail queue drop 18a1b2c3d4e5f607"
)]
pub struct MailCommand {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    api: HubApi,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Send a mail at once, and print the mail server's answer
    Test {
        /// The address of the recipient
        #[arg(value_name = "ADDRESS")]
        to: String,
        /// Take the mail into the queue, as any other mail
        #[arg(long)]
        queued: bool,
    },
    /// Mails that wait for the mail server, or that failed
    #[command(subcommand)]
    Queue(Queue),
}

#[derive(Debug, Subcommand)]
enum Queue {
    /// List the mails, oldest first, with the last answer of the mail server
    List,
    /// Send mails again, soon
    Retry(Which),
    /// Remove mails; who has not got them will not get them
    Drop(Which),
}

/// Mails of the queue.
#[derive(Debug, Args)]
struct Which {
    /// Names of mails; 'tampu mail queue list' shows them
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<String>,
    /// All mails of the queue
    #[arg(long)]
    all: bool,
}

impl MailCommand {
    pub fn run(self, context: &Context) -> Outcome {
        let hub = self.api.hub(context)?;
        let json = self.api.json;
        match self.verb {
            Verb::Test { to, queued } => {
                let tested = hub.test_mail(&to, queued).map_err(refused)?;
                let text = match (tested["answer"].as_str(), tested["id"].as_str()) {
                    (None, Some(id)) => format!("the mail {id} to {to} is in the queue"),
                    (answer, _) => format!("the mail server accepted a mail to {to}: {}", answer.unwrap_or_default()),
                };
                say(&text, &tested, json)
            }
            Verb::Queue(Queue::List) => list(&hub, json),
            Verb::Queue(Queue::Retry(which)) => {
                let ids = which.of(&hub)?;
                ids.iter().try_for_each(|id| hub.retry_mail(id)).map_err(refused)?;
                say(&format!("{} due", counted(ids.len() as u64, "mail")), &json!({ "retried": ids }), json)
            }
            Verb::Queue(Queue::Drop(which)) => {
                let ids = which.of(&hub)?;
                ids.iter().try_for_each(|id| hub.drop_mail(id)).map_err(refused)?;
                say(&format!("{} dropped", counted(ids.len() as u64, "mail")), &json!({ "dropped": ids }), json)
            }
        }
    }
}

impl Which {
    fn of(self, hub: &Client) -> Result<Vec<String>, Failure> {
        if !self.all {
            return Ok(self.ids);
        }
        let queue = hub.mail_queue().map_err(refused)?;
        let mails = queue["mails"].as_array().into_iter().flatten();
        Ok(mails.filter_map(|mail| mail["id"].as_str()).map(str::to_owned).collect())
    }
}

fn list(hub: &Client, as_json: bool) -> Outcome {
    let queue = hub.mail_queue().map_err(refused)?;
    if as_json {
        return say("", &queue, true);
    }
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let mails = queue["mails"].as_array().map(Vec::as_slice).unwrap_or_default();
    for mail in mails {
        say(&format!("{} {} '{}'", text(mail, "id"), text(mail, "made"), text(mail, "subject")), mail, false)?;
        for to in mail["to"].as_array().into_iter().flatten() {
            let last = to["last"].as_str().map(|last| format!(": {last}")).unwrap_or_default();
            let attempts = counted(to["attempts"].as_u64().unwrap_or_default(), "attempt");
            say(&format!("  {} {} after {attempts}{last}", text(to, "to"), text(to, "state")), to, false)?;
        }
    }
    let away = queue["away"].as_str().map(|why| format!("; it cannot be used: {why}")).unwrap_or_default();
    let server = text(&queue, "server");
    say(&format!("{} in the queue; mail server {server}{away}", counted(mails.len() as u64, "mail")), &queue, false)
}
