//! The URL form of the settings.

use std::{str::FromStr, time::Duration};

use remora_mysql::Zone;

use super::{MysqlSettings, OnLostPosition, Tls, TlsMode};
use crate::{Error, Result};

/// The longest connect timeout, in seconds.
const MAX_CONNECT_SECONDS: u64 = 3600;
/// The most connections that copy: more would overload the source.
const MAX_COPY_THREADS: usize = 64;
/// The most rows of one statement of a copy, which are held in memory.
const MAX_CHUNK_ROWS: usize = 1_000_000;

pub(super) fn parse(text: &str) -> Result<MysqlSettings> {
    let rest = text
        .strip_prefix("mysql://")
        .or_else(|| text.strip_prefix("mariadb://"))
        .ok_or_else(|| wrong("it must begin with mysql:// (mysql://user:password@host:3306/db)"))?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let (path, parameters) = behind.split_once('?').unwrap_or((behind, ""));
    let path = path.strip_prefix('/').unwrap_or(path);
    let login_ends_late = !authority.contains('@') && behind.contains('@');
    if authority.matches('@').count() > 1 || login_ends_late {
        let how = "an @ in the user's name or the password is written %40, a / %2F, a ? %3F";
        return Err(wrong(how));
    }
    let mut settings = MysqlSettings::default();
    let (login, address) = authority.rsplit_once('@').unwrap_or(("", authority));
    set_login(&mut settings, login)?;
    set_address(&mut settings, address)?;
    let database = decode(path)?;
    settings.database = (!database.is_empty()).then_some(database);
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        set_parameter(&mut settings, name, &decode(value)?)?;
    }
    Ok(settings)
}

fn set_login(settings: &mut MysqlSettings, login: &str) -> Result<()> {
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    if !user.is_empty() {
        settings.user = decode(user)?;
    }
    settings.password = decode(password)?;
    Ok(())
}

fn set_address(settings: &mut MysqlSettings, address: &str) -> Result<()> {
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    if host.is_empty() {
        return Err(wrong("it names no host"));
    }
    settings.host = decode(host)?;
    if let Some(port) = port.filter(|port| !port.is_empty()) {
        settings.port = number("port", port, 1, u16::MAX)?;
    }
    Ok(())
}

fn set_parameter(settings: &mut MysqlSettings, name: &str, value: &str) -> Result<()> {
    let path = || Some(value.into());
    match name {
        "tables" => settings.tables = list(value),
        "name" => settings.name = value.to_owned(),
        "ssl-mode" => settings.tls.mode = value.parse()?,
        "ssl-ca" => settings.tls.ca = path(),
        "ssl-cert" => set_identity(&mut settings.tls, |identity| identity.0 = value.into()),
        "ssl-key" => set_identity(&mut settings.tls, |identity| identity.1 = value.into()),
        "server-public-key" => settings.tls.server_public_key = path(),
        "time-zone" => settings.time_zone = Some(time_zone(value)?),
        "server-id" => settings.server_id = Some(number(name, value, 1, u32::MAX)?),
        "connect-timeout" => {
            let seconds = number(name, value, 1, MAX_CONNECT_SECONDS)?;
            settings.connect_timeout = Duration::from_secs(seconds);
        }
        "copy-rows-per-second" => {
            settings.copy_rows_per_second = Some(number(name, value, 1, u64::MAX)?);
        }
        "copy-threads" => settings.copy_threads = number(name, value, 1, MAX_COPY_THREADS)?,
        "chunk-rows" => settings.chunk_rows = number(name, value, 1, MAX_CHUNK_ROWS)?,
        "strict-schema" => {
            settings.strict_schema =
                value.parse().map_err(|_| wrong("`strict-schema` must be true or false"))?;
        }
        "on-lost-position" => settings.on_lost_position = value.parse()?,
        _ => return Err(wrong(&format!("it has no parameter `{name}`"))),
    }
    Ok(())
}

fn set_identity(tls: &mut Tls, set: impl FnOnce(&mut (std::path::PathBuf, std::path::PathBuf))) {
    set(tls.identity.get_or_insert_default());
}

fn list(value: &str) -> Vec<String> {
    let names = value.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// A time zone by name. A plus in a URL is often not encoded and arrives as a space, or not at all.
fn time_zone(value: &str) -> Result<Zone> {
    let value = value.trim();
    let zone = match value.starts_with(|first: char| first.is_ascii_digit()) {
        true => Zone::parse(&format!("+{value}")),
        false => Zone::parse(value),
    };
    zone.map_err(|error| wrong(&format!("`time-zone`: {error}")))
}

fn number<T: FromStr + PartialOrd + std::fmt::Display>(
    name: &str,
    value: &str,
    least: T,
    most: T,
) -> Result<T> {
    let parsed = value.parse::<T>().ok().filter(|number| *number >= least && *number <= most);
    parsed.ok_or_else(|| wrong(&format!("`{name}` must be a number from {least} to {most}")))
}

/// Percent-decoding; `+` is left alone.
fn decode(text: &str) -> Result<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digit = |at: usize| after.get(at).and_then(|byte| (*byte as char).to_digit(16));
        let code =
            digit(0).zip(digit(1)).and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        bytes.push(code.ok_or_else(|| wrong("a % is not followed by two hexadecimal digits"))?);
        rest = after.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| wrong("a part of it is not UTF-8"))
}

/// The URL is not repeated, because it contains a password.
fn wrong(message: &str) -> Error {
    Error::Setting(format!("the URL of the MySQL source cannot be used: {message}"))
}

impl FromStr for TlsMode {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().replace('-', "_").as_str() {
            "off" | "disabled" => Ok(Self::Off),
            "preferred" => Ok(Self::Preferred),
            "required" => Ok(Self::Required),
            "verify_ca" => Ok(Self::VerifyCa),
            "verify_identity" | "verify_full" => Ok(Self::VerifyIdentity),
            _ => Err(wrong(
                "`ssl-mode` must be off, preferred, required, verify_ca or verify_identity",
            )),
        }
    }
}

impl FromStr for OnLostPosition {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "copy" => Ok(Self::Copy),
            "stop" => Ok(Self::Stop),
            _ => Err(wrong("`on-lost-position` must be copy or stop")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_url_is_parsed() {
        let url = "mysql://re%40d:p%3Aw%2F@[::1]:3307/sh%C3%B6p?tables=a,b*,other.t&ssl-mode=VERIFY_CA\
                   &ssl-ca=/ca.pem&ssl-cert=/c.pem&ssl-key=/k.pem&time-zone=+02:00&server-id=7\
                   &connect-timeout=3&copy-rows-per-second=1000&copy-threads=4&chunk-rows=500\
                   &strict-schema=true&on-lost-position=stop&name=main&server-public-key=/rsa.pem";
        let settings = parse(url).unwrap();
        assert_eq!((settings.user.as_str(), settings.password.as_str()), ("re@d", "p:w/"));
        assert_eq!((settings.host.as_str(), settings.port), ("::1", 3307));
        assert_eq!(settings.address(), "[::1]:3307");
        assert_eq!(settings.database.as_deref(), Some("shöp"));
        assert_eq!(settings.tables, ["a", "b*", "other.t"]);
        assert_eq!(settings.tls.mode, TlsMode::VerifyCa);
        assert_eq!(settings.tls.ca.as_deref(), Some("/ca.pem".as_ref()));
        assert_eq!(settings.tls.identity, Some(("/c.pem".into(), "/k.pem".into())));
        assert_eq!(zone(&settings), "+02:00");
        assert_eq!(settings.server_id, Some(7));
        assert_eq!(settings.connect_timeout, Duration::from_secs(3));
        assert_eq!(settings.copy_rows_per_second, Some(1000));
        assert_eq!((settings.copy_threads, settings.chunk_rows), (4, 500));
        assert!(settings.strict_schema);
        assert_eq!(settings.on_lost_position, OnLostPosition::Stop);
        assert_eq!(settings.name, "main");
        assert!(!format!("{settings:?}").contains("p:w"), "a password must not be printed");
    }

    #[test]
    fn missing_url_parts_have_defaults() {
        let settings = parse("mysql://db.example").unwrap();
        assert_eq!((settings.user.as_str(), settings.password.as_str()), ("root", ""));
        assert_eq!((settings.port, settings.database), (3306, None));
        assert_eq!(settings.tls.mode, TlsMode::Preferred);
        assert_eq!(settings.time_zone, None);
    }

    #[test]
    fn time_zones_have_every_name_that_mysql_knows() {
        let named = |name: &str| zone(&parse(&format!("mysql://h?time-zone={name}")).unwrap());
        assert_eq!(named("UTC"), "UTC");
        assert_eq!(named("SYSTEM"), "SYSTEM");
        assert_eq!(named("Europe/Berlin"), "Europe/Berlin");
        assert_eq!(named("Europe%2FBerlin"), "Europe/Berlin");
        assert_eq!(named("-03:30"), "-03:30");
        for plus in ["+02:00", "%2B02:00", " 02:00", "02:00", "+2:00"] {
            assert_eq!(named(plus), "+02:00", "{plus}");
        }
    }

    fn zone(settings: &MysqlSettings) -> String {
        settings.time_zone.as_ref().map_or_else(String::new, |zone| zone.name().to_owned())
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for (url, names) in [
            ("http://h", "mysql://"),
            ("mysql://u:secret@", "no host"),
            ("mysql://u:secret@h:x", "port"),
            ("mysql://u:secret@h?nonsense=1", "nonsense"),
            ("mysql://u:secret@h?ssl-mode=maybe", "ssl-mode"),
            ("mysql://u:secret@h?copy-threads=0", "copy-threads"),
            ("mysql://u:secret@h?time-zone=Berlin", "`time-zone`: 'Berlin' is no time zone"),
            ("mysql://u:secret@h?time-zone=", "time-zone"),
            ("mysql://u:secret@h?time-zone=+15:00", "time-zone"),
            ("mysql://u:secret%@h", "%"),
            ("mysql://u:secret@w@h", "%40"),
            ("mysql://u:sec/ret@w@h", "%40"),
            ("mysql://u:se/cret@h", "%2F"),
            ("mysql://u:se?cret@h", "%3F"),
            ("mysql://u:secret@h?on-lost-position=hope", "on-lost-position"),
        ] {
            let message = parse(url).unwrap_err().to_string();
            assert!(message.contains(names), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
