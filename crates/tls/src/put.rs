//! Puts the files of a host, which came in another way, into its certificate directory.

use std::fs;

use crate::{
    certificate::CertificateInfo,
    directory::{CertificateDir, HostTexts, make, read, write},
    error::TlsError,
    mutual::Files,
};

impl CertificateDir {
    /// Writes the three files of a host, if the directory has none or older ones. Texts that do not belong together are
    /// refused, and so are those of another host; the files that are there stay then. Returns true if they were written.
    pub fn put(&self, texts: &HostTexts) -> Result<bool, TlsError> {
        let mut name = self.path().file_name().unwrap_or_default().to_owned();
        name.push(format!("-new{}", std::process::id()));
        let trial = CertificateDir::new(self.path().with_file_name(name));
        let put = self.put_by_way_of(&trial, texts);
        let _ = fs::remove_dir_all(trial.path());
        put
    }

    fn put_by_way_of(&self, trial: &CertificateDir, texts: &HostTexts) -> Result<bool, TlsError> {
        make(trial.path())?;
        write(&trial.authority(), &texts.authority, 0o644)?;
        write(&trial.host(), &texts.certificate, 0o644)?;
        write(&trial.host_key(), &texts.key, 0o600)?;
        Files::from(trial).client_config()?;
        let new = CertificateInfo::read(&trial.host())?;
        if self.has_host() {
            let old = CertificateInfo::read(&self.host())?;
            if old.common_name != new.common_name {
                let why = format!("it is the certificate of {}, the new one is of {}", old.common_name, new.common_name);
                return Err(TlsError::invalid(&self.host(), why));
            }
            let is_older = old.not_before < new.not_before || read(&self.authority())? != texts.authority;
            if !is_older {
                return Ok(false);
            }
        }
        make(self.path())?;
        for (from, to) in
            [(trial.host_key(), self.host_key()), (trial.host(), self.host()), (trial.authority(), self.authority())]
        {
            fs::rename(&from, &to).map_err(|why| TlsError::io(&to, why))?;
        }
        Ok(true)
    }
}
