//! `[[users]]`: accounts, their hosts and their rights.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use remora_protocol::mysql::auth::Password;
use remora_sql::{Access, Right};
use serde::Deserialize;

use super::{Cidr, keys};

/// An account.
#[derive(Clone, Debug)]
pub struct User {
    /// Its name.
    pub name: String,
    /// Its host.
    pub host: HostPattern,
    /// The stored form of its password.
    pub password: Arc<Password>,
    /// Its rights; `None` means all.
    pub rights: Option<Vec<Right>>,
    /// Whether its SQL sessions begin in Sphinx's dialect; `None` for what `sql.dialect` says.
    pub is_sphinx: Option<bool>,
}

/// Where clients of an account may come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// Anywhere.
    Any,
    /// This machine.
    Local,
    /// A network.
    Network(Cidr),
    /// Addresses whose text matches: `%` is any text, `_` any character.
    Text(String),
}

impl HostPattern {
    fn parse(text: &str) -> Self {
        match text {
            "%" | "" => Self::Any,
            "localhost" => Self::Local,
            _ => match Cidr::parse(text) {
                Ok(network) => Self::Network(network),
                Err(_) => Self::Text(text.to_owned()),
            },
        }
    }

    /// Whether a client's address matches. Local sockets have no address.
    pub fn matches(&self, address: Option<IpAddr>) -> bool {
        match (self, address.map(|address| address.to_canonical())) {
            (Self::Any, _) | (Self::Local, None) => true,
            (Self::Local, Some(address)) => address.is_loopback(),
            (_, None) => false,
            (Self::Network(network), Some(address)) => network.contains(address),
            (Self::Text(pattern), Some(address)) => {
                fits_pattern(pattern.as_bytes(), address.to_string().as_bytes())
            }
        }
    }

    /// How specific it is: among matching accounts, the highest rank wins.
    fn rank(&self) -> u16 {
        match self {
            Self::Any => 0,
            Self::Text(pattern) => 1 + u16::try_from(pattern.len()).unwrap_or(0).min(100),
            Self::Network(network) => 200 + u16::from(network.bits()),
            Self::Local => 400,
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => out.write_str("%"),
            Self::Local => out.write_str("localhost"),
            Self::Network(network) => network.fmt(out),
            Self::Text(pattern) => out.write_str(pattern),
        }
    }
}

/// LIKE without escapes: `%` is any text, `_` any byte.
pub fn fits_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut back = None;
    while let Some(byte) = text.get(from) {
        match pattern.get(at) {
            Some(b'%') => {
                back = Some((at + 1, from));
                at += 1;
            }
            Some(wanted) if *wanted == b'_' || wanted == byte => {
                at += 1;
                from += 1;
            }
            _ => match back {
                Some((after, taken)) => {
                    back = Some((after, taken + 1));
                    (at, from) = (after, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|byte| *byte == b'%')
}

/// The account for this name and address: the most specific match.
pub fn find_user<'u>(users: &'u [User], name: &str, address: Option<IpAddr>) -> Option<&'u User> {
    let fitting = users.iter().filter(|user| user.name == name && user.host.matches(address));
    fitting.max_by_key(|user| user.host.rank())
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct UserSection {
    name: String,
    host: Option<String>,
    password: Option<String>,
    password_file: Option<PathBuf>,
    password_sha2: Option<String>,
    password_native: Option<String>,
    read: Option<Vec<String>>,
    write: Option<Vec<String>>,
    define: Option<Vec<String>>,
    dialect: Option<String>,
}

/// Parses the sections.
pub(super) fn read(sections: toml::Value, folder: &Path) -> Result<Vec<User>, String> {
    let sections = match sections {
        toml::Value::Array(sections) => sections,
        section => vec![section],
    };
    sections
        .into_iter()
        .map(|section| {
            let typed: UserSection = section
                .try_into()
                .map_err(|error: toml::de::Error| keys::explain(error.message()))?;
            let name = typed.name.clone();
            typed.meaning(folder).map_err(|error| format!("user '{name}': {error}"))
        })
        .collect()
}

impl UserSection {
    fn meaning(self, folder: &Path) -> Result<User, String> {
        if self.name.is_empty() {
            return Err("name is missing".to_owned());
        }
        Ok(User {
            host: HostPattern::parse(self.host.as_deref().unwrap_or("%")),
            password: Arc::new(self.password(folder)?),
            rights: self.rights()?,
            is_sphinx: match self.dialect.as_deref() {
                None => None,
                Some("mysql") => Some(false),
                Some("sphinx") => Some(true),
                Some(other) => {
                    return Err(format!("dialect is '{other}'; it is 'mysql' or 'sphinx'"));
                }
            },
            name: self.name,
        })
    }

    fn password(&self, folder: &Path) -> Result<Password, String> {
        let has_hash = self.password_sha2.is_some() || self.password_native.is_some();
        let has_plain = self.password.is_some() || self.password_file.is_some();
        match (&self.password, &self.password_file) {
            (Some(_), Some(_)) => return Err("set password or password_file, not both".to_owned()),
            _ if has_plain && has_hash => {
                return Err("set a password or its hashes, not both".to_owned());
            }
            (Some(password), None) => return Ok(Password::plain(password.as_bytes())),
            (None, Some(file)) => {
                let path = folder.join(file);
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| format!("{}: {error}", path.display()))?;
                return Ok(Password::plain(text.trim_end_matches(['\r', '\n']).as_bytes()));
            }
            (None, None) if !has_hash => {
                return Err("set password, password_file, password_sha2 or password_native; an \
                            empty password is password = \"\""
                    .to_owned());
            }
            (None, None) => {}
        }
        let mut password = Password::impossible();
        if self.password_sha2.as_ref().is_some_and(|hash| !password.add_sha2(hash)) {
            return Err("password_sha2 is $A$005$... or 0x..., as HEX(authentication_string) of \
                        mysql.user shows it for caching_sha2_password"
                .to_owned());
        }
        if self.password_native.as_ref().is_some_and(|hash| !password.add_native(hash)) {
            return Err("password_native is * and 40 hexadecimal digits".to_owned());
        }
        Ok(password)
    }

    /// `None` if no rights are given.
    fn rights(&self) -> Result<Option<Vec<Right>>, String> {
        let said = [
            (&self.read, Access::Read),
            (&self.write, Access::Write),
            (&self.define, Access::Define),
        ];
        if said.iter().all(|(names, _)| names.is_none()) {
            return Ok(None);
        }
        let mut rights = Vec::new();
        for (names, access) in said {
            for name in names.iter().flatten() {
                rights.push(parse_right(name, access)?);
            }
        }
        Ok(Some(rights))
    }
}

fn parse_right(name: &str, access: Access) -> Result<Right, String> {
    let (database, table) = match name.split_once('.') {
        Some(parts) => parts,
        None if name == "*" => ("*", "*"),
        None => return Err(format!("'{name}' is not DATABASE.TABLE; * stands for all of them")),
    };
    Ok(Right { database: database.to_owned(), table: table.to_owned(), access })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(text: &str) -> Result<Vec<User>, String> {
        let table: toml::Table = toml::from_str(text).unwrap();
        read(table["users"].clone(), Path::new("/etc"))
    }

    #[test]
    fn most_specific_account_is_used() {
        let text = ["%", "10.%", "10.1.0.0/16", "10.1.2.3", "localhost"]
            .map(|host| {
                format!(
                    "[[users]]\nname = 'a'\nhost = '{host}'\npassword = 'x'\n\
                         read = ['{host}.t']\n"
                )
                .replace("10.1.0.0/16.t", "net.t")
            })
            .concat();
        let users = users(&text).unwrap();
        let host = |address: Option<&str>| {
            let address = address.map(|address| address.parse().unwrap());
            find_user(&users, "a", address).map(|user| user.host.clone())
        };
        assert_eq!(host(Some("10.1.2.3")), Some(users[3].host.clone()));
        assert_eq!(host(Some("10.1.2.4")), Some(users[2].host.clone()));
        assert_eq!(host(Some("10.9.2.4")), Some(HostPattern::Text("10.%".to_owned())));
        assert_eq!(host(Some("11.9.2.4")), Some(HostPattern::Any));
        assert_eq!(host(Some("::ffff:127.0.0.1")), Some(HostPattern::Local));
        assert_eq!(host(None), Some(HostPattern::Local));
        assert!(find_user(&users, "b", None).is_none());
    }

    #[test]
    fn patterns() {
        assert!(fits_pattern(b"192.168.%", b"192.168.0.7"));
        assert!(fits_pattern(b"%.7", b"1.7.7"));
        assert!(fits_pattern(b"10._.0.1", b"10.5.0.1"));
        assert!(!fits_pattern(b"10._.0.1", b"10.55.0.1"));
        assert!(!fits_pattern(b"", b"x"));
    }

    #[test]
    fn rights_are_parsed_and_errors_reported() {
        let all = users("[[users]]\nname = 'a'\npassword = ''\n").unwrap();
        assert!(all[0].rights.is_none() && all[0].password.is_empty());
        let some = users(
            "[[users]]\nname='a'\npassword_native='*462366917EEDD1970A48E87D8EF59EB67D2CA26F'\n\
             read=['*']\nwrite=['shop.orders']\ndefine=['tmp.*']\n",
        );
        let rights = some.unwrap().remove(0).rights.unwrap();
        let told = |at: usize| (rights[at].table.as_str(), rights[at].access);
        assert_eq!(told(0), ("*", Access::Read));
        assert_eq!(told(1), ("orders", Access::Write));
        assert_eq!((told(2), rights[2].database.as_str()), (("*", Access::Define), "tmp"));
        for (wrong, why) in [
            ("name='a'", "set password"),
            ("password='x'", "name is missing"),
            ("name='a'\npassword='x'\npassword_native='*0'", "not both"),
            ("name='a'\npassword_native='*0'", "40 hexadecimal"),
            ("name='a'\npassword_sha2='x'", "caching_sha2_password"),
            ("name='a'\npassword='x'\nread=['t']", "DATABASE.TABLE"),
            ("name='a'\npasword='x'", "password"),
            ("name='a'\npassword_file='/nowhere/at/all'", "/nowhere/at/all"),
        ] {
            let error = users(&format!("[[users]]\n{wrong}\n")).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
