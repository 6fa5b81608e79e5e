//! The rules of a user, and quiet hours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_types::Time;

use crate::{
    people::token::secret,
    query::parse,
    store::{Records, StoreError, now},
};

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "notify";
/// Rules of one user.
pub const RULES: usize = 50;
/// Bytes of a rule's query.
pub const MAX_QUERY: usize = 1000;
/// Attempts to change the rules while others change them.
const ATTEMPTS: usize = 20;

tampu_types::named_enum! {
    /// The entries that a rule is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum RuleAbout("kind of notification") {
        /// All new entries.
        #[default]
        All => "all",
        /// Replies to the user's own entries.
        Replies => "replies",
        /// Entries that contain `@` and the user's login.
        Mentions => "mentions",
    }
}

tampu_types::named_enum! {
    /// The time at which the mails of a rule are sent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Digest("digest") {
        /// A mail for each entry, at once.
        #[default]
        Off => "off",
        /// One mail at the beginning of an hour.
        Hourly => "hourly",
        /// One mail in the morning, at 7 or at the end of quiet hours.
        Daily => "daily",
    }
}

/// A rule by which a user is told of new entries.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NotifyRule {
    /// The name of the rule; made up by the logbook.
    pub id: String,
    /// The logbook; without it, all logbooks that the user may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub book: Option<String>,
    pub about: RuleAbout,
    /// A query that entries have to match; empty for none.
    pub query: String,
    pub digest: Digest,
    /// An address (https) that gets entries in place of mail, at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The secret that signs what the address gets; told once, when the rule is added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The time since which the rule is there, in Unix nanoseconds; earlier entries are left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub since: i64,
}

fn is_zero(since: &i64) -> bool {
    *since == 0
}

/// Hours without mail by rules; the mails follow at their end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuietHours {
    /// The beginning, as `22:00`.
    pub from: String,
    /// The end, as `07:00`.
    pub to: String,
    /// The local time of both, as `Europe/Zurich`; by default that of the logbook.
    #[serde(default)]
    pub zone: String,
}

impl QuietHours {
    /// Returns beginning and end in minutes of the day; `None` if one of them cannot be one.
    pub fn minutes(&self) -> Option<(i64, i64)> {
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute) = (hour.parse::<i64>().ok()?, minute.parse::<i64>().ok()?);
            ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some(hour * 60 + minute)
        };
        Some((minute(&self.from)?, minute(&self.to)?))
    }

    /// Returns true if a minute of the day is in the quiet hours, which may contain midnight.
    pub fn contains(&self, minute: i64) -> bool {
        match self.minutes() {
            Some((from, to)) if from <= to => (from..to).contains(&minute),
            Some((from, to)) => minute >= from || minute < to,
            None => false,
        }
    }
}

/// The rules and quiet hours of a user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NotifySettings {
    /// The rules, oldest first.
    pub rules: Vec<NotifyRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietHours>,
}

/// Errors of rules.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// A rule or quiet hours that cannot be.
    #[error("{0}")]
    Invalid(String),
    /// There is no such rule.
    #[error("'{login}' has no rule '{}'; 'tampu book notify list' shows the rules", .id.escape_debug())]
    NoRule { login: String, id: String },
    /// Others change the rules all the time.
    #[error("the rules of '{0}' were changed by somebody else at the same time; try again")]
    Busy(String),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl NotifyRule {
    /// Checks a rule; `attributes` are the names of all attributes.
    pub fn check(&self, attributes: &[String]) -> Result<(), NotifyError> {
        if self.query.len() > MAX_QUERY {
            return Err(NotifyError::Invalid(format!("a query of a rule has at most {MAX_QUERY} bytes")));
        }
        if self.webhook.is_some() && self.digest != Digest::Off {
            return Err(NotifyError::Invalid("a webhook gets each entry at once; leave the digest out".to_owned()));
        }
        if !self.query.trim().is_empty() {
            parse(&self.query, attributes, now()).map_err(StoreError::from)?;
        }
        Ok(())
    }

    /// Returns the rule in words, for mails and lists.
    pub fn described(&self) -> String {
        let what = match self.about {
            RuleAbout::All => "new entries",
            RuleAbout::Replies => "replies to you",
            RuleAbout::Mentions => "entries that mention you",
        };
        let book = self.book.as_ref().map_or_else(|| "all logbooks".to_owned(), |book| format!("the logbook {book}"));
        let query = if self.query.is_empty() { String::new() } else { format!(" that match '{}'", self.query) };
        let digest = if self.digest == Digest::Off { String::new() } else { format!(", {}", self.digest.name()) };
        let to = self.webhook.as_ref().map(|url| format!(", to {url}")).unwrap_or_default();
        format!("{what} in {book}{query}{digest}{to}")
    }
}

/// Reads the rules of a user.
pub fn read(store: &dyn Records, login: &str) -> Result<NotifySettings, NotifyError> {
    let record = store.record(KIND, login)?;
    Ok(record.map(|record| serde_json::from_value(record.value).unwrap_or_default()).unwrap_or_default())
}

/// Reads the rules of all users who have some.
pub fn read_all(store: &dyn Records) -> Result<Vec<(String, NotifySettings)>, StoreError> {
    let records = store.records(KIND)?.into_iter();
    let read = records.map(|(login, record)| (login, serde_json::from_value::<NotifySettings>(record.value).unwrap_or_default()));
    Ok(read.filter(|(_, settings)| !settings.rules.is_empty()).collect())
}

/// Changes the rules of a user.
pub fn change<T>(
    store: &dyn Records,
    login: &str,
    mut change: impl FnMut(&mut NotifySettings) -> Result<T, NotifyError>,
) -> Result<T, NotifyError> {
    for _ in 0..ATTEMPTS {
        let record = store.record(KIND, login)?;
        let (version, value) = record.map_or((0, None), |record| (record.version, Some(record.value)));
        let mut settings: NotifySettings = value.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default();
        let changed = change(&mut settings)?;
        let value = serde_json::to_value(&settings).map_err(|why| NotifyError::Invalid(why.to_string()))?;
        match store.put_record(KIND, login, &value, Some(version)) {
            Err(StoreError::RecordChanged { .. }) => {}
            done => {
                done?;
                return Ok(changed);
            }
        }
    }
    Err(NotifyError::Busy(login.to_owned()))
}

/// Adds a rule, and returns it with its name.
pub fn add(store: &dyn Records, login: &str, rule: NotifyRule) -> Result<NotifyRule, NotifyError> {
    let unique = secret().map_err(|why| NotifyError::Invalid(why.to_string()))?;
    let name = secret().map_err(|why| NotifyError::Invalid(why.to_string()))?;
    let id: String = name.chars().filter(char::is_ascii_alphanumeric).take(10).collect::<String>().to_lowercase();
    let Time(since) = now();
    let signs = rule.webhook.is_some().then_some(unique);
    let rule = NotifyRule { id, since, secret: signs, query: rule.query.trim().to_owned(), ..rule };
    change(store, login, |settings| {
        if settings.rules.len() >= RULES {
            return Err(NotifyError::Invalid(format!("'{login}' has {RULES} rules, and can have no more; remove one first")));
        }
        settings.rules.push(rule.clone());
        Ok(rule.clone())
    })
}

/// Removes a rule, and returns it.
pub fn remove(store: &dyn Records, login: &str, id: &str) -> Result<NotifyRule, NotifyError> {
    change(store, login, |settings| {
        let at = settings.rules.iter().position(|rule| rule.id == id);
        let missing = || NotifyError::NoRule { login: login.to_owned(), id: id.to_owned() };
        at.map(|at| settings.rules.remove(at)).ok_or_else(missing)
    })
}

/// Sets the quiet hours of a user.
pub fn set_quiet(store: &dyn Records, login: &str, quiet: Option<QuietHours>) -> Result<(), NotifyError> {
    if quiet.as_ref().is_some_and(|quiet| quiet.minutes().is_none_or(|(from, to)| from == to)) {
        let text = "invalid quiet hours; write two different times, as from 22:00 to 07:00";
        return Err(NotifyError::Invalid(text.to_owned()));
    }
    change(store, login, |settings| {
        settings.quiet.clone_from(&quiet);
        Ok(())
    })
}
