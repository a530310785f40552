//! TLS: the server's certificate and key, and a stream whose first bytes have already been read.

use std::{
    io,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use remora_sql::Encryption;
use rustls::{
    ProtocolVersion, ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;

use crate::{Error, Result};

/// Reads a certificate chain and its key.
pub(super) fn acceptor(cert: &Path, key: &Path) -> Result<TlsAcceptor> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| {
        Error::Settings(format!(
            "{}: {why}; sql.tls_cert and sql.tls_key are a certificate chain and its key in PEM",
            path.display()
        ))
    };
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|error| wrong(cert, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(cert, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| wrong(cert, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The encryption of a connection, in the names of MySQL and OpenSSL.
pub(super) fn encryption(connection: &ServerConnection) -> Option<Encryption> {
    let version = match connection.protocol_version()? {
        ProtocolVersion::TLSv1_2 => "TLSv1.2",
        ProtocolVersion::TLSv1_3 => "TLSv1.3",
        _ => return None,
    };
    let suite = connection.negotiated_cipher_suite()?.suite();
    Some(Encryption { version: version.to_owned(), cipher: openssl_name(suite.as_str()?) })
}

/// OpenSSL's name of a cipher suite.
fn openssl_name(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("TLS13_") {
        return format!("TLS_{rest}");
    }
    let name = name.strip_prefix("TLS_").unwrap_or(name).replace("_WITH_", "_");
    let name = name.replace("AES_", "AES").replace("POLY1305_SHA256", "POLY1305");
    name.replace('_', "-")
}

/// A stream preceded by bytes that have already been read.
pub(super) struct Rewound<S> {
    first: Vec<u8>,
    taken: usize,
    stream: S,
}

impl<S> Rewound<S> {
    /// Returns `first` before the bytes of `stream`.
    pub(super) fn new(first: Vec<u8>, stream: S) -> Self {
        Self { first, taken: 0, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = self.first.get(self.taken..).unwrap_or_default();
        if rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = rest.len().min(buffer.remaining());
        buffer.put_slice(rest.get(..count).unwrap_or_default());
        self.taken += count;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::openssl_name;

    #[test]
    fn ciphers_have_openssls_names() {
        for (suite, name) in [
            ("TLS13_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384"),
            ("TLS13_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
            ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ] {
            assert_eq!(openssl_name(suite), name);
        }
    }
}
