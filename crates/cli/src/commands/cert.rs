//! `tampu cert ...`.

use std::{
    io::Write,
    net::{IpAddr, ToSocketAddrs},
    path::PathBuf,
    time::SystemTime,
};

use clap::{Args, Subcommand};
use serde::Serialize;
use tampu_hub::{
    Config,
    host_file::{HostFile, HostFileError},
};
use tampu_tls::{Authority, CertificateDir, CertificateInfo, HostNames, KeyPairChoice, TlsError, names::local_addresses};
use tampu_types::Time;
use tampu_workers::host::host_name;

use crate::{
    context::Context,
    failure::{Failure, Outcome, written},
    time_text,
};

/// Make and renew the certificates with which hosts prove themselves
///
/// One host of a domain has the authority, which signs a certificate for each host. Without --certificates the files are in DATA/DOMAIN/cert, or
/// in the directory that the configuration names ([network] certificates). The authority's key and the files for other hosts are in
/// DATA/DOMAIN/authority. For another directory DIR they are in DIR-authority.
#[derive(Debug, Args)]
pub struct Cert {
    #[command(subcommand)]
    verb: Verb,
    /// The hub's configuration file (TOML)
    #[arg(short, long, env = "TAMPU_CONFIG", value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Tampu's data directory [env: TAMPU_DATA_DIR]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Write JSON objects, one a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Init(Init),
    Host(Host),
    Renew(Renew),
    Show(Show),
}

/// Make the domain's authority, and the certificate of this host
///
/// This host's name, its addresses and those of its name in the DNS become names of the certificate. An authority that is there is not replaced.
/// Without --key-file the domain's key is made as well, in DATA/DOMAIN/domain.key, where 'tampu up' finds it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tampu cert init --domain alma\n  tampu cert init --domain alma --name archive.example.org")]
struct Init {
    /// Further name or address of the host; repeatable
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
}

/// Make the certificate of another host, on the host with the authority
///
/// The three files in authority/hosts/NAME are for that host's own certificate directory. For a host that has a certificate, a new one is made for the
/// same key, with its names and those given here. --join also writes them into one file, with the domain's key and the address of this host's node; the other host's hub starts
/// with it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  tampu cert host mast --join mast.join\n  scp -p mast.join mast:\n  ssh mast tampu up --join mast.join"
)]
struct Host {
    /// Name of the host
    host: String,
    /// Further name or address of the host; repeatable
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    /// Leave out names and addresses of its present certificate that are not given here
    #[arg(long)]
    new_names: bool,
    /// The file with which a host joins the domain
    #[arg(long, value_name = "FILE")]
    join: Option<PathBuf>,
    /// With --join: address of a node to connect to; repeatable [default: this host's name, port 7447]
    #[arg(long, value_name = "ADDRESS", requires = "join")]
    peer: Vec<String>,
}

/// Make certificates for another year: of the hosts named, or of all
///
/// Names stay. A hub's https takes the new files at once; its bus takes them at the next start.
#[derive(Debug, Args)]
struct Renew {
    /// Names of hosts
    hosts: Vec<String>,
    /// Make new key pairs, too; otherwise each host keeps its own
    #[arg(long)]
    new_key: bool,
    /// First sign the authority again, for ten years; every host needs its new authority.crt
    #[arg(long)]
    authority: bool,
}

/// Show the certificates in the directory
#[derive(Debug, Args)]
struct Show {}

/// A certificate, as `--json` writes it.
#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    name: &'a str,
    names: &'a [String],
    issuer: &'a str,
    not_before: String,
    not_after: String,
    days_left: i64,
    fingerprint: &'a str,
    certificate: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<PathBuf>,
}

/// Port at which a hub opens the network if `--lan` names no other.
const NODE_PORT: u16 = 7447;

fn of_host_file(error: HostFileError) -> Failure {
    match error {
        HostFileError::NoKey { .. } => Failure::Usage(error.to_string()),
        error => Failure::Failed(error.to_string()),
    }
}

fn failed(error: TlsError) -> Failure {
    match error {
        TlsError::Name { .. } => Failure::Usage(error.to_string()),
        error => Failure::Failed(error.to_string()),
    }
}

impl Cert {
    pub fn run(self, context: &Context) -> Outcome {
        let connect = &context.common.connect;
        let usage = |error: tampu_hub::ConfigError| Failure::Usage(error.to_string());
        let mut config = Config::load(self.config.as_deref(), |name| std::env::var(name).ok()).map_err(usage)?;
        if let Some(domain) = &connect.domain {
            config.domain.clone_from(domain);
        }
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        if let Some(directory) = connect.certificates()? {
            config.network.certificates = Some(directory);
        }
        if connect.key_file.is_some() {
            config.network.key_file.clone_from(&connect.key_file);
        }
        let directory = config.certificates();
        move_authority(&directory)?;
        let cert = At { directory, json: self.json };
        match self.verb {
            Verb::Init(init) => cert.init(init, &config),
            Verb::Host(host) => cert.host(host, &config),
            Verb::Renew(renew) => cert.renew(&renew),
            Verb::Show(Show {}) => cert.show(),
        }
    }
}

/// Moves the authority's key out of the certificate directory, where a hub's services read.
pub(crate) fn move_authority(directory: &CertificateDir) -> Outcome {
    for (from, to) in directory.move_authority().map_err(failed)? {
        eprintln!("tampu: moved {} to {}, where no service of the hub can read it", from.display(), to.display());
    }
    Ok(())
}

/// A certificate directory, and the form of the output.
struct At {
    directory: CertificateDir,
    json: bool,
}

impl At {
    fn init(&self, init: Init, config: &Config) -> Outcome {
        let mut others = addresses_of(&host_name());
        others.extend(local_addresses().iter().map(IpAddr::to_string));
        others.extend(init.name);
        let names = HostNames::new(&host_name(), &others).map_err(failed)?;
        let now = SystemTime::now();
        let authority = Authority::create(&self.directory, config.domain.as_str(), now).map_err(failed)?;
        let info = authority.issue(&self.directory, &names, KeyPairChoice::New, now).map_err(failed)?;
        self.show_authority()?;
        self.show_host(&self.directory, &info)?;
        if config.network.key_file.is_none()
            && let Some(path) = config.make_key().map_err(|error| Failure::Failed(error.to_string()))?
        {
            eprintln!("tampu: made the domain's key, {}", path.display());
        }
        Ok(())
    }

    fn host(&self, host: Host, config: &Config) -> Outcome {
        let mut others = addresses_of(&host.host);
        others.extend(host.name);
        // First, because the name becomes one of a directory.
        HostNames::new(&host.host, &others).map_err(failed)?;
        let authority = Authority::open(&self.directory).map_err(failed)?;
        let at = self.place_of(&host.host);
        let key = if at.has_host() { KeyPairChoice::Keep } else { KeyPairChoice::New };
        let earlier = if at.has_host() { names_of(&at, host.new_names)? } else { Vec::new() };
        if !host.new_names {
            others.extend_from_slice(&earlier);
        }
        let names = HostNames::new(&host.host, &others).map_err(failed)?;
        let info = authority.issue(&at, &names, key, SystemTime::now()).map_err(failed)?;
        self.show_host(&at, &info)?;
        let is_kept = |name: &String| info.names.iter().any(|kept| kept.eq_ignore_ascii_case(name));
        let left_out: Vec<String> = earlier.into_iter().filter(|name| !is_kept(name)).collect();
        if !left_out.is_empty() {
            eprintln!("tampu: the new certificate of {} leaves out {}", host.host, left_out.join(", "));
        }
        if let Some(path) = &host.join {
            let written = self.node_addresses(host.peer).and_then(|connect| {
                HostFile::gather(&at, &host.host, config, connect).and_then(|file| file.write(path)).map_err(of_host_file)
            });
            written?;
            eprintln!("tampu: copy {} to {} with a secure tool, and run there: tampu up --join FILE", path.display(), host.host);
        } else if at != self.directory {
            eprintln!("tampu: copy the files of {} into the certificate directory of {}", at.path().display(), host.host);
        }
        Ok(())
    }

    /// Returns the addresses that a further host connects to: those given, or this host's by the name in its certificate.
    fn node_addresses(&self, given: Vec<String>) -> Result<Vec<String>, Failure> {
        if !given.is_empty() {
            return Ok(given);
        }
        let info = CertificateInfo::read(&self.directory.host()).map_err(failed)?;
        Ok(vec![format!("{}:{NODE_PORT}", info.common_name)])
    }

    fn renew(&self, renew: &Renew) -> Outcome {
        let now = SystemTime::now();
        let authority = if renew.authority { Authority::renew(&self.directory, now) } else { Authority::open(&self.directory) };
        let authority = authority.map_err(failed)?;
        if renew.authority {
            self.show_authority()?;
        }
        let key = if renew.new_key { KeyPairChoice::New } else { KeyPairChoice::Keep };
        let places: Vec<CertificateDir> = if renew.hosts.is_empty() {
            let own = self.directory.has_host().then(|| self.directory.clone());
            own.into_iter().chain(self.directory.hosts().iter().map(|name| self.directory.of_host(name))).collect()
        } else {
            renew.hosts.iter().map(|name| self.known(name)).collect::<Result<_, _>>()?
        };
        for at in &places {
            let info = authority.renew_host(at, key, now).map_err(failed)?;
            self.show_host(at, &info)?;
        }
        if places.iter().any(|at| *at != self.directory) {
            let hosts = self.directory.authority_dir().join("hosts");
            eprintln!("tampu: copy the files of each {}/NAME to that host", hosts.display());
        }
        Ok(())
    }

    fn show(&self) -> Outcome {
        if !self.directory.authority().exists() {
            return Err(failed(TlsError::Missing { path: self.directory.authority() }));
        }
        self.show_authority()?;
        let own = self.directory.has_host().then(|| self.directory.clone());
        let others = self.directory.hosts().into_iter().map(|name| self.directory.of_host(&name));
        for at in own.into_iter().chain(others) {
            self.show_host(&at, &CertificateInfo::read(&at.host()).map_err(failed)?)?;
        }
        Ok(())
    }

    /// Returns the directory of a host that has a certificate.
    fn known(&self, name: &str) -> Result<CertificateDir, Failure> {
        HostNames::new(name, &[]).map_err(failed)?;
        let at = self.place_of(name);
        if at.has_host() {
            return Ok(at);
        }
        Err(Failure::Usage(format!("{name} has no certificate in {}; 'tampu cert host {name}' makes one", at.path().display())))
    }

    /// Returns the directory for a host: this one for the host that it belongs to.
    fn place_of(&self, name: &str) -> CertificateDir {
        let own = CertificateInfo::read(&self.directory.host()).ok();
        if own.is_some_and(|info| info.common_name == name) { self.directory.clone() } else { self.directory.of_host(name) }
    }

    fn show_authority(&self) -> Outcome {
        let path = self.directory.authority();
        let key = Some(self.directory.authority_key()).filter(|key| key.exists());
        self.line("authority", path.clone(), key, &CertificateInfo::read(&path).map_err(failed)?)
    }

    fn show_host(&self, at: &CertificateDir, info: &CertificateInfo) -> Outcome {
        self.line("host", at.host(), Some(at.host_key()), info)
    }

    fn line(&self, kind: &'static str, certificate: PathBuf, key: Option<PathBuf>, info: &CertificateInfo) -> Outcome {
        let mut out = std::io::stdout().lock();
        let days_left = info.seconds_left(SystemTime::now()).div_euclid(86_400);
        let (from, until) = (Time::from_unix(info.not_before, 0), Time::from_unix(info.not_after, 0));
        if self.json {
            let line = Line {
                kind,
                name: &info.common_name,
                names: &info.names,
                issuer: &info.issuer,
                not_before: from.to_rfc3339(),
                not_after: until.to_rfc3339(),
                days_left,
                fingerprint: &info.fingerprint,
                certificate,
                key,
            };
            let line = serde_json::to_string(&line).map_err(|error| Failure::failed("a certificate as JSON", error))?;
            return written(writeln!(out, "{line}"));
        }
        let until = time_text::local(until);
        let left = if days_left < 0 { "expired".to_owned() } else { format!("{days_left} days left") };
        let names = if info.names.is_empty() { String::new() } else { format!("\n          {}", info.names.join(", ")) };
        let (name, path) = (&info.common_name, certificate.display());
        written(writeln!(out, "{kind:<9} {name}: until {} ({left}), {path}{names}", until.split('T').next().unwrap_or_default()))
    }
}

/// Returns the names in the present certificate of a host. One that cannot be read has none if they are not kept.
fn names_of(at: &CertificateDir, is_anew: bool) -> Result<Vec<String>, Failure> {
    match CertificateInfo::read(&at.host()) {
        Ok(info) => Ok(info.names),
        Err(_) if is_anew => Ok(Vec::new()),
        Err(error) => Err(Failure::Failed(format!("{error}; --new-names makes a certificate without the names of this one"))),
    }
}

/// Returns the addresses that the DNS has for a name, without loopback.
fn addresses_of(name: &str) -> Vec<String> {
    let found = (name, 0).to_socket_addrs().into_iter().flatten();
    found.map(|address| address.ip()).filter(|ip| !ip.is_loopback()).map(|ip| ip.to_string()).collect()
}
