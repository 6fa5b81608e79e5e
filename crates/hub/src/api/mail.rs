//! The queue of mails, for administrators: the list, repetition, removal, and a mail for a test.

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::mail::{Mail, MailError, Outbox, queue::QueuedMail};

use super::call::{Answer, Call, DELETE, GET, POST, Route, SHORT, nothing, ok};
use crate::http::{
    problem::Problem,
    route::{Content::Nothing, Login, json_of},
};

/// Routes of the queue of mails.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/mail",
        id: "mailQueue",
        what: "Returns the state of the sender of mail, and the mails that wait or failed",
        gives: (200, json_of::<MailQueue>()),
        login: Login::Admin,
        act: queue,
        ..GET
    },
    Route {
        path: "/mail/test",
        id: "testMail",
        what: "Sends a mail for a test, at once or by the queue",
        takes: json_of::<MailTest>(),
        gives: (200, json_of::<MailTested>()),
        login: Login::Admin,
        body: SHORT,
        act: test,
        ..POST
    },
    Route {
        path: "/mail/{id}/retry",
        id: "retryMail",
        what: "Sends a waiting or failed mail again, soon",
        gives: (204, Nothing),
        login: Login::Admin,
        act: |call| {
            outbox(call)?.retry(call.var(0))?;
            nothing()
        },
        ..POST
    },
    Route {
        path: "/mail/{id}",
        id: "dropMail",
        what: "Removes a mail from the queue; nobody else gets it",
        gives: (204, Nothing),
        login: Login::Admin,
        act: |call| {
            outbox(call)?.remove(call.var(0))?;
            nothing()
        },
        ..DELETE
    },
];

/// The state of the sender of mail.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MailQueue {
    /// The mail server, as `mail.example.org:587`.
    pub server: String,
    /// The reason why the server cannot be used, while it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<String>,
    /// Deliveries that the server accepted since the start.
    pub sent: u64,
    /// Mails that wait or failed, oldest first.
    pub mails: Vec<QueuedMail>,
}

/// A request for a mail for a test.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MailTest {
    /// The address of the recipient.
    pub to: String,
    /// True to take the mail into the queue, as any other mail, in place of sending it at once.
    #[serde(default)]
    pub queued: bool,
}

/// The result of a mail for a test.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MailTested {
    /// The mail server's answer; absent for a mail in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The name of the mail in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

fn outbox<'a>(call: &Call<'a>) -> Result<&'a Outbox, Problem> {
    Ok(call.api.mail.as_deref().ok_or(MailError::NotConfigured)?)
}

fn queue(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let outbox = outbox(call)?;
    let (settings, report) = (outbox.settings(), outbox.report());
    let server = format!("{}:{}", settings.host.as_deref().unwrap_or_default(), settings.port());
    ok(&MailQueue { server, away: report.away, sent: report.sent, mails: outbox.mails() })
}

fn test(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let asked: MailTest = call.json()?;
    let mail = Mail {
        to: vec![asked.to],
        subject: "Test of the logbook's mail".to_owned(),
        text: format!("The logbook can send mail. {} asked for this test.\n", call.by()),
        ..Mail::default()
    };
    let outbox = outbox(call)?;
    if asked.queued {
        return ok(&MailTested { answer: None, id: Some(outbox.send(&mail)?) });
    }
    ok(&MailTested { answer: Some(outbox.test(&mail)?), id: None })
}

impl From<MailError> for Problem {
    fn from(error: MailError) -> Problem {
        let (status, kind, help) = match &error {
            MailError::NotConfigured => (StatusCode::CONFLICT, "no-mail", Some("docs/operate/mail.md shows the settings")),
            MailError::Address { .. } | MailError::Recipients(_) => (StatusCode::BAD_REQUEST, "bad-request", None),
            MailError::Message(_) => (StatusCode::BAD_GATEWAY, "mail-failed", Some("correct [mail] in the hub's configuration")),
            MailError::Full(_) => (StatusCode::SERVICE_UNAVAILABLE, "mail-full", None),
            MailError::NoMail(_) => (StatusCode::NOT_FOUND, "not-there", None),
            MailError::Io { .. } | MailError::Worker(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed", None),
        };
        let problem = Problem::new(status, kind, error.to_string());
        match help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}
