//! `sql_mode`: what a session wants statements to mean.

use std::fmt;

/// A set of modes by MySQL's bits: "Server SQL Modes" of the manual, `MODE_…` of
/// `system_variables.h`. MariaDB's are the same for those that the lexer reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlMode(u64);

macro_rules! modes {
    ($($(#[$doc:meta])* $name:ident = $bit:literal,)*) => {
        impl SqlMode {
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*

            /// All by name, in MySQL's order.
            const ALL: &[(&str, Self)] = &[$((stringify!($name), Self::$name),)*];
        }
    };
}

modes! {
    /// Numbers are cut where they do not fit, as REAL.
    REAL_AS_FLOAT = 0,
    /// `||` joins texts.
    PIPES_AS_CONCAT = 1,
    /// `"` quotes names.
    ANSI_QUOTES = 2,
    /// A space may stand between a function's name and its parenthesis.
    IGNORE_SPACE = 3,
    /// Selected columns must be grouped or aggregated.
    ONLY_FULL_GROUP_BY = 5,
    /// A difference of unsigned numbers is signed.
    NO_UNSIGNED_SUBTRACTION = 6,
    /// Directories of a table are not told.
    NO_DIR_IN_CREATE = 7,
    /// Standard SQL.
    ANSI = 18,
    /// 0 is stored in AUTO_INCREMENT columns.
    NO_AUTO_VALUE_ON_ZERO = 19,
    /// Backslashes are no escapes.
    NO_BACKSLASH_ESCAPES = 20,
    /// What does not fit is an error in transactional tables.
    STRICT_TRANS_TABLES = 21,
    /// What does not fit is an error in all tables.
    STRICT_ALL_TABLES = 22,
    /// 2020-00-00 is no date.
    NO_ZERO_IN_DATE = 23,
    /// 0000-00-00 is no date.
    NO_ZERO_DATE = 24,
    /// 2020-02-31 is a date.
    ALLOW_INVALID_DATES = 25,
    /// A division by zero is an error where strict.
    ERROR_FOR_DIVISION_BY_ZERO = 26,
    /// Strict, and all that goes with it.
    TRADITIONAL = 27,
    /// NOT binds as `!`.
    HIGH_NOT_PRECEDENCE = 29,
    /// No engine is taken for another.
    NO_ENGINE_SUBSTITUTION = 30,
    /// CHAR values keep their spaces.
    PAD_CHAR_TO_FULL_LENGTH = 31,
    /// Fractions of seconds are cut, not rounded.
    TIME_TRUNCATE_FRACTIONAL = 32,
}

impl SqlMode {
    /// MySQL 9's default.
    pub const DEFAULT: Self = Self(
        Self::ONLY_FULL_GROUP_BY.0
            | Self::STRICT_TRANS_TABLES.0
            | Self::NO_ZERO_IN_DATE.0
            | Self::NO_ZERO_DATE.0
            | Self::ERROR_FOR_DIVISION_BY_ZERO.0
            | Self::NO_ENGINE_SUBSTITUTION.0,
    );

    /// The modes of these bits, as a binlog has them.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Whether it has all modes of another.
    pub fn has(self, mode: Self) -> bool {
        self.0 & mode.0 == mode.0
    }

    /// Whether values that do not fit are errors.
    pub fn is_strict(self) -> bool {
        self.0 & (Self::STRICT_TRANS_TABLES.0 | Self::STRICT_ALL_TABLES.0) != 0
    }

    /// Reads a list of names.
    ///
    /// # Errors
    /// The first name that is none.
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

    /// Modes that a mode stands for.
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
