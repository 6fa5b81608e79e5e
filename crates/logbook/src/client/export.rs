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
        self.export_as(format!("{BASE}/search/export?{}&format={}", parameters(search), format.name()), stop)
    }

    /// Exports all entries that a search finds as PDF; with `threads`, each with its thread.
    pub fn export_pdf(&self, search: &Search, threads: bool, stop: &Stop) -> Result<Box<dyn Read + Send>> {
        self.export_as(format!("{BASE}/search/export?{}&format=pdf&thread={threads}", parameters(search)), stop)
    }

    fn export_as(&self, path: String, stop: &Stop) -> Result<Box<dyn Read + Send>> {
        match self.run_until(stop, move |client| client.open("GET", &path)) {
            Some(response) => Ok(Box::new(response?.into_body().into_with_config().limit(u64::MAX).reader())),
            None => Err(ClientError::Interrupted),
        }
    }
}
