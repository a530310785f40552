//! Time zones by the names that MySQL knows, and the conversion of moments into their local times.
//!
//! ```text
//! zone   := "SYSTEM" | offset | name of the IANA database     ; letters in any case
//! offset := ("+" | "-") digit* ":" digit+                     ; -13:59 to +14:00, of 4 bytes or more
//! ```
//! As in MySQL: a local time that a clock change skips is the moment of the change, and one that occurs twice is the
//! earlier moment.

use std::fmt;

use jiff::{
    SignedDuration, Timestamp, civil,
    tz::{AmbiguousOffset, Offset, TimeZone},
};

const MICROS_PER_SECOND: i64 = 1_000_000;

/// A time zone and the name by which it was requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

/// The name of an unknown time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownZone(String);

impl Zone {
    /// UTC, in which moments are stored.
    #[must_use]
    pub fn utc() -> Self {
        Self { name: "+00:00".to_owned(), rules: TimeZone::UTC }
    }

    /// The time zone of this machine.
    #[must_use]
    pub fn system() -> Self {
        Self { name: "SYSTEM".to_owned(), rules: TimeZone::system() }
    }

    /// Parses the name of a time zone as MySQL does.
    ///
    /// # Errors
    /// There is no zone of this name.
    pub fn parse(text: &str) -> Result<Self, UnknownZone> {
        let unknown = || UnknownZone(text.to_owned());
        if text.eq_ignore_ascii_case("SYSTEM") {
            return Ok(Self::system());
        }
        if text.starts_with(['+', '-']) {
            let minutes = offset(text).filter(|minutes| (-839..=840).contains(minutes));
            return minutes.and_then(Self::of_offset).ok_or_else(unknown);
        }
        let rules = TimeZone::get(text).map_err(|_| unknown())?;
        Ok(Self { name: rules.iana_name().unwrap_or(text).to_owned(), rules })
    }

    /// Parses an offset of less than a day. The range is larger than MySQL's, and names are
    /// refused.
    ///
    /// # Errors
    /// The text is not such an offset.
    pub fn parse_offset(text: &str) -> Result<Self, UnknownZone> {
        let minutes = offset(text).filter(|minutes| minutes.abs() < 24 * 60);
        minutes.and_then(Self::of_offset).ok_or_else(|| UnknownZone(text.to_owned()))
    }

    fn of_offset(minutes: i32) -> Option<Self> {
        let rules = TimeZone::fixed(Offset::from_seconds(minutes * 60).ok()?);
        let (sign, shown) = (if minutes < 0 { '-' } else { '+' }, minutes.abs());
        Some(Self { name: format!("{sign}{:02}:{:02}", shown / 60, shown % 60), rules })
    }

    /// The name that `@@time_zone` shows: `SYSTEM`, `+02:00`, `Europe/Berlin`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules by which UTC is converted into its local time.
    #[must_use]
    pub fn rules(&self) -> &TimeZone {
        &self.rules
    }

    /// Whether its local time is always UTC. It may be false for a named zone that never deviates
    /// from UTC.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        self.rules.to_fixed_offset().is_ok_and(|offset| offset == Offset::UTC)
    }

    /// The local time at a moment. Both are in microseconds since 1970, the local time as if it
    /// were UTC. `None` outside the calendar's range.
    #[must_use]
    pub fn shown_at(&self, moment: i64) -> Option<i64> {
        moment.checked_add(self.offset_at(moment)?)
    }

    /// The moment at which the local time is `shown`: the reverse of [`Zone::shown_at`].
    #[must_use]
    pub fn moment_of(&self, shown: i64) -> Option<i64> {
        let clock = Offset::UTC.to_datetime(Timestamp::from_microsecond(shown).ok()?);
        Some(moment_of_clock(clock, &self.rules)?.as_microsecond())
    }

    fn offset_at(&self, moment: i64) -> Option<i64> {
        let offset = self.rules.to_offset(Timestamp::from_microsecond(moment).ok()?);
        Some(i64::from(offset.seconds()) * MICROS_PER_SECOND)
    }
}

impl fmt::Display for UnknownZone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "'{}' is no time zone: write SYSTEM, an offset from -13:59 to +14:00 as +02:00, or a name \
             of the system's zone database as Europe/Berlin",
            self.0
        )
    }
}

impl std::error::Error for UnknownZone {}

/// The moment at which a zone's clocks show this local time: the earlier one of two, and the moment
/// of the clock change for a local time that the change skips.
#[must_use]
pub fn moment_of_clock(clock: civil::DateTime, rules: &TimeZone) -> Option<Timestamp> {
    let found = rules.to_ambiguous_timestamp(clock);
    let is_gap = matches!(found.offset(), AmbiguousOffset::Gap { .. });
    // In a gap, this is the moment by the offset before the change.
    let moment = found.compatible().ok()?;
    match is_gap {
        // `preceding` excludes the moment itself, which may be the change.
        true => {
            let behind = moment.checked_add(SignedDuration::from_nanos(1)).ok()?;
            Some(rules.preceding(behind).next()?.timestamp())
        }
        false => Some(moment),
    }
}

/// Parses an offset. The result is in minutes.
fn offset(text: &str) -> Option<i32> {
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if text.len() < 4 || minutes.is_empty() || !digits(hours) || !digits(minutes) {
        return None;
    }
    let hours: i32 = if hours.is_empty() { 0 } else { hours.parse().ok()? };
    let minutes = minutes.parse::<i32>().ok().filter(|minutes| *minutes < 60)?;
    hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_mysql_reads_them() {
        let name = |text: &str| Zone::parse(text).map(|zone| zone.name().to_owned());
        for (text, shown) in [
            ("+2:00", "+02:00"),
            ("-13:59", "-13:59"),
            ("+14:00", "+14:00"),
            ("-00:00", "+00:00"),
            ("+1:5", "+01:05"),
            ("+:05", "+00:05"),
            ("+001:00", "+01:00"),
            ("+01:005", "+01:05"),
            ("system", "SYSTEM"),
            ("Europe/Berlin", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
        ] {
            assert_eq!(name(text).as_deref(), Ok(shown), "{text}");
        }
        for wrong in [
            "+14:01",
            "-14:00",
            "+1",
            "+1:",
            "",
            "+",
            "+01:60",
            "Nowhere/City",
            "9:00",
            " +01:00",
            "+01:00 ",
            "+-1:00",
            "+99999999999:00",
            "+2000000000:00",
            "../../etc/passwd",
        ] {
            assert!(name(wrong).is_err(), "{wrong}");
        }
        assert!(Zone::parse("Berlin").unwrap_err().to_string().starts_with("'Berlin' is no time"));
        assert_eq!(Zone::parse_offset("-23:59").unwrap().name(), "-23:59");
        assert!(Zone::parse_offset("-24:00").is_err());
        assert!(Zone::parse_offset("Europe/Berlin").is_err());
    }

    #[test]
    fn utc_is_known_by_every_name() {
        assert!(Zone::utc().is_utc());
        for name in ["UTC", "+00:00", "-00:00"] {
            assert!(Zone::parse(name).unwrap().is_utc(), "{name}");
        }
        for name in ["+00:01", "Europe/London", "Africa/Abidjan"] {
            assert!(!Zone::parse(name).unwrap().is_utc(), "{name}");
        }
    }

    /// The numbers are from `UNIX_TIMESTAMP` of a MySQL 9.7 with time zone tables.
    #[test]
    fn gaps_and_overlaps_are_what_mysql_makes_of_them() {
        for (zone, shown, seconds) in [
            ("Europe/Berlin", "2024-03-31T01:59:59Z", 1_711_846_799),
            ("Europe/Berlin", "2024-03-31T02:00:00Z", 1_711_846_800),
            ("Europe/Berlin", "2024-03-31T02:30:00Z", 1_711_846_800),
            ("Europe/Berlin", "2024-03-31T03:00:00Z", 1_711_846_800),
            ("Europe/Berlin", "2024-10-27T02:00:00Z", 1_729_987_200),
            ("Europe/Berlin", "2024-10-27T02:30:00Z", 1_729_989_000),
            ("Europe/Berlin", "2024-10-27T03:00:00Z", 1_729_994_400),
            ("America/New_York", "2024-03-10T02:30:00Z", 1_710_054_000),
            ("America/New_York", "2024-11-03T01:30:00Z", 1_730_611_800),
            ("Australia/Lord_Howe", "2024-10-06T02:15:00Z", 1_728_142_200),
            ("Australia/Lord_Howe", "2024-04-07T01:45:00Z", 1_712_414_700),
            ("Pacific/Apia", "2011-12-30T12:00:00Z", 1_325_239_200),
        ] {
            let shown: Timestamp = shown.parse().unwrap();
            let moment = Zone::parse(zone).unwrap().moment_of(shown.as_microsecond());
            assert_eq!(moment, Some(seconds * MICROS_PER_SECOND), "{zone} {shown}");
        }
    }

    #[test]
    fn what_is_shown_is_the_moment_again() {
        let zone = Zone::parse("-05:30").unwrap();
        assert_eq!(zone.shown_at(1), Some(1 - 19_800 * MICROS_PER_SECOND));
        for zone in ["-05:30", "Europe/Berlin", "Asia/Tokyo"] {
            let zone = Zone::parse(zone).unwrap();
            for moment in
                [i64::MIN, -62_167_219_200_000_001, -1, 0, 1_720_000_000_000_001, i64::MAX]
            {
                let again = zone.shown_at(moment).and_then(|shown| zone.moment_of(shown));
                assert!(again.is_none_or(|again| again == moment), "{moment}");
            }
            assert!(zone.shown_at(0).is_some());
        }
    }
}
