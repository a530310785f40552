//! Accounts: one set of users and one token for all protocols.
//!
//! With `[[users]]`, every protocol requires one of them. With only a token, it is the password of any user name. With
//! neither, every client may do everything. With a MygramDB file, the token protects administration only.

mod failures;
mod web_tokens;

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    sync::Arc,
};

use remora_protocol::mysql::auth::Password;
use remora_sql::Identity;

pub(crate) use failures::Failures;
pub(crate) use web_tokens::is_web_token;

use crate::settings::{Dialect, Settings, find_user};

/// The credentials that a server requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginPolicy {
    /// None.
    Nothing,
    /// The token, for administration only.
    TokenForAdministration,
    /// The token.
    Token,
    /// A user with a password. The token, if there is one, is a user with all rights.
    User,
}

impl LoginPolicy {
    /// The credentials that these settings require.
    pub(crate) fn of(settings: &Settings) -> Self {
        match settings.dialect {
            _ if !settings.users.is_empty() => Self::User,
            _ if settings.admin_token.is_empty() => Self::Nothing,
            Dialect::MygramDb => Self::TokenForAdministration,
            Dialect::Remora => Self::Token,
        }
    }

    /// Whether nothing is answered before a login.
    pub(crate) fn is_required(self) -> bool {
        matches!(self, Self::Token | Self::User)
    }

    /// How to log in on the line protocol.
    pub(crate) fn auth_syntax(self) -> &'static str {
        match self {
            Self::User => "AUTH <user> <password>",
            _ => "AUTH <token>",
        }
    }
}

/// The account that a client claims: the password that proves it, and the resulting identity.
pub(crate) struct ClaimedAccount {
    pub password: Arc<Password>,
    /// `None` for an unknown name, which no password proves.
    pub identity: Option<Identity>,
}

/// The state of logins in all protocols.
#[derive(Default)]
pub(crate) struct Logins {
    pub failures: Failures,
    /// The secret that signs this process's web tokens.
    secret: web_tokens::Secret,
    /// Chooses the password method for an unknown name, so that it looks like a known one.
    hasher: RandomState,
}

impl Logins {
    /// The account of this name for a client at this address.
    pub(crate) fn claim(
        &self,
        settings: &Settings,
        name: &str,
        address: Option<IpAddr>,
    ) -> ClaimedAccount {
        let identity = |rights| Identity { user: name.to_owned(), host: host_of(address), rights };
        if LoginPolicy::of(settings) == LoginPolicy::Token {
            let password = Arc::new(Password::plain(settings.admin_token.as_bytes()));
            return ClaimedAccount { password, identity: Some(identity(None)) };
        }
        match find_user(&settings.users, name, address) {
            Some(user) => ClaimedAccount {
                password: Arc::clone(&user.password),
                identity: Some(identity(user.rights.clone())),
            },
            None => {
                ClaimedAccount { password: Arc::new(self.decoy(settings, name)), identity: None }
            }
        }
    }

    /// A decoy password for an unknown name; always the same for the same name.
    fn decoy(&self, settings: &Settings, name: &str) -> Password {
        let count = settings.users.len().max(1) as u64;
        let chosen = usize::try_from(self.hasher.hash_one(name) % count).unwrap_or(0);
        settings.users.get(chosen).map_or_else(Password::impossible, |user| user.password.decoy())
    }

    /// The identity of a client that sends a password; `None` if it is wrong. May take milliseconds.
    pub(crate) fn verify_password(
        &self,
        settings: &Settings,
        name: &str,
        password: &[u8],
        address: Option<IpAddr>,
    ) -> Option<Identity> {
        let claimed = self.claim(settings, name, address);
        if claimed.password.check_clear(password) { claimed.identity } else { None }
    }
}

/// The identity of a client that sends the token; `None` if it is wrong, or there is none.
pub(crate) fn verify_token(
    settings: &Settings,
    token: &[u8],
    address: Option<IpAddr>,
) -> Option<Identity> {
    let set = settings.admin_token.as_bytes();
    let is_right = !set.is_empty() && is_equal(token, set);
    is_right.then(|| Identity { host: host_of(address), ..Identity::default() })
}

/// A client's address as accounts and PROCESSLIST show it.
pub(crate) fn host_of(address: Option<IpAddr>) -> String {
    address.map_or_else(|| "localhost".to_owned(), |address| address.to_canonical().to_string())
}

/// Compares two tokens in constant time.
fn is_equal(given: &[u8], set: &[u8]) -> bool {
    let mut difference = given.len() ^ set.len();
    for (index, byte) in given.iter().enumerate() {
        let expected = set.get(index % set.len().max(1)).copied().unwrap_or(0);
        difference |= usize::from(byte ^ expected);
    }
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn settings(text: &str) -> Settings {
        Settings::parse(Path::new("remora.toml"), text).unwrap()
    }

    #[test]
    fn tokens_are_compared_whole() {
        assert!(is_equal(b"secret", b"secret"));
        for wrong in ["secre", "secrets", "secretsecret", "", "Secret"] {
            assert!(!is_equal(wrong.as_bytes(), b"secret"), "{wrong}");
        }
    }

    #[test]
    fn login_policies_match_the_settings() {
        let user = "[[users]]\nname = 'anna'\npassword = 'x'\n";
        let token = "[auth]\nadmin_token = 's3cret'\n";
        let of = |text: &str| LoginPolicy::of(&settings(text));
        assert_eq!(of(""), LoginPolicy::Nothing);
        assert_eq!(of(token), LoginPolicy::Token);
        assert_eq!(of(user), LoginPolicy::User);
        assert_eq!(of(&format!("{token}{user}")), LoginPolicy::User);
        let mygramdb = Settings { dialect: Dialect::MygramDb, ..settings(token) };
        assert_eq!(LoginPolicy::of(&mygramdb), LoginPolicy::TokenForAdministration);
    }

    #[test]
    fn token_is_the_password_of_any_user() {
        let logins = Logins::default();
        let one = settings("[auth]\nadmin_token = 's3cret'\n");
        let prove = |password: &[u8]| logins.verify_password(&one, "anyone", password, None);
        assert_eq!(prove(b"s3cret").unwrap().rights, None);
        assert!(prove(b"").is_none() && prove(b"secret").is_none());
        assert!(verify_token(&one, b"s3cret", None).is_some());
        assert!(verify_token(&settings(""), b"", None).is_none());
    }

    #[test]
    fn unknown_user_always_gets_the_same_plugin() {
        let logins = Logins::default();
        let native = "password_native = '*462366917EEDD1970A48E87D8EF59EB67D2CA26F'";
        let text = format!(
            "[[users]]\nname = 'a'\n{native}\n[[users]]\nname = 'b'\npassword = 'geheim'\n\
             [auth]\nadmin_token = 't'\n"
        );
        let both = settings(&text);
        let kinds: std::collections::HashSet<_> = (0..100)
            .map(|number| {
                let name = format!("nobody{number}");
                let plugin = || logins.claim(&both, &name, None).password.plugin(None).name();
                assert_eq!(plugin(), plugin());
                assert!(logins.verify_password(&both, &name, b"geheim", None).is_none());
                assert!(logins.verify_password(&both, &name, b"t", None).is_none());
                plugin()
            })
            .collect();
        assert_eq!(kinds.len(), 2);
        let known = logins.verify_password(&both, "a", b"geheim", None).unwrap();
        assert_eq!((known.user.as_str(), known.host.as_str()), ("a", "localhost"));
    }
}
