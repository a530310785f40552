//! Applies the configured time zone to tables in the line protocol and HTTP.
//!
//! Stored values have no zone: a TIMESTAMP is a moment; a DATETIME or a DATE is a local time.
//!
//! | | TIMESTAMP | DATETIME, DATE |
//! |---|---|---|
//! | typed as text | what the zone's clocks show, unless it names an offset | as it stands |
//! | typed as seconds since 1970 | that moment | what the zone's clocks show then |
//! | shown as text | what the zone's clocks show | as it stands |
//! | shown as seconds since 1970 | the moment | when the zone's clocks show it |
//!
//! The conversions of DATETIME and DATE are MygramDB's `mysql.datetime_timezone`. The engine parses and prints
//! everything in UTC, so literals are rewritten on input and values on output; in UTC nothing is done. In SQL each
//! session's `time_zone` is used instead.

use std::borrow::Cow;

use remora_engine::{
    ColumnType, Comparison, DateTime, FacetReply, Filter, Hit, Literal, Schema, Value,
    ZERO_TIMESTAMP_MICROS,
};
use remora_mysql::Zone;
use remora_protocol::http::Columns;

/// The zone; `None` if nothing needs to be converted.
fn active(zone: Option<&Zone>) -> Option<&Zone> {
    zone.filter(|zone| !zone.is_utc())
}

/// A text that is compared with a column of this type, in UTC. A text that is not a value of the type is left for the
/// engine to refuse.
fn literal_in_utc<'t>(zone: &Zone, kind: ColumnType, text: &'t str) -> Cow<'t, str> {
    let rewritten = match kind {
        ColumnType::Timestamp => moment(zone, text).map(|moment| format!("{moment}Z")),
        ColumnType::DateTime | ColumnType::Date => {
            let shown = DateTime::parse_epoch(text).filter(|at| *at != ZERO_TIMESTAMP_MICROS);
            let shown = shown.and_then(|at| DateTime::from_timestamp(zone.shown_at(at)?));
            shown.map(|shown| match kind {
                ColumnType::Date => shown.date.to_string(),
                _ => shown.to_string(),
            })
        }
        _ => None,
    };
    rewritten.map_or(Cow::Borrowed(text), Cow::Owned)
}

/// The moment of a local time without an offset, as UTC date and time; `None` for other texts.
fn moment(zone: &Zone, text: &str) -> Option<DateTime> {
    let shown = DateTime::parse(text)?.to_timestamp().filter(|at| *at != ZERO_TIMESTAMP_MICROS)?;
    DateTime::from_timestamp(zone.moment_of(shown)?)
}

/// Whether it is a local time that a clock change skips.
fn is_skipped_time(zone: &Zone, text: &str) -> bool {
    moment(zone, text).and_then(|moment| zone.shown_at(moment.to_timestamp()?))
        != DateTime::parse(text).and_then(|shown| shown.to_timestamp())
}

/// A part of a typed key in UTC. Moments get an explicit offset.
pub(crate) fn key_in_utc<'t>(zone: Option<&Zone>, kind: ColumnType, text: &'t str) -> Cow<'t, str> {
    match (kind, zone) {
        (ColumnType::Timestamp, Some(zone)) => literal_in_utc(zone, kind, text),
        (ColumnType::Timestamp, None) => literal_in_utc(&Zone::utc(), kind, text),
        _ => Cow::Borrowed(text),
    }
}

/// Rewrites the literals of a filter to UTC.
pub(crate) fn filter_in_utc(zone: Option<&Zone>, schema: &Schema, filter: &mut Filter) {
    if let Some(zone) = active(zone) {
        rewrite(zone, schema, filter);
    }
}

/// A table with its required filter rewritten to UTC.
pub(crate) fn in_utc(schema: &Schema, zone: Option<&Zone>) -> Schema {
    let mut schema = schema.clone();
    if let Some(mut filter) = schema.required.take() {
        filter_in_utc(zone, &schema, &mut filter);
        schema.required = Some(filter);
    }
    schema
}

fn rewrite(zone: &Zone, schema: &Schema, filter: &mut Filter) {
    let kind_of = |name: &str| {
        let named = schema.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name));
        named.map(|column| column.kind)
    };
    let put = |kind: ColumnType, literal: &mut Literal| {
        if let Literal::Text(text) = literal
            && let Cow::Owned(rewritten) = literal_in_utc(zone, kind, text)
        {
            *text = rewritten;
        }
    };
    let never = |kind: ColumnType, literal: &Literal| {
        let Literal::Text(text) = literal else { return false };
        kind == ColumnType::Timestamp && is_skipped_time(zone, text)
    };
    match filter {
        Filter::Compare { column, comparison, literal } => {
            let Some(kind) = kind_of(column) else { return };
            // No TIMESTAMP has a skipped local time, so none is equal to it.
            let none = || Filter::In(column.clone(), Vec::new());
            match comparison {
                Comparison::Equal if never(kind, literal) => *filter = none(),
                Comparison::NotEqual if never(kind, literal) => {
                    *filter = Filter::Not(Box::new(none()));
                }
                _ => put(kind, literal),
            }
        }
        Filter::In(column, literals) => {
            let Some(kind) = kind_of(column) else { return };
            literals.retain(|literal| !never(kind, literal));
            literals.iter_mut().for_each(|literal| put(kind, literal));
        }
        Filter::Between(column, low, high) => {
            let Some(kind) = kind_of(column) else { return };
            put(kind, low);
            put(kind, high);
        }
        Filter::KeyIn(..)
        | Filter::KeyWithin(..)
        | Filter::Begins(..)
        | Filter::Path(..)
        | Filter::PathsTogether(..)
        | Filter::PathTexts(..)
        | Filter::PathMayHold(..)
        | Filter::Rows(_)
        | Filter::IsNull(_)
        | Filter::IsNotNull(_) => {}
        Filter::And(parts) | Filter::Or(parts) => {
            parts.iter_mut().for_each(|part| rewrite(zone, schema, part));
        }
        Filter::Not(part) | Filter::Prefix(part) => rewrite(zone, schema, part),
    }
}

/// Converts a value to the form in which it is shown: local time or seconds.
pub(crate) fn show(zone: Option<&Zone>, columns: Columns, value: &mut Value) {
    let Some(zone) = active(zone) else { return };
    match columns {
        Columns::Fields => localize_text(zone, value),
        Columns::Filters => localize_seconds(zone, value),
    }
}

/// Converts the values of all rows of a page.
pub(crate) fn localize_hits(zone: Option<&Zone>, columns: Columns, hits: &mut [Hit]) {
    if active(zone).is_none() {
        return;
    }
    for hit in hits {
        localize_key(zone, &mut hit.key);
        hit.fields.iter_mut().for_each(|value| show(zone, columns, value));
    }
}

/// Converts the values of a facet.
pub(crate) fn localize_facet(zone: Option<&Zone>, reply: &mut FacetReply) {
    if let Some(zone) = active(zone) {
        reply.values.iter_mut().for_each(|(value, _)| localize_seconds(zone, value));
    }
}

/// Converts a key, which is always shown as text. If a local time occurs twice, the later one gets
/// an explicit offset, so that a shown key identifies its row.
pub(crate) fn localize_key(zone: Option<&Zone>, key: &mut [Value]) {
    let Some(zone) = active(zone) else { return };
    for value in key {
        let Value::Timestamp(at) = *value else { continue };
        localize_text(zone, value);
        let Value::Timestamp(shown) = *value else { continue };
        if shown != at && zone.moment_of(shown) != Some(at) {
            let minutes = (shown - at) / 60_000_000;
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, minutes) = (minutes.abs() / 60, minutes.abs() % 60);
            *value = Value::Text(format!("{value}{sign}{hours:02}:{minutes:02}").into());
        }
    }
}

fn localize_text(zone: &Zone, value: &mut Value) {
    if let Value::Timestamp(at) = value
        && *at != ZERO_TIMESTAMP_MICROS
        && let Some(shown) = zone.shown_at(*at)
    {
        *at = shown;
    }
}

fn localize_seconds(zone: &Zone, value: &mut Value) {
    let shown = match value {
        Value::DateTime(shown) => shown.to_timestamp(),
        Value::Date(date) => DateTime { date: *date, micros: 0 }.to_timestamp(),
        _ => None,
    };
    let shown = shown.filter(|shown| *shown != ZERO_TIMESTAMP_MICROS);
    if let Some(at) = shown.and_then(|shown| zone.moment_of(shown)) {
        *value = Value::Timestamp(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn berlin() -> Zone {
        Zone::parse("Europe/Berlin").unwrap()
    }

    #[test]
    fn texts_and_seconds_are_read_in_the_zone() {
        let read = |kind, text| literal_in_utc(&berlin(), kind, text).into_owned();
        for (text, expected) in [
            ("2024-07-01 12:00:00", "2024-07-01 10:00:00Z"),
            ("2024-01-01T00:00:00.5", "2023-12-31 23:00:00.500000Z"),
            ("2024-07-01", "2024-06-30 22:00:00Z"),
            ("2024-03-31 02:30:00", "2024-03-31 01:00:00Z"),
            ("2024-10-27 02:30:00", "2024-10-27 00:30:00Z"),
            ("2024-07-01 12:00:00Z", "2024-07-01 12:00:00Z"),
            ("2024-07-01 12:00:00+05:00", "2024-07-01 12:00:00+05:00"),
            ("1720000000", "1720000000"),
            ("0000-00-00 00:00:00", "0000-00-00 00:00:00"),
            ("nonsense", "nonsense"),
        ] {
            assert_eq!(read(ColumnType::Timestamp, text), expected);
        }
        assert_eq!(read(ColumnType::DateTime, "2024-07-01 12:00:00"), "2024-07-01 12:00:00");
        assert_eq!(read(ColumnType::DateTime, "1719828000"), "2024-07-01 12:00:00");
        assert_eq!(read(ColumnType::Date, "1719784800"), "2024-07-01");
        assert_eq!(read(ColumnType::Date, "2024-07-01"), "2024-07-01");
        assert_eq!(read(ColumnType::Time, "3600"), "3600");
        assert_eq!(read(ColumnType::Text, "2024-07-01 12:00:00"), "2024-07-01 12:00:00");
    }

    #[test]
    fn printed_key_parses_to_the_same_time() {
        let zone = berlin();
        let first = 1_729_989_000_000_000;
        for at in [0, first, first + 3_600_000_000, 1_720_000_000_000_001, ZERO_TIMESTAMP_MICROS] {
            for zone in [None, Some(&zone)] {
                let mut key = [Value::Timestamp(at)];
                localize_key(zone, &mut key);
                let text = key[0].to_string();
                let read = key_in_utc(zone, ColumnType::Timestamp, &text);
                let again = Value::Timestamp(at).to_string();
                let offset = read.strip_suffix("+01:00");
                let expected = offset.map_or(format!("{again}Z"), |_| read.to_string());
                if at != ZERO_TIMESTAMP_MICROS {
                    assert_eq!(*read, *expected, "{text}");
                }
            }
        }
        let mut later = [Value::Timestamp(first + 3_600_000_000)];
        localize_key(Some(&zone), &mut later);
        assert_eq!(later[0].to_string(), "2024-10-27 02:30:00+01:00");
    }

    #[test]
    fn skipped_local_times_equal_nothing() {
        let zone = berlin();
        assert!(is_skipped_time(&zone, "2024-03-31 02:00:00"));
        for shown in ["2024-03-31 03:00:00", "2024-10-27 02:30:00", "1720000000", "x", "2024-07-01"]
        {
            assert!(!is_skipped_time(&zone, shown), "{shown}");
        }
    }
}
