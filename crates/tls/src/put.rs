//! Puts the files of a host, which came in another way, into its certificate directory.

use std::fs;

use crate::{
    certificate::CertificateInfo,
    directory::{CertificateDir, HostTexts, make, write},
    error::TlsError,
    mutual::Files,
};

impl CertificateDir {
    /// Writes the three files of a host, if the directory has none or older ones. Texts that do not belong together are
    /// refused, and so are those of another host; the files that are there stay then. Returns true if they were written.
    pub fn put(&self, texts: &HostTexts) -> Result<bool, TlsError> {
        if self.has_host() && self.texts().is_ok_and(|here| here == *texts) {
            return Ok(false);
        }
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
            // An authority that was signed again comes with newer certificates.
            if old.not_before > new.not_before {
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::{Authority, HostNames, KeyPairChoice};

    #[test]
    fn newer_files_replace_older_ones_and_never_the_other_way() {
        let place = tempfile::tempdir().unwrap();
        let first = CertificateDir::new(place.path().join("first"));
        let then = SystemTime::now() - Duration::from_secs(9 * 86_400);
        let (at, names) = (first.of_host("mast"), HostNames::new("mast", &[]).unwrap());
        Authority::create(&first, "lab", then).unwrap().issue(&at, &names, KeyPairChoice::New, then).unwrap();
        let older = at.texts().unwrap();
        // The authority is signed again, and the host gets a new key.
        let renewed = Authority::renew(&first, SystemTime::now()).unwrap();
        renewed.issue(&at, &names, KeyPairChoice::New, SystemTime::now()).unwrap();
        let newer = at.texts().unwrap();
        assert!(older.authority != newer.authority && older.key != newer.key);

        let mast = CertificateDir::new(place.path().join("mast"));
        for (texts, is_put, there) in
            [(&older, true, &older), (&older, false, &older), (&newer, true, &newer), (&older, false, &newer)]
        {
            assert_eq!(mast.put(texts).unwrap(), is_put);
            assert!(mast.texts().unwrap() == *there);
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 3, "first, its authority and mast");
    }
}
