//! Name of the own host in keys.

use std::sync::Arc;

use tampu_tls::{CertificateDir, CertificateInfo};
use tampu_types::name::escape;
use zenoh::key_expr::KeyExpr;

use crate::engine::{UNPROVED, with_host};

/// Name of a host that its certificate proves, or none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HostName(Option<Arc<str>>);

impl HostName {
    /// Takes a name, in lower case; an empty one is none.
    pub fn new(name: &str) -> HostName {
        let name = name.trim();
        HostName((!name.is_empty()).then(|| name.to_lowercase().into()))
    }

    /// Reads the name in a host's certificate.
    pub fn of_certificate(directory: &CertificateDir) -> HostName {
        CertificateInfo::read(&directory.host()).map(|read| HostName::new(&read.common_name)).unwrap_or_default()
    }

    /// Returns the name.
    pub fn name(&self) -> Option<&Arc<str>> {
        self.0.as_ref()
    }

    /// Returns the chunk of keys for it.
    pub fn chunk(&self) -> String {
        self.0.as_ref().map_or_else(|| UNPROVED.to_owned(), |name| escape(name))
    }

    /// Returns the key in a template, with this host.
    pub fn key(&self, template: &KeyExpr<'_>) -> KeyExpr<'static> {
        let key = with_host(template.as_str(), &self.chunk());
        // A chunk of an escaped name is as valid as the one that stood for it.
        KeyExpr::try_from(key).unwrap_or_else(|_| template.clone().into_owned())
    }
}
