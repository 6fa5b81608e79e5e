//! Several services on one listener, each below a path of its own.

use std::sync::Arc;

use http::request::Parts;

use super::route::{HttpService, Matched};

/// Services by their mount paths. A request for another path goes to `otherwise`.
pub struct Mounts {
    mounted: Vec<(String, Arc<dyn HttpService>)>,
    otherwise: Arc<dyn HttpService>,
}

impl Mounts {
    /// Creates an empty set; every request goes to `otherwise`.
    pub fn new(otherwise: Arc<dyn HttpService>) -> Mounts {
        Mounts { mounted: Vec::new(), otherwise }
    }

    /// Mounts a service at a path such as `/api`. It gets every request for `/api/` and below.
    #[must_use]
    pub fn mount(mut self, path: &str, service: Arc<dyn HttpService>) -> Mounts {
        self.mounted.push((path.to_owned(), service));
        self
    }
}

impl HttpService for Mounts {
    fn find(self: Arc<Self>, head: &Parts) -> Matched {
        let path = head.uri.path();
        let is_below = |mount: &str| path.strip_prefix(mount).is_some_and(|rest| rest.starts_with('/'));
        let service = self.mounted.iter().find(|(mount, _)| is_below(mount)).map_or(&self.otherwise, |(_, service)| service);
        service.clone().find(head)
    }
}
