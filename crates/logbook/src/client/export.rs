//! Exports by the hub: the client receives the finished file.

use std::io::Read;

use super::{Client, ClientError, Result, address::BASE, search::parameters};
use crate::{
    export::Format,
    search::{Search, Stop},
};

impl Client {
    /// Exports all entries that a search finds, in a file format. The hub writes the file while it is read.
    pub fn export(&self, search: &Search, format: Format, stop: &Stop) -> Result<Box<dyn Read + Send>> {
        let path = format!("{BASE}/search/export?{}&format={}", parameters(search), format.name());
        match self.run_until(stop, move |client| client.open("GET", &path)) {
            Some(response) => Ok(Box::new(response?.into_body().into_with_config().limit(u64::MAX).reader())),
            None => Err(ClientError::Interrupted),
        }
    }
}
