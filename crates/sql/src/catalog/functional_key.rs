//! What a table knows of its functional keys.

use jiff::tz::{Offset, TimeZone};
use remora_mysql::{Collation, SqlMode};

/// The session's settings that decide the value of an expression.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpressionSettings {
    /// `collation_connection`.
    pub collation: Collation,
    /// Whether its time zone is UTC.
    is_utc: bool,
    /// Whether its mode accepts the same dates as the default mode.
    has_usual_dates: bool,
}

impl ExpressionSettings {
    /// The settings of a session.
    pub(crate) fn new(collation: Collation, zone: &TimeZone, mode: SqlMode) -> Self {
        let is_utc = *zone == TimeZone::UTC || zone.to_fixed_offset().ok() == Some(Offset::UTC);
        let of_dates =
            [SqlMode::NO_ZERO_DATE, SqlMode::NO_ZERO_IN_DATE, SqlMode::ALLOW_INVALID_DATES];
        let has_usual_dates =
            of_dates.into_iter().all(|one| mode.has(one) == SqlMode::DEFAULT.has(one));
        Self { collation, is_utc, has_usual_dates }
    }
}

/// The expression of a functional key.
#[derive(Clone, Debug)]
pub(crate) struct ExpressionKey {
    /// The expression in the form of [`super::plain_text`].
    pub text: String,
    /// The position of the hidden column.
    pub position: usize,
    /// The `collation_connection` that a session must have; `None` if it does not matter.
    pub(super) collation: Option<Collation>,
    /// Whether the session's time zone must be UTC.
    pub(super) of_zone: bool,
    /// Whether the session's mode must accept the same dates as the default mode.
    pub(super) of_dates: bool,
}

impl ExpressionKey {
    /// Whether the expression has the same value in a session as in the stored rows.
    pub(crate) fn is_for(&self, session: ExpressionSettings) -> bool {
        self.collation.is_none_or(|collation| collation == session.collation)
            && (!self.of_zone || session.is_utc)
            && (!self.of_dates || session.has_usual_dates)
    }
}

/// A generated integer column with rounded values of a text in a JSON document.
#[derive(Clone, Debug)]
pub(crate) struct RoundedKey {
    /// The expression in the form of [`super::plain_text`].
    pub text: String,
    /// The position of the column.
    pub position: usize,
    /// The range of values that the column stores without clamping.
    pub bounds: (i64, i64),
}
