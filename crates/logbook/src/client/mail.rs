//! The queue of mails of a hub.

use serde_json::{Value, json};

use super::{Client, Result, address::encoded};

impl Client {
    /// The state of the sender of mail and its queue, as `GET /mail` returns them.
    pub fn mail_queue(&self) -> Result<Value> {
        self.get("/mail")
    }

    /// Sends a mail for a test: at once, with the mail server's answer, or by the queue.
    pub fn test_mail(&self, to: &str, queued: bool) -> Result<Value> {
        self.call("POST", "/mail/test", Some(&json!({ "to": to, "queued": queued })), &[])
    }

    /// Sends a waiting or failed mail again, soon.
    pub fn retry_mail(&self, id: &str) -> Result<()> {
        self.call("POST", &format!("/mail/{}/retry", encoded(id)), None, &[]).map(drop)
    }

    /// Removes a mail from the queue.
    pub fn drop_mail(&self, id: &str) -> Result<()> {
        self.call("DELETE", &format!("/mail/{}", encoded(id)), None, &[]).map(drop)
    }
}
