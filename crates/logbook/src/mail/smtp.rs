//! The conversation with the mail server.

use std::time::Duration;

use lettre::{
    address::Envelope,
    transport::smtp::{
        authentication::{Credentials, Mechanism},
        client::{Certificate, CertificateStore, SmtpConnection, TlsParameters},
        extension::ClientId,
    },
};
use tampu_tls::client::{certificates, system_roots};
use tampu_workers::host::host_name;

use super::{
    message::address,
    settings::{MailSettings, MailTls, read_secret},
};

/// Time limit of each step of the conversation.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The result of offering a mail for one recipient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Offered {
    /// The server has accepted it, with these words.
    Accepted(String),
    /// The server asks for another attempt, as with greylisting.
    NotNow(String),
    /// The server refuses it for good.
    Refused(String),
    /// The connection broke.
    Broken(String),
}

/// A connection to the mail server, after encryption and login.
pub struct Connection(SmtpConnection);

impl Connection {
    /// Connects as the settings say. An error has the step and the server's words.
    pub fn open(settings: &MailSettings) -> Result<Connection, String> {
        let host = settings.host.as_deref().ok_or("no mail server is configured")?;
        let port = settings.port();
        let step = |what: &str, why: String| format!("{host}:{port}: {what}: {why}");
        let tls = match settings.tls {
            MailTls::None => None,
            _ => Some(tls(settings, host).map_err(|why| step("certificates", why))?),
        };
        let hello = ClientId::Domain(host_name());
        let wrapped = tls.as_ref().filter(|_| settings.tls == MailTls::Tls);
        let connected = SmtpConnection::connect((host, port), Some(TIMEOUT), &hello, wrapped, None);
        let mut connection = connected.map_err(|error| step("connection", explained(&error)))?;
        if let Some(tls) = tls.as_ref().filter(|_| settings.tls == MailTls::Starttls) {
            if !connection.can_starttls() {
                connection.abort();
                return Err(step(
                    "STARTTLS",
                    "the server does not offer it; set tls = \"tls\" if it speaks TLS at once".to_owned(),
                ));
            }
            connection.starttls(tls, &hello).map_err(|error| step("STARTTLS", explained(&error)))?;
        }
        if let (Some(user), Some(file)) = (&settings.user, &settings.password_file) {
            let password = read_secret(file).map_err(|why| step("password", why))?;
            let credentials = Credentials::new(user.clone(), password);
            let logged_in = connection.auth(&[Mechanism::Plain, Mechanism::Login], &credentials);
            if let Err(error) = logged_in {
                connection.abort();
                return Err(step(&format!("login of '{user}'"), explained(&error)));
            }
        }
        Ok(Connection(connection))
    }

    /// Offers a mail for one recipient. After anything but acceptance the connection is closed.
    pub fn offer(&mut self, from: &str, to: &str, text: &[u8]) -> Offered {
        let envelope = match (address(from), address(to)) {
            (Ok(from), Ok(to)) => Envelope::new(Some(from), vec![to]),
            (Err(error), _) | (_, Err(error)) => return Offered::Refused(error.to_string()),
        };
        let envelope = match envelope {
            Ok(envelope) => envelope,
            Err(error) => return Offered::Refused(error.to_string()),
        };
        match self.0.send(&envelope, text) {
            Ok(response) => {
                let words: Vec<&str> = response.message().collect();
                Offered::Accepted(format!("{} {}", response.code(), words.join(" ")).trim().to_owned())
            }
            Err(error) if error.is_permanent() || error.is_client() => Offered::Refused(explained(&error)),
            Err(error) if error.is_transient() => Offered::NotNow(explained(&error)),
            Err(error) => Offered::Broken(explained(&error)),
        }
    }

    /// Returns true if no further mail can be offered.
    pub fn is_broken(&self) -> bool {
        self.0.has_broken()
    }

    /// Ends the conversation.
    pub fn close(mut self) {
        if !self.0.has_broken() {
            let _ = self.0.quit();
        }
    }
}

/// Returns the rules for encryption: the system's authorities and those of the settings.
fn tls(settings: &MailSettings, host: &str) -> Result<TlsParameters, String> {
    let mut roots = system_roots();
    if let Some(file) = &settings.certificates {
        roots.extend(certificates(file).map_err(|why| why.to_string())?);
    }
    let mut builder = TlsParameters::builder(host.to_owned()).certificate_store(CertificateStore::None);
    for root in roots {
        let root = Certificate::from_der(root.to_vec()).map_err(|why| why.to_string())?;
        builder = builder.add_root_certificate(root);
    }
    builder.build().map_err(|why| why.to_string())
}

/// Returns the words of an error, with the way out where there is one.
fn explained(error: &lettre::transport::smtp::Error) -> String {
    let words = match (error.status(), std::error::Error::source(error)) {
        (Some(code), Some(source)) => format!("{code} {source}"),
        (None, Some(source)) => source.to_string(),
        _ => error.to_string(),
    };
    if words.contains("UnknownIssuer") || words.contains("invalid peer certificate") {
        return format!("{words}; name the authority of the server's certificate in [mail] certificates");
    }
    words
}
