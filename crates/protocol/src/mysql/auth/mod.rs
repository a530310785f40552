//! Passwords: what is stored of them, and the two methods by which clients prove them.
//!
//! `mysql_native_password` sends one scramble. `caching_sha2_password` also sends one, which is
//! enough if the digest is known; otherwise the client sends the password itself over a secure
//! channel. Its third variant, by RSA, is not supported.

mod crypt;
mod scramble;

use std::{fmt, sync::Mutex};

pub use crypt::CryptHash;
pub use scramble::{NONCE_BYTES, Nonce};
use scramble::{native_stage_two, same_bytes, sha2_digest, verify_native, verify_sha2};

/// The supported methods of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`, by SHA-1.
    Native,
    /// `caching_sha2_password`, by SHA-256.
    CachingSha2,
}

impl Plugin {
    /// The name of the method in packets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The method to offer a client that names an unsupported one: the one that is built into every
    /// client of its vendor. MariaDB's clients say `dummy_fallback_auth` if they cannot load the
    /// method they want.
    pub fn instead_of(name: &[u8]) -> Self {
        let is_mysqls = name.starts_with(b"authentication_")
            || [&b"sha256_password"[..], b"mysql_clear_password"].contains(&name);
        if is_mysqls { Self::CachingSha2 } else { Self::Native }
    }

    /// The method with this name.
    pub fn named(name: &[u8]) -> Option<Self> {
        [Self::Native, Self::CachingSha2].into_iter().find(|one| one.name().as_bytes() == name)
    }
}

/// What is stored of an account's password.
#[derive(Default)]
pub struct Password {
    /// SHA1(SHA1(password)).
    native: Option<[u8; 20]>,
    /// SHA256(SHA256(password)), if it was given or the password was proved before.
    digest: Mutex<Option<[u8; 32]>>,
    crypt: Option<CryptHash>,
    is_empty: bool,
    /// Whether no proof is accepted.
    is_decoy: bool,
}

impl Password {
    /// From the password itself, which allows all methods.
    pub fn plain(password: &[u8]) -> Self {
        if password.is_empty() {
            return Self { is_empty: true, ..Self::default() };
        }
        Self {
            native: Some(native_stage_two(password)),
            digest: Mutex::new(Some(sha2_digest(password))),
            ..Self::default()
        }
    }

    /// A password that nothing proves.
    pub fn impossible() -> Self {
        Self::default()
    }

    /// A password that nothing proves, but which is requested like this one. So neither the method
    /// nor the time of a failed login reveals whether a user exists.
    pub fn decoy(&self) -> Self {
        Self {
            native: self.native,
            digest: Mutex::new(*self.lock_digest()),
            crypt: self.crypt.clone(),
            is_empty: self.is_empty,
            is_decoy: true,
        }
    }

    /// Adds a hash in the form of `mysql_native_password`: `*` and 40 hexadecimal digits. False if
    /// the text has another form.
    #[must_use]
    pub fn add_native(&mut self, text: &str) -> bool {
        self.native = scramble::parse_native(text);
        self.native.is_some()
    }

    /// Adds a hash in the form of `caching_sha2_password`: `$A$005$…`, or its bytes as `0x…`. False
    /// if the text has another form.
    #[must_use]
    pub fn add_sha2(&mut self, text: &str) -> bool {
        self.crypt = CryptHash::parse(text);
        self.crypt.is_some()
    }

    /// Everything that is stored, which changes with the password. It must be kept secret.
    pub fn stored(&self) -> Vec<u8> {
        let mut stored = vec![u8::from(self.is_empty)];
        stored.extend(self.native.iter().flatten());
        stored.extend(self.crypt.iter().flat_map(CryptHash::bytes));
        stored
    }

    /// Whether the password is empty.
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The method by which it is to be proved: the client's if possible, else the one to switch to.
    pub fn plugin(&self, offered: Option<Plugin>) -> Plugin {
        let has_sha2 = self.crypt.is_some() || self.knows_digest();
        match offered {
            Some(Plugin::Native) if self.native.is_some() || self.is_empty => Plugin::Native,
            Some(plugin) if !has_sha2 && self.native.is_none() => plugin,
            _ if has_sha2 => Plugin::CachingSha2,
            _ if self.native.is_some() => Plugin::Native,
            _ => Plugin::CachingSha2,
        }
    }

    /// Verifies a client's scramble.
    pub fn check(&self, plugin: Plugin, nonce: &Nonce, answer: &[u8]) -> Verdict {
        match self.judge(plugin, nonce, answer) {
            Verdict::Right | Verdict::FastRight if self.is_decoy => Verdict::Wrong,
            verdict => verdict,
        }
    }

    fn judge(&self, plugin: Plugin, nonce: &Nonce, answer: &[u8]) -> Verdict {
        if matches!(answer, [] | [0]) {
            return if self.is_empty { Verdict::Right } else { Verdict::Wrong };
        }
        match plugin {
            Plugin::Native => Verdict::of(
                self.native.is_some_and(|stage_two| verify_native(nonce, answer, &stage_two)),
            ),
            Plugin::CachingSha2 => self.check_sha2(nonce, answer),
        }
    }

    /// Verifies the password itself. If it is right, its digest is kept.
    pub fn check_clear(&self, password: &[u8]) -> bool {
        self.judge_clear(password) && !self.is_decoy
    }

    fn judge_clear(&self, password: &[u8]) -> bool {
        if self.is_empty || password.is_empty() {
            return self.is_empty && password.is_empty();
        }
        let digest = sha2_digest(password);
        let known = *self.lock_digest();
        if let Some(known) = known {
            return same_bytes(&known, &digest);
        }
        if let Some(crypt) = &self.crypt {
            let is_right = crypt.matches(password);
            if is_right {
                *self.lock_digest() = Some(digest);
            }
            return is_right;
        }
        self.native.is_some_and(|known| same_bytes(&known, &native_stage_two(password)))
    }

    fn check_sha2(&self, nonce: &Nonce, answer: &[u8]) -> Verdict {
        let known = *self.lock_digest();
        match (known, &self.crypt) {
            (Some(digest), _) if verify_sha2(nonce, answer, &digest) => Verdict::FastRight,
            (None, Some(_)) => Verdict::NeedsPassword,
            _ => Verdict::Wrong,
        }
    }

    fn knows_digest(&self) -> bool {
        self.lock_digest().is_some()
    }

    fn lock_digest(&self) -> std::sync::MutexGuard<'_, Option<[u8; 32]>> {
        self.digest.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Password(***)")
    }
}

/// The result of verifying a scramble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The password is right.
    Right,
    /// The password is right, and the client expects a message that the scramble was enough.
    FastRight,
    /// The scramble is not enough: the password itself is needed.
    NeedsPassword,
    /// The password is wrong.
    Wrong,
}

impl Verdict {
    fn of(is_right: bool) -> Self {
        if is_right { Self::Right } else { Self::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use mysql_common::scramble::{scramble_native, scramble_sha256};

    use super::*;

    fn nonce() -> Nonce {
        Nonce::from_random([200; NONCE_BYTES])
    }

    #[test]
    fn both_plugins_verify_a_plain_password() {
        let password = Password::plain(b"geheim");
        let nonce = nonce();
        let native = scramble_native(nonce.bytes(), b"geheim").unwrap();
        let sha2 = scramble_sha256(nonce.bytes(), b"geheim").unwrap();
        assert_eq!(password.check(Plugin::Native, &nonce, &native), Verdict::Right);
        assert_eq!(password.check(Plugin::CachingSha2, &nonce, &sha2), Verdict::FastRight);
        let native = scramble_native(nonce.bytes(), b"Geheim").unwrap();
        let sha2 = scramble_sha256(nonce.bytes(), b"Geheim").unwrap();
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            for wrong in [&native[..], &sha2, b"", b"\0", b"x", &[0; 20], &[0; 32]] {
                assert_eq!(password.check(plugin, &nonce, wrong), Verdict::Wrong, "{wrong:?}");
            }
        }
        assert!(password.check_clear(b"geheim"));
        assert!(!password.check_clear(b"geheim\0"));
    }

    #[test]
    fn a_stored_native_hash_is_mysqls() {
        // SELECT CONCAT('*', UPPER(SHA1(UNHEX(SHA1('geheim')))))
        let mut password = Password::impossible();
        assert!(password.add_native("*462366917EEDD1970A48E87D8EF59EB67D2CA26F"));
        let nonce = nonce();
        let scramble = scramble_native(nonce.bytes(), b"geheim").unwrap();
        assert_eq!(password.check(Plugin::Native, &nonce, &scramble), Verdict::Right);
        assert_eq!(password.plugin(Some(Plugin::CachingSha2)), Plugin::Native);
        assert!(!Password::impossible().add_native("462366917EEDD1970A48E87D8EF59EB67D2CA26F"));
    }

    #[test]
    fn a_crypt_hash_needs_the_password_once() {
        let mut password = Password::impossible();
        assert!(password.add_sha2(crypt::tests::HASH_OF_GEHEIM));
        let nonce = nonce();
        let scramble = scramble_sha256(nonce.bytes(), b"geheim").unwrap();
        let judge = || password.check(Plugin::CachingSha2, &nonce, &scramble);
        assert_eq!(judge(), Verdict::NeedsPassword);
        assert!(!password.check_clear(b"falsch"));
        assert_eq!(judge(), Verdict::NeedsPassword);
        assert!(password.check_clear(b"geheim"));
        assert_eq!(judge(), Verdict::FastRight);
        assert_eq!(password.plugin(Some(Plugin::Native)), Plugin::CachingSha2);
    }

    #[test]
    fn the_empty_password_and_none() {
        let nonce = nonce();
        for plugin in [Plugin::Native, Plugin::CachingSha2] {
            for answer in [&b""[..], b"\0"] {
                let judge = |password: &Password| password.check(plugin, &nonce, answer);
                assert_eq!(judge(&Password::plain(b"")), Verdict::Right);
                assert_eq!(judge(&Password::impossible()), Verdict::Wrong);
            }
            let empty = Password::plain(b"");
            assert_eq!(empty.check(plugin, &nonce, &[1; 20]), Verdict::Wrong);
            assert_eq!(empty.plugin(Some(plugin)), plugin);
            assert_eq!(Password::impossible().plugin(Some(plugin)), plugin);
        }
    }

    #[test]
    fn clear_text_password_verifies_every_method() {
        let mut native = Password::impossible();
        assert!(native.add_native("*462366917EEDD1970A48E87D8EF59EB67D2CA26F"));
        let mut crypt = Password::impossible();
        assert!(crypt.add_sha2(crypt::tests::HASH_OF_GEHEIM));
        for password in [Password::plain(b"geheim"), native, crypt] {
            for _ in 0..2 {
                assert!(!password.check_clear(b"") && !password.check_clear(b"Geheim"));
                assert!(password.check_clear(b"geheim"));
            }
        }
        assert!(Password::plain(b"").check_clear(b"") && !Password::plain(b"").check_clear(b"x"));
        assert!(!Password::impossible().check_clear(b""));
    }

    #[test]
    fn decoy_password_looks_real_and_never_matches() {
        let nonce = nonce();
        let mut native = Password::impossible();
        assert!(native.add_native("*462366917EEDD1970A48E87D8EF59EB67D2CA26F"));
        let mut crypt = Password::impossible();
        assert!(crypt.add_sha2(crypt::tests::HASH_OF_GEHEIM));
        let answers = [
            scramble_native(nonce.bytes(), b"geheim").unwrap().to_vec(),
            scramble_sha256(nonce.bytes(), b"geheim").unwrap().to_vec(),
            Vec::new(),
        ];
        for password in [Password::plain(b"geheim"), native, crypt, Password::plain(b"")] {
            let decoy = password.decoy();
            for offered in [None, Some(Plugin::Native), Some(Plugin::CachingSha2)] {
                let plugin = decoy.plugin(offered);
                assert_eq!(plugin, password.plugin(offered));
                for answer in &answers {
                    let (true_one, verdict) = (
                        password.check(plugin, &nonce, answer),
                        decoy.check(plugin, &nonce, answer),
                    );
                    assert!(!matches!(verdict, Verdict::Right | Verdict::FastRight));
                    let both = [true_one, verdict].map(|one| one == Verdict::NeedsPassword);
                    assert_eq!(both[0], both[1]);
                }
            }
            assert!(!decoy.check_clear(b"geheim") && !decoy.check_clear(b""));
        }
    }
}
