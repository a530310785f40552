//! The texts of MySQL's errors and warnings, for those that several modules report. Each goes with the [`ErrorCode`]
//! of the same meaning. Clients and test suites compare these texts, so they must stay as MySQL has them, with its
//! punctuation and its spelling.
//!
//! [`ErrorCode`]: crate::ErrorCode

use std::fmt::Display;

/// With `EmptyQuery`.
pub const EMPTY_QUERY: &str = "Query was empty";
/// With `WindowMisplaced`. The quotation mark at the end is MySQL's.
pub fn misplaced_window(name: &str) -> String {
    format!("You cannot use the window function '{name}' in this context.'")
}

/// With `DateOverflow`.
pub const DATE_OVERFLOW: &str = "Datetime function: datetime field overflow";
/// With `InvalidGroupFunction`.
pub const INVALID_GROUP_FUNCTION: &str = "Invalid use of group function";
/// With `JsonNullKey`.
pub const JSON_NULL_KEY: &str = "JSON documents may not contain NULL member names.";
/// With `NoDatabase`.
pub const NO_DATABASE: &str = "No database selected";
/// With `NoFulltextIndex`.
pub const NO_FULLTEXT_INDEX: &str = "Can't find FULLTEXT index matching the column list";
/// With `SubqueryRows`.
pub const SUBQUERY_ROWS: &str = "Subquery returns more than 1 row";
/// With `TooManyColumns`.
pub const TOO_MANY_COLUMNS: &str = "Too many columns";
/// With `WindowFrameIllegal`, for a window without a name.
pub const WINDOW_FRAME_ILLEGAL: &str =
    "Window '<unnamed window>': frame start or end is negative, NULL or of non-integral type";

/// With `SpecificAccessDenied`. `privileges` is a list such as `SUPER, REPLICATION CLIENT`.
#[must_use]
pub fn privileges_required(privileges: impl Display) -> String {
    format!(
        "Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"
    )
}

/// With `UnknownDatabase`.
#[must_use]
pub fn unknown_database(name: impl Display) -> String {
    format!("Unknown database '{name}'")
}

/// With `UnknownTable`: a table that a statement should drop, or whose columns `*` selects.
#[must_use]
pub fn unknown_table(name: impl Display) -> String {
    format!("Unknown table '{name}'")
}

/// With `UnknownTableInDelete`. `place` is a clause, a statement or a database.
#[must_use]
pub fn unknown_table_in(name: impl Display, place: impl Display) -> String {
    format!("Unknown table '{name}' in {place}")
}

/// With `UnknownColumn`. `place` is a clause, such as `field list`, or a table.
#[must_use]
pub fn unknown_column(name: impl Display, place: impl Display) -> String {
    format!("Unknown column '{name}' in '{place}'")
}

/// With `AmbiguousColumn`. `place` is a clause.
#[must_use]
pub fn ambiguous_column(name: impl Display, place: impl Display) -> String {
    format!("Column '{name}' in {place} is ambiguous")
}

/// With `DuplicateColumn`.
#[must_use]
pub fn duplicate_column(name: impl Display) -> String {
    format!("Duplicate column name '{name}'")
}

/// With `WrongColumnName`.
#[must_use]
pub fn incorrect_column_name(name: impl Display) -> String {
    format!("Incorrect column name '{name}'")
}

/// With `BadFulltextColumn`.
#[must_use]
pub fn bad_fulltext_column(name: impl Display) -> String {
    format!("Column '{name}' cannot be part of FULLTEXT index")
}

/// With `DuplicateKey`. `key` is qualified with its table.
#[must_use]
pub fn duplicate_entry(value: impl Display, table: impl Display, key: impl Display) -> String {
    format!("Duplicate entry '{value}' for key '{table}.{key}'")
}

/// With `InvalidDefault`.
#[must_use]
pub fn invalid_default(column: impl Display) -> String {
    format!("Invalid default value for '{column}'")
}

/// With `NoDefault`.
#[must_use]
pub fn no_default(column: impl Display) -> String {
    format!("Field '{column}' doesn't have a default value")
}

/// With `ColumnCannotBeNull`.
#[must_use]
pub fn column_cannot_be_null(column: impl Display) -> String {
    format!("Column '{column}' cannot be null")
}

/// With `DataTruncated`. Rows are counted from 1.
#[must_use]
pub fn data_truncated(column: impl Display, row: u64) -> String {
    format!("Data truncated for column '{column}' at row {row}")
}

/// With `DataTooLong`. Rows are counted from 1.
#[must_use]
pub fn data_too_long(column: impl Display, row: u64) -> String {
    format!("Data too long for column '{column}' at row {row}")
}

/// With `OutOfRange`. Rows are counted from 1.
#[must_use]
pub fn out_of_range(column: impl Display, row: u64) -> String {
    format!("Out of range value for column '{column}' at row {row}")
}

/// With `NumberOutOfRange` or `OutOfRange`. `kind` is a type or a parameter, `expression` an expression or a function.
#[must_use]
pub fn value_out_of_range(kind: impl Display, expression: impl Display) -> String {
    format!("{kind} value is out of range in '{expression}'")
}

/// With `IncorrectValue` or `TruncatedValue`: no value of this type.
#[must_use]
pub fn incorrect_value(kind: impl Display, value: impl Display) -> String {
    format!("Incorrect {kind} value: '{value}'")
}

/// With `TruncatedValue`: only the beginning is a value of this type.
#[must_use]
pub fn truncated_incorrect_value(kind: impl Display, value: impl Display) -> String {
    format!("Truncated incorrect {kind} value: '{value}'")
}

/// With `InvalidCharacters`. `bytes` are the first invalid ones, in hexadecimal.
#[must_use]
pub fn invalid_character_string(charset: impl Display, bytes: impl Display) -> String {
    format!("Invalid {charset} character string: '{bytes}'")
}

/// With `UnknownCharset`.
#[must_use]
pub fn unknown_charset(name: impl Display) -> String {
    format!("Unknown character set: '{name}'")
}

/// With `UnknownCollation`.
#[must_use]
pub fn unknown_collation(name: impl Display) -> String {
    format!("Unknown collation: '{name}'")
}

/// With `CollationCharsetMismatch`.
#[must_use]
pub fn collation_charset_mismatch(collation: impl Display, charset: impl Display) -> String {
    format!("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'")
}

/// With `WrongArguments`. `to` is a function, a clause or a statement.
#[must_use]
pub fn incorrect_arguments(to: impl Display) -> String {
    format!("Incorrect arguments to {to}")
}

/// With `WrongParameterCount`.
#[must_use]
pub fn wrong_parameter_count(function: impl Display) -> String {
    format!("Incorrect parameter count in the call to native function '{function}'")
}

/// With `OperandColumns`.
#[must_use]
pub fn operand_columns(count: usize) -> String {
    format!("Operand should contain {count} column(s)")
}

/// With `MalformedGtidSet`.
#[must_use]
pub fn malformed_gtid_set(set: impl Display) -> String {
    format!("Malformed GTID set specification '{set}'.")
}

/// What a statement that writes rows tells people in its OK packet.
#[must_use]
pub fn records_info(records: u64, duplicates: u64, warnings: impl Display) -> String {
    format!("Records: {records}  Duplicates: {duplicates}  Warnings: {warnings}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_mysql() {
        assert_eq!(unknown_column("a", "field list"), "Unknown column 'a' in 'field list'");
        assert_eq!(duplicate_entry("1-b", "t", "k"), "Duplicate entry '1-b' for key 't.k'");
        assert_eq!(data_truncated("c", 2), "Data truncated for column 'c' at row 2");
        assert_eq!(records_info(3, 1, 0), "Records: 3  Duplicates: 1  Warnings: 0");
        let privileges = privileges_required("SUPER or SYSTEM_VARIABLES_ADMIN");
        let text = "Access denied; you need (at least one of) the SUPER or SYSTEM_VARIABLES_ADMIN \
                    privilege(s) for this operation";
        assert_eq!(privileges, text);
    }
}
