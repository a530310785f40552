//! `sql_mode`: the set of modes that change how a session's statements are read and run.

use std::fmt;

/// A set of modes, as MySQL's bits: "Server SQL Modes" of the manual, `MODE_…` of
/// `system_variables.h`. The modes that affect the lexer have the same bits in MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlMode(u64);

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        impl SqlMode {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            /// All modes with their names, in MySQL's order.
            const ALL: &[(&str, Self)] = &[$((stringify!($name), Self::$name),)*];
        }
    };
}

modes! {
    /// REAL is FLOAT, not DOUBLE.
    REAL_AS_FLOAT = 0,
    /// `||` concatenates texts.
    PIPES_AS_CONCAT = 1,
    /// `"` quotes identifiers.
    ANSI_QUOTES = 2,
    /// A space may stand between a function's name and its parenthesis.
    IGNORE_SPACE = 3,
    /// Selected columns must be grouped or aggregated.
    ONLY_FULL_GROUP_BY = 5,
    /// The difference of unsigned numbers is signed.
    NO_UNSIGNED_SUBTRACTION = 6,
    /// DATA DIRECTORY and INDEX DIRECTORY are ignored.
    NO_DIR_IN_CREATE = 7,
    /// A combination of modes that is closer to standard SQL.
    ANSI = 18,
    /// 0 is stored in AUTO_INCREMENT columns instead of the next value.
    NO_AUTO_VALUE_ON_ZERO = 19,
    /// Backslashes do not escape.
    NO_BACKSLASH_ESCAPES = 20,
    /// Invalid values are errors in transactional tables.
    STRICT_TRANS_TABLES = 21,
    /// Invalid values are errors in all tables.
    STRICT_ALL_TABLES = 22,
    /// Dates with a month or day of zero, such as 2020-00-00, are invalid.
    NO_ZERO_IN_DATE = 23,
    /// The date 0000-00-00 is invalid.
    NO_ZERO_DATE = 24,
    /// Days up to 31 are valid in every month, such as 2020-02-31.
    ALLOW_INVALID_DATES = 25,
    /// A division by zero is an error in strict mode, otherwise a warning.
    ERROR_FOR_DIVISION_BY_ZERO = 26,
    /// A combination: strict, with the checks of dates and of division.
    TRADITIONAL = 27,
    /// NOT has the precedence of `!`.
    HIGH_NOT_PRECEDENCE = 29,
    /// An unknown storage engine is an error and is not replaced by the default one.
    NO_ENGINE_SUBSTITUTION = 30,
    /// Trailing spaces of CHAR values are returned.
    PAD_CHAR_TO_FULL_LENGTH = 31,
    /// Fractional seconds are truncated, not rounded.
    TIME_TRUNCATE_FRACTIONAL = 32,
}

impl SqlMode {
    /// The default of MySQL 9.
    pub const DEFAULT: Self = Self(
        Self::ONLY_FULL_GROUP_BY.0
            | Self::STRICT_TRANS_TABLES.0
            | Self::NO_ZERO_IN_DATE.0
            | Self::NO_ZERO_DATE.0
            | Self::ERROR_FOR_DIVISION_BY_ZERO.0
            | Self::NO_ENGINE_SUBSTITUTION.0,
    );

    /// The modes of these bits, as the binlog has them.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether it contains all modes of `mode`.
    pub fn has(self, mode: Self) -> bool {
        self.0 & mode.0 == mode.0
    }

    /// These modes without those of `mode`.
    #[must_use]
    pub fn without(self, mode: Self) -> Self {
        Self(self.0 & !mode.0)
    }

    /// Whether invalid values are errors in some tables at least.
    pub fn is_strict(self) -> bool {
        self.0 & (Self::STRICT_TRANS_TABLES.0 | Self::STRICT_ALL_TABLES.0) != 0
    }

    /// Parses a list of names.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn parse(text: &str) -> Result<Self, &str> {
        let mut mode = Self(0);
        for name in text.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let upper = name.to_uppercase();
            let known = Self::ALL.iter().find(|(known, _)| *known == upper);
            let (_, bit) = known.ok_or(name)?;
            mode.0 |= bit.0 | bit.implied();
        }
        Ok(mode)
    }

    /// The modes of MySQL's number for them; `None` for a number beyond all of them. Bits that mean no mode any more have no
    /// effect.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        let contained = Self::ALL.iter().filter(|(_, bit)| number & bit.0 != 0);
        let modes = contained.fold(0, |bits, (_, bit)| bits | bit.0 | bit.implied());
        (number < 1 << 34).then_some(Self(modes))
    }

    /// The bits that a combination of modes implies.
    fn implied(self) -> u64 {
        match self {
            Self::ANSI => {
                Self::REAL_AS_FLOAT.0
                    | Self::PIPES_AS_CONCAT.0
                    | Self::ANSI_QUOTES.0
                    | Self::IGNORE_SPACE.0
                    | Self::ONLY_FULL_GROUP_BY.0
            }
            Self::TRADITIONAL => {
                Self::STRICT_TRANS_TABLES.0
                    | Self::STRICT_ALL_TABLES.0
                    | Self::NO_ZERO_IN_DATE.0
                    | Self::NO_ZERO_DATE.0
                    | Self::ERROR_FOR_DIVISION_BY_ZERO.0
                    | Self::NO_ENGINE_SUBSTITUTION.0
            }
            _ => 0,
        }
    }
}

impl fmt::Display for SqlMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = Self::ALL.iter().filter(|(_, mode)| self.has(*mode));
        for (index, (name, _)) in set.enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(out, "{comma}{name}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_and_shown() {
        let shown = |text: &str| SqlMode::parse(text).unwrap().to_string();
        assert_eq!(shown(""), "");
        assert_eq!(shown("strict_trans_tables, ANSI_QUOTES"), "ANSI_QUOTES,STRICT_TRANS_TABLES");
        assert_eq!(
            shown("ansi"),
            "REAL_AS_FLOAT,PIPES_AS_CONCAT,ANSI_QUOTES,IGNORE_SPACE,ONLY_FULL_GROUP_BY,ANSI"
        );
        assert_eq!(
            SqlMode::DEFAULT.to_string(),
            "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
             ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
        );
        assert_eq!(SqlMode::parse("ansi, NOPE"), Err("NOPE"));
    }
}
