//! Time zones: names and offsets, and conversion between UTC and local time.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use remora_mysql::{Zone, moment_of_clock};

use super::{Moment, SECOND};

/// Parses `+05:30`, `SYSTEM`, `UTC` or an IANA name.
pub(crate) fn parse_zone(name: &str) -> Option<TimeZone> {
    Zone::parse(name).ok().map(|zone| zone.rules().clone())
}

/// The local time at this many microseconds since 1970 UTC.
pub(crate) fn local_of_utc(micros: i64, zone: &TimeZone) -> Option<Moment> {
    let shown = zone.to_datetime(Timestamp::from_microsecond(micros).ok()?);
    let date = shown.date();
    let time = shown.time();
    let seconds =
        i64::from(time.hour()) * 3_600 + i64::from(time.minute()) * 60 + i64::from(time.second());
    Some(Moment {
        year: u16::try_from(date.year()).ok()?,
        month: u8::try_from(date.month()).ok()?,
        day: u8::try_from(date.day()).ok()?,
        micros: seconds * SECOND + i64::from(time.subsec_nanosecond() / 1_000),
    })
}

/// The UTC microseconds since 1970 of a local time: the earlier one if it occurs twice, the end of
/// the gap if it does not exist.
pub(crate) fn utc_of_local(moment: Moment, zone: &TimeZone) -> Option<i64> {
    Some(moment_of_clock(civil(moment)?, zone)?.as_microsecond())
}

/// Likewise, but `None` if the local time occurs twice or never. If it occurs once, comparing
/// moments with the result equals comparing local times.
pub(crate) fn only_moment(shown: Moment, zone: &TimeZone) -> Option<i64> {
    let moment = zone.to_ambiguous_timestamp(civil(shown)?).unambiguous().ok()?;
    Some(moment.as_microsecond())
}

fn civil(moment: Moment) -> Option<DateTime> {
    let year = i16::try_from(moment.year).ok()?;
    let date = Date::new(year, moment.month as i8, moment.day as i8).ok()?;
    let (hour, minute) = (moment.hour() as i8, moment.minute() as i8);
    let nanoseconds = moment.fraction() as i32 * 1_000;
    let time = Time::new(hour, minute, moment.second() as i8, nanoseconds).ok()?;
    Some(DateTime::from_parts(date, time))
}

#[cfg(test)]
mod tests {
    use super::super::parse_moment;
    use super::*;

    #[test]
    fn clocks_and_moments_are_each_others_reverse() {
        let berlin = parse_zone("Europe/Berlin").unwrap();
        let moment = parse_moment("2020-07-01 12:00:00.5").unwrap().moment;
        let utc = utc_of_local(moment, &berlin).unwrap();
        assert_eq!(utc, 1_593_597_600_500_000);
        assert_eq!(local_of_utc(utc, &berlin), Some(moment));
        assert!(parse_zone("+14:01").is_none());
        assert!(parse_zone("Nowhere/Else").is_none());
        assert_eq!(local_of_utc(0, &parse_zone("-01:30").unwrap()).unwrap().hour(), 22);
    }

    #[test]
    fn what_no_clock_shows_is_the_end_of_the_gap() {
        let berlin = parse_zone("Europe/Berlin").unwrap();
        let skipped = parse_moment("2020-03-29 02:30:00").unwrap().moment;
        assert_eq!(utc_of_local(skipped, &berlin), Some(1_585_443_600_000_000));
    }
}
