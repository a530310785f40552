//! Random bytes from the operating system, for secrets.

use std::io;

use rustls::crypto::ring;

/// Unpredictable bytes.
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let random = ring::default_provider().secure_random;
    random.fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random bytes"))?;
    Ok(bytes)
}
