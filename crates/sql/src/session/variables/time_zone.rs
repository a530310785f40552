//! `time_zone`: SYSTEM, an offset, or a name of the zone database.

use jiff::tz::{Offset, TimeZone};

use crate::{Code, Error, Result};

/// A session's time zone, and how it was named.
#[derive(Clone, Debug)]
pub(crate) struct SessionTimeZone {
    /// As it was named: `SYSTEM`, `+02:00`, `Europe/Berlin`.
    pub name: String,
    /// What it means.
    pub zone: TimeZone,
}

impl Default for SessionTimeZone {
    fn default() -> Self {
        Self { name: "SYSTEM".to_owned(), zone: TimeZone::system() }
    }
}

impl SessionTimeZone {
    /// Reads a name; 1298 if it is none.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("SYSTEM") {
            return Ok(Self::default());
        }
        let zone = match text.as_bytes().first() {
            Some(b'+' | b'-') => offset(text).map(|seconds| (shown(seconds), seconds)),
            _ => {
                let zone = TimeZone::get(text).map_err(|_| unknown(text))?;
                return Ok(Self { name: text.to_owned(), zone });
            }
        };
        let (name, seconds) = zone.ok_or_else(|| unknown(text))?;
        let offset = Offset::from_seconds(seconds).map_err(|_| unknown(text))?;
        Ok(Self { name, zone: TimeZone::fixed(offset) })
    }
}

/// `[+-]H[H]:MM` in seconds, from -13:59 to +14:00.
fn offset(text: &str) -> Option<i32> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("-", rest) => (-1, rest),
        (_, rest) => (1, rest),
    };
    let (hours, minutes) = rest.split_once(':')?;
    let digits = |part: &str, most: usize| {
        let fits = (1..=most).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        fits.then(|| part.parse::<i32>().ok()).flatten()
    };
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    let seconds = sign * (hours * 3_600 + minutes * 60);
    let fits = minutes < 60 && (-50_340..=50_400).contains(&seconds);
    fits.then_some(seconds)
}

fn shown(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn unknown(text: &str) -> Error {
    Error::new(Code::UnknownTimeZone, format!("Unknown or incorrect time zone: '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_read_as_mysql_does() {
        let name = |text: &str| SessionTimeZone::parse(text).map(|zone| zone.name);
        assert_eq!(name("+2:00").unwrap(), "+02:00");
        assert_eq!(name("-13:59").unwrap(), "-13:59");
        assert_eq!(name("system").unwrap(), "SYSTEM");
        assert_eq!(name("Europe/Berlin").unwrap(), "Europe/Berlin");
        for wrong in ["+14:01", "-14:00", "+1", "", "+01:60", "Nowhere/City", "+001:00"] {
            assert_eq!(name(wrong).unwrap_err().code, Code::UnknownTimeZone, "{wrong}");
        }
    }
}
