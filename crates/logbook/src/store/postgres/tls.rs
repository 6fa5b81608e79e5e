//! TLS of connections to the database.

use std::{
    future::Future,
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream},
};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring::default_provider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tampu_tls::client::{certificates, end_point_hash, system_roots};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{TlsConnector, client};

/// The properties of the server's certificate that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerCheck {
    /// There is no TLS.
    NoTls,
    /// Any certificate is accepted.
    Nothing,
    /// A trusted authority has signed it.
    Authority,
    /// A trusted authority has signed it, and it names the host.
    Name,
}

/// Makes the TLS connections of a database.
#[derive(Clone)]
pub struct DatabaseTls(Arc<ClientConfig>);

impl DatabaseTls {
    /// Makes the settings, with the authorities of this file or else those of the system.
    pub fn new(check: ServerCheck, roots: Option<&Path>) -> Result<DatabaseTls, String> {
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
        let builder = builder.map_err(|why| why.to_string())?;
        let verifier: Option<Arc<WebPkiServerVerifier>> = match check {
            ServerCheck::NoTls | ServerCheck::Nothing => None,
            ServerCheck::Authority | ServerCheck::Name => {
                let mut store = RootCertStore::empty();
                let found = match roots {
                    Some(path) => certificates(path).map_err(|why| format!("sslrootcert: {why}"))?,
                    None => system_roots(),
                };
                store.add_parsable_certificates(found);
                let built = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone()).build();
                Some(built.map_err(|why| format!("sslrootcert: no authority is trusted: {why}"))?)
            }
        };
        let verifier: Arc<dyn ServerCertVerifier> = match (verifier, check) {
            (Some(verifier), ServerCheck::Name) => verifier,
            (verifier, _) => Arc::new(AnyName { verifier, provider }),
        };
        Ok(DatabaseTls(Arc::new(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())))
    }
}

/// Accepts a certificate whatever host it names. Without a verifier it accepts every certificate.
#[derive(Debug)]
struct AnyName {
    verifier: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(verifier) = &self.verifier else { return Ok(ServerCertVerified::assertion()) };
        match verifier.verify_server_cert(certificate, chain, name, ocsp, now) {
            // The name is compared last, when the chain has been verified.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl MakeTlsConnect<Socket> for DatabaseTls {
    type Stream = DatabaseStream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        Ok(Handshake { config: self.0.clone(), host: host.to_owned() })
    }
}

/// A handshake that is about to begin.
pub struct Handshake {
    config: Arc<ClientConfig>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = DatabaseStream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<DatabaseStream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            let stream = TlsConnector::from(self.config).connect(name, socket).await?;
            Ok(DatabaseStream(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
pub struct DatabaseStream(Box<client::TlsStream<Socket>>);

impl AsyncRead for DatabaseStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for DatabaseStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}

impl TlsStream for DatabaseStream {
    /// Binds the password's proof to the certificate, so that nobody between can pass it on.
    fn channel_binding(&self) -> ChannelBinding {
        let certificate = self.0.get_ref().1.peer_certificates().and_then(<[_]>::first);
        certificate.and_then(|der| end_point_hash(der)).map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}
