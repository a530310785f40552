//! JSON web tokens (RFC 7519): a lasting login, issued for a user's name and password.
//!
//! ```text
//! token := header "." claims "." signature    each in base64url without padding
//!   header    {"alg": "HS256", "typ": "JWT"}
//!   claims    {"sub": user, "iat": seconds, "exp": seconds}
//!   signature HMAC-SHA256 of what stands before its dot
//! ```
//!
//! The header's algorithm is ignored: only one is supported.
//!
//! A token is signed with a random secret of this process and with the stored form of the user's password. So it
//! becomes invalid when the process ends, the password is changed or the user is removed. The user's rights are read
//! from the settings at each request.

use std::{
    net::IpAddr,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD as BASE64};
use hmac::{Hmac, Mac};
use remora_protocol::mysql::auth::Password;
use remora_sql::Identity;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::Logins;
use crate::{random::random, settings::Settings};

/// The validity of a token: 72 hours, as in tiedot.
const LIFETIME_S: u64 = 72 * 60 * 60;
/// The longest token.
const MAX_TOKEN_BYTES: usize = 4 << 10;

/// The secret of signatures; `None` if the system has no random bytes: then there are no tokens.
pub(crate) struct Secret(Option<[u8; 32]>);

impl Default for Secret {
    fn default() -> Self {
        Self(random().ok())
    }
}

impl Secret {
    /// The MAC that signs and verifies the tokens of a user with this password.
    fn signer(&self, password: &Password) -> Option<Hmac<Sha256>> {
        let mut key = self.0?.to_vec();
        key.extend(password.stored());
        Hmac::new_from_slice(&key).ok()
    }
}

#[derive(Serialize)]
struct Header {
    alg: &'static str,
    typ: &'static str,
}

/// The claims of a token.
#[derive(Deserialize, Serialize)]
struct Claims {
    sub: String,
    iat: u64,
    exp: u64,
}

impl Logins {
    /// A token for a user who has logged in from this address; `None` if there can be none.
    pub(crate) fn web_token(
        &self,
        settings: &Settings,
        user: &str,
        address: IpAddr,
    ) -> Option<String> {
        let claimed = self.claim(settings, user, Some(address));
        claimed.identity?;
        let iat = now_s();
        let claims = Claims { sub: user.to_owned(), iat, exp: iat + LIFETIME_S };
        let signer = self.secret.signer(&claimed.password)?;
        sign(signer, &claims).filter(|token| token.len() <= MAX_TOKEN_BYTES)
    }

    /// The identity of a token sent from this address; `None` if it is invalid or expired.
    pub(crate) fn verify_web_token(
        &self,
        settings: &Settings,
        token: &[u8],
        address: IpAddr,
    ) -> Option<Identity> {
        let (signed, claims, signature) = parsed(token)?;
        let claimed = self.claim(settings, &claims.sub, Some(address));
        let signer = self.secret.signer(&claimed.password)?.chain_update(signed);
        signer.verify_slice(&BASE64.decode(signature).ok()?).ok()?;
        claimed.identity.filter(|_| now_s() < claims.exp)
    }
}

/// Whether this has the form of a token, valid or not. Signatures cannot be guessed, so an invalid token, as all are
/// after a restart, does not count as a failed login.
pub(crate) fn is_web_token(token: &[u8]) -> bool {
    parsed(token).is_some()
}

/// The signed part, its claims, and the signature.
fn parsed(token: &[u8]) -> Option<(&str, Claims, &str)> {
    let token = str::from_utf8(token).ok().filter(|token| token.len() <= MAX_TOKEN_BYTES)?;
    let (signed, signature) = token.rsplit_once('.')?;
    let (_, claims) = signed.split_once('.')?;
    let claims = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
    Some((signed, claims, signature))
}

fn sign(signer: Hmac<Sha256>, claims: &Claims) -> Option<String> {
    let header = serde_json::to_vec(&Header { alg: "HS256", typ: "JWT" }).ok()?;
    let claims = serde_json::to_vec(claims).ok()?;
    let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
    let signature = signer.chain_update(&signed).finalize().into_bytes();
    Some(format!("{signed}.{}", BASE64.encode(signature)))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, path::Path};

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn users(password: &str) -> Settings {
        let anna =
            format!("[[users]]\nname = 'anna'\npassword = '{password}'\nread = ['shop.*']\n");
        let text = format!("{anna}[[users]]\nname = 'bert'\npassword = 'b'\n");
        Settings::parse(Path::new("remora.toml"), &text).unwrap()
    }

    #[test]
    fn web_token_is_valid_until_the_password_changes() {
        let (logins, settings) = (Logins::default(), users("a"));
        let token = logins.web_token(&settings, "anna", HERE).unwrap();
        let prove = |logins: &Logins, settings: &Settings, token: &str| {
            logins.verify_web_token(settings, token.as_bytes(), HERE)
        };
        let identity = prove(&logins, &settings, &token).unwrap();
        assert_eq!((&*identity.user, &*identity.host), ("anna", "127.0.0.1"));
        assert_eq!(identity.rights, verify_rights(&settings));
        assert!(prove(&logins, &users("other"), &token).is_none());
        // Another process has another secret.
        assert!(prove(&Logins::default(), &settings, &token).is_none());
        assert!(logins.web_token(&settings, "nobody", HERE).is_none());
    }

    fn verify_rights(settings: &Settings) -> Option<Vec<remora_sql::Right>> {
        Logins::default().verify_password(settings, "anna", b"a", Some(HERE)).unwrap().rights
    }

    #[test]
    fn foreign_web_tokens_are_refused() {
        let (logins, settings) = (Logins::default(), users("a"));
        let prove = |token: &str| logins.verify_web_token(&settings, token.as_bytes(), HERE);
        let token = logins.web_token(&settings, "anna", HERE).unwrap();
        assert!(prove(&token).is_some());
        let parts: Vec<&str> = token.split('.').collect();
        let other = logins.web_token(&settings, "bert", HERE).unwrap();
        for wrong in [
            // Another user's claims, no signature, another algorithm.
            format!("{}.{}.{}", parts[0], other.split('.').nth(1).unwrap(), parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("eyJhbGciOiJub25lIn0.{}.", parts[1]),
            format!("eyJhbGciOiJub25lIn0.{}.{}", parts[1], parts[2]),
            token[..token.len() - 2].to_owned(),
            format!("{token}="),
            token.repeat(100),
            String::new(),
            "..".to_owned(),
        ] {
            assert!(prove(&wrong).is_none(), "{wrong}");
        }
        let password = logins.claim(&settings, "anna", Some(HERE)).password;
        let signed = |exp: u64| {
            let claims = Claims { sub: "anna".into(), iat: 1, exp };
            sign(logins.secret.signer(&password).unwrap(), &claims).unwrap()
        };
        assert!(prove(&signed(now_s() + 5)).is_some());
        assert!(prove(&signed(now_s())).is_none());
    }
}
