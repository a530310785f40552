//! `time_zone`: SYSTEM, an offset, or a name of the zone database.

use jiff::tz::TimeZone;
use remora_mysql::{ErrorCode, Zone};

use crate::{Error, Result};

/// A session's time zone with its name.
#[derive(Clone, Debug)]
pub(crate) struct SessionTimeZone {
    /// The name as given: `SYSTEM`, `+02:00`, `Europe/Berlin`.
    pub name: String,
    /// Its rules.
    pub zone: TimeZone,
}

impl Default for SessionTimeZone {
    fn default() -> Self {
        Self::of(&Zone::system())
    }
}

impl SessionTimeZone {
    fn of(zone: &Zone) -> Self {
        Self { name: zone.name().to_owned(), zone: zone.rules().clone() }
    }

    /// Parses a name; 1298 if it is unknown.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Zone::parse(text).map(|zone| Self::of(&zone)).map_err(|_| unknown(text))
    }
}

fn unknown(text: &str) -> Error {
    Error::new(ErrorCode::UnknownTimeZone, format!("Unknown or incorrect time zone: '{text}'"))
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
        assert_eq!(name("europe/berlin").unwrap(), "Europe/Berlin");
        for wrong in ["+14:01", "-14:00", "+1", "", "+01:60", "Nowhere/City"] {
            assert_eq!(name(wrong).unwrap_err().code, ErrorCode::UnknownTimeZone, "{wrong}");
        }
    }
}
