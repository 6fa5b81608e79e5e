//! The way to addresses of the web that rules of users name.

use std::{sync::Arc, time::Duration};

use tampu_logbook::{
    mail::{outbox::HookPoster, smtp::Offered},
    notify::webhook,
};
use ureq::{
    Agent,
    tls::{Certificate, RootCerts, TlsConfig},
};

use super::settings::BookSettings;

/// Time limit of one attempt.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Returns the way to the hosts that the site allows; `None` if it allows none.
pub fn poster(settings: &BookSettings) -> Result<Option<Box<HookPoster>>, String> {
    let hosts = settings.webhook_hosts.clone();
    if hosts.is_empty() {
        return Ok(None);
    }
    let mut roots = tampu_tls::client::system_roots();
    if let Some(path) = &settings.webhook_certificates {
        roots.extend(tampu_tls::client::certificates(path).map_err(|why| format!("webhook_certificates: {why}"))?);
    }
    let roots: Vec<Certificate<'static>> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()));
    // A redirection or a proxy of the environment would lead to hosts that nobody allowed.
    let agent: Agent = Agent::config_builder()
        .timeout_global(Some(TIMEOUT))
        .max_redirects(0)
        .http_status_as_error(false)
        .https_only(true)
        .proxy(None)
        .tls_config(tls.build())
        .build()
        .into();
    Ok(Some(Box::new(move |url, message| post(&agent, &hosts, url, message))))
}

fn post(agent: &Agent, hosts: &[String], url: &str, message: &[u8]) -> Offered {
    // A host can have been removed from the list since the rule was made.
    if let Err(error) = webhook::check(url, hosts) {
        return Offered::Refused(error.to_string());
    }
    let Some((headers, body)) = webhook::parts(message) else { return Offered::Refused("the message is damaged".to_owned()) };
    let mut request = agent.post(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    match request.send(body) {
        Err(error) => Offered::NotNow(error.to_string()),
        Ok(response) => {
            let status = response.status();
            match status.as_u16() {
                200..300 => Offered::Accepted(status.to_string()),
                408 | 425 | 429 | 500.. => Offered::NotNow(status.to_string()),
                300..400 => Offered::Refused(format!("{status}: redirections are not followed")),
                _ => Offered::Refused(status.to_string()),
            }
        }
    }
}
