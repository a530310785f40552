//! Query events: statements as text.
//!
//! ```text
//! thread u32 | seconds u32 | length of database u8 | error u16 | length of variables u16
//! | variables: (code u8, value)* | database | 0 | text, in the client's character set
//! LOAD DATA as a statement: what begins as above has behind its fixed part
//! file u32 | place of the file's name: start u32, end u32 | duplicates u8
//! ```

use remora_mysql::{Comments, LexMode, SqlMode, charset_of_collation};

use super::compressed;
use crate::mysql::bytes::{Reader, UnexpectedEnd};

/// Status variables of MySQL's `Query_event` (libbinlogevents) up to version 9.7. MariaDB's own begin at 128.
mod variable {
    pub(super) const FLAGS: u8 = 0;
    pub(super) const SQL_MODE: u8 = 1;
    pub(super) const CATALOG_WITH_ZERO: u8 = 2;
    pub(super) const AUTO_INCREMENT: u8 = 3;
    pub(super) const CHARACTER_SET: u8 = 4;
    pub(super) const TIME_ZONE: u8 = 5;
    pub(super) const CATALOG: u8 = 6;
    pub(super) const TIME_NAMES: u8 = 7;
    pub(super) const DATABASE_CHARACTER_SET: u8 = 8;
    pub(super) const TABLES_FOR_UPDATE: u8 = 9;
    pub(super) const LENGTH_AT_SOURCE: u8 = 10;
    pub(super) const INVOKER: u8 = 11;
    pub(super) const UPDATED_DATABASES: u8 = 12;
    pub(super) const MICROSECONDS: u8 = 13;
    pub(super) const EXPLICIT_TIMESTAMPS: u8 = 16;
    pub(super) const DEFINITION_TRANSACTION: u8 = 17;
    /// MariaDB 11.3 and later.
    pub(super) const COLLATIONS_OF_CHARACTER_SETS: u8 = 131;
}

/// In place of the number of databases: there were too many to list.
const TOO_MANY_DATABASES: u8 = 254;

/// The bytes between the fixed part of a logged LOAD DATA and its variables.
const LOAD_BYTES: usize = 13;

/// A statement as the source logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The default database, possibly empty.
    pub database: String,
    /// The text in UTF-8.
    pub sql: String,
    /// The text if its bytes are read as UTF-8. MariaDB writes the CREATE TABLE of a CREATE … SELECT in UTF-8, and
    /// MySQL 5.6 every DROP TABLE, although the event names the client's character set.
    pub other_sql: Option<String>,
    /// Whether all bytes of the text are valid in their character set.
    pub is_exact: bool,
    /// The lexer mode.
    pub mode: LexMode,
    /// Whether CHAR values were read with the spaces that fill them: PAD_CHAR_TO_FULL_LENGTH.
    pub pads_char: bool,
    /// Whether the source stated the mode in a known form.
    pub is_mode_known: bool,
    /// Its error number, 0 for none.
    pub error: u16,
    /// Whether it changed the data dictionary in a transaction. MySQL reports this from 8.0.3 on for base tables, and
    /// for a TRUNCATE of temporary ones.
    pub in_dictionary: bool,
    /// Whether it used a temporary table of its session, according to the event's header. MariaDB does not set this for
    /// RENAME TABLE.
    pub uses_temporary: bool,
}

/// The meaning of a query for its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    Begin,
    Commit,
    Rollback,
    Savepoint(&'a str),
    RollbackTo(&'a str),
    XaStart,
    XaEnd,
    /// Holds the rest of the text, which contains the transaction's XID.
    XaCommit(&'a str),
    XaRollback(&'a str),
    /// RELEASE SAVEPOINT, which needs no action.
    Nothing,
    Statement,
}

impl Query {
    /// Reads the body of a query event.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if the body ends too early.
    pub fn parse(body: &[u8], comments: Comments) -> Result<Self, UnexpectedEnd> {
        Self::read(body, 0, comments, |text| Ok(text.to_vec()))
    }

    /// Reads the body of a compressed query event of MariaDB.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if the body ends too early or its text cannot be decompressed.
    pub fn parse_compressed(body: &[u8], comments: Comments) -> Result<Self, UnexpectedEnd> {
        Self::read(body, 0, comments, |text| {
            let mut plain = Vec::new();
            compressed::inflate(text, &mut plain)?;
            Ok(plain)
        })
    }

    /// Reads the body of the event that ends a LOAD DATA logged as a statement.
    ///
    /// # Errors
    /// [`UnexpectedEnd`] if the body ends too early.
    pub fn parse_load(body: &[u8], comments: Comments) -> Result<Self, UnexpectedEnd> {
        Self::read(body, LOAD_BYTES, comments, |text| Ok(text.to_vec()))
    }

    /// A statement in UTF-8 with the default mode.
    #[must_use]
    pub fn plain(database: &str, sql: &str) -> Self {
        Self {
            database: database.to_owned(),
            sql: sql.to_owned(),
            other_sql: None,
            is_exact: true,
            mode: LexMode { comments: Comments::All, ..LexMode::default() },
            pads_char: false,
            is_mode_known: true,
            error: 0,
            in_dictionary: false,
            uses_temporary: false,
        }
    }

    fn read(
        body: &[u8],
        more: usize,
        comments: Comments,
        text: impl FnOnce(&[u8]) -> Result<Vec<u8>, UnexpectedEnd>,
    ) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(body);
        reader.skip(8)?;
        let database_length = usize::from(reader.u8()?);
        let error = reader.u16()?;
        let variables_length = usize::from(reader.u16()?);
        reader.skip(more)?;
        let variables = Variables::read(reader.bytes(variables_length)?);
        let database = String::from_utf8_lossy(reader.bytes(database_length)?).into_owned();
        reader.skip(1)?;
        let text = text(reader.rest())?;
        let is_mode_known = variables.is_ok();
        let Variables { sql_mode, collation, in_dictionary } = variables.unwrap_or_default();
        let client = charset_of_collation(collation).unwrap_or_default();
        let sql_mode = SqlMode::from_bits(sql_mode);
        let mode = LexMode::of_sql_mode(sql_mode, client, comments);
        let sql = client.decode(&text).into_owned();
        let mut again = Vec::with_capacity(text.len());
        client.encode(&sql, &mut again);
        let is_exact = again == text;
        let is_other = !client.is_utf8() && !text.is_ascii();
        let other_sql = if is_other { String::from_utf8(text).ok() } else { None };
        Ok(Self {
            database,
            sql,
            other_sql,
            is_exact,
            mode,
            pads_char: sql_mode.has(SqlMode::PAD_CHAR_TO_FULL_LENGTH),
            is_mode_known,
            error,
            in_dictionary,
            uses_temporary: false,
        })
    }

    /// Its meaning for its transaction.
    pub fn meaning(&self) -> Meaning<'_> {
        let sql = self.sql.trim().trim_end_matches(';').trim_end();
        let after = |word: &str| {
            let (head, tail) = sql.split_at_checked(word.len())?;
            head.eq_ignore_ascii_case(word).then(|| tail.trim())
        };
        let exactly = |word: &str| after(word) == Some("");
        if exactly("BEGIN") || exactly("START TRANSACTION") {
            Meaning::Begin
        } else if exactly("COMMIT") {
            Meaning::Commit
        } else if exactly("ROLLBACK") {
            Meaning::Rollback
        } else if let Some(name) = after("SAVEPOINT ") {
            Meaning::Savepoint(name)
        } else if let Some(name) = after("ROLLBACK TO ") {
            Meaning::RollbackTo(after("ROLLBACK TO SAVEPOINT ").unwrap_or(name))
        } else if after("RELEASE SAVEPOINT ").is_some() {
            Meaning::Nothing
        } else if after("XA START ").or_else(|| after("XA BEGIN ")).is_some() {
            Meaning::XaStart
        } else if after("XA END ").is_some() {
            Meaning::XaEnd
        } else if let Some(xid) = after("XA COMMIT ") {
            Meaning::XaCommit(xid)
        } else if let Some(xid) = after("XA ROLLBACK ") {
            Meaning::XaRollback(xid)
        } else {
            Meaning::Statement
        }
    }
}

/// The status variables that matter.
#[derive(Default)]
struct Variables {
    sql_mode: u64,
    /// The collation of the client's character set.
    collation: u16,
    in_dictionary: bool,
}

impl Variables {
    /// Reads the variables. All before the character set must be known; later ones do not affect how the text is read.
    fn read(variables: &[u8]) -> Result<Self, UnexpectedEnd> {
        let mut reader = Reader::new(variables);
        let mut found = Self::default();
        let mut is_readable = false;
        while reader.remaining() > 0 {
            match found.read_one(&mut reader) {
                Ok(true) => is_readable = true,
                Ok(false) => {}
                Err(UnexpectedEnd) if is_readable => break,
                Err(UnexpectedEnd) => return Err(UnexpectedEnd),
            }
        }
        Ok(found)
    }

    /// Reads a variable; true if it was the character set.
    fn read_one(&mut self, reader: &mut Reader<'_>) -> Result<bool, UnexpectedEnd> {
        let code = reader.u8()?;
        match code {
            variable::FLAGS | variable::AUTO_INCREMENT | variable::LENGTH_AT_SOURCE => {
                reader.skip(4)?;
            }
            variable::SQL_MODE => self.sql_mode = reader.u64()?,
            variable::CATALOG_WITH_ZERO => {
                let length = usize::from(reader.u8()?);
                reader.skip(length + 1)?;
            }
            variable::CATALOG | variable::TIME_ZONE => {
                let length = usize::from(reader.u8()?);
                reader.skip(length)?;
            }
            variable::CHARACTER_SET => {
                self.collation = reader.u16()?;
                // The connection's and the server's collations.
                reader.skip(4)?;
            }
            variable::TIME_NAMES | variable::DATABASE_CHARACTER_SET => reader.skip(2)?,
            variable::TABLES_FOR_UPDATE => reader.skip(8)?,
            variable::INVOKER => {
                for _user_and_host in 0..2 {
                    let length = usize::from(reader.u8()?);
                    reader.skip(length)?;
                }
            }
            variable::UPDATED_DATABASES => {
                let count = reader.u8()?;
                let named = if count == TOO_MANY_DATABASES { 0 } else { count };
                for _database in 0..named {
                    while reader.u8()? != 0 {}
                }
            }
            variable::MICROSECONDS => reader.skip(3)?,
            variable::EXPLICIT_TIMESTAMPS => reader.skip(1)?,
            variable::COLLATIONS_OF_CHARACTER_SETS => {
                // Pairs of a character set and its default collation.
                let count = usize::from(reader.u8()?);
                reader.skip(4 * count)?;
            }
            variable::DEFINITION_TRANSACTION => {
                reader.skip(8)?;
                self.in_dictionary = true;
            }
            _ => return Err(UnexpectedEnd),
        }
        Ok(code == variable::CHARACTER_SET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(sql: &str) -> String {
        format!("{:?}", Query::plain("", sql).meaning())
    }

    #[test]
    fn transaction_control_is_recognized() {
        for (sql, means) in [
            ("BEGIN", "Begin"),
            ("begin;", "Begin"),
            ("COMMIT", "Commit"),
            ("ROLLBACK", "Rollback"),
            ("ROLLBACK TO `a b`", "RollbackTo(\"`a b`\")"),
            ("ROLLBACK TO SAVEPOINT x", "RollbackTo(\"x\")"),
            ("SAVEPOINT `x`", "Savepoint(\"`x`\")"),
            ("RELEASE SAVEPOINT x", "Nothing"),
            ("XA START X'61',X'',1", "XaStart"),
            ("XA END X'61',X'',1", "XaEnd"),
            ("XA COMMIT X'61',X'',1", "XaCommit(\"X'61',X'',1\")"),
            ("XA ROLLBACK X'61',X'',1", "XaRollback(\"X'61',X'',1\")"),
            ("BEGINNING", "Statement"),
            ("DROP TABLE `commit`", "Statement"),
            ("é", "Statement"),
            ("", "Statement"),
        ] {
            assert_eq!(meaning(sql), means, "{sql}");
        }
    }

    /// The body of an event with these variables.
    fn body(variables: &[u8], text: &[u8]) -> Vec<u8> {
        let mut body = vec![0; 8];
        body.extend([1, 0, 0]);
        body.extend((variables.len() as u16).to_le_bytes());
        body.extend(variables);
        body.extend(b"d\0");
        body.extend(text);
        body
    }

    fn read(variables: &[u8], text: &[u8]) -> Query {
        Query::parse(&body(variables, text), Comments::All).unwrap()
    }

    #[test]
    fn text_is_decoded_from_the_clients_character_set() {
        let of = |collation: u8, text: &[u8]| read(&[4, collation, 0, 33, 0, 33, 0], text);
        let latin1 = of(8, b"sp\xe4ter");
        assert_eq!((latin1.sql.as_str(), latin1.other_sql), ("später", None));
        let utf8 = of(45, "später".as_bytes());
        assert_eq!((utf8.sql.as_str(), utf8.is_exact, utf8.other_sql), ("später", true, None));
        assert_eq!(of(13, b"\x93\xfa\x96{").sql, "日本");
        assert!(!of(45, b"\xff").is_exact);
        let either = of(8, "ä".as_bytes());
        assert_eq!((either.sql.as_str(), either.other_sql.as_deref()), ("Ã¤", Some("ä")));
    }

    #[test]
    fn sql_mode_is_read_from_status_variables() {
        let mut variables = vec![0, 0, 0, 0, 0, 1];
        variables.extend((4_u64 | 1 << 20).to_le_bytes());
        let query = read(&variables, b"x");
        assert!(query.mode.ansi_quotes && query.mode.no_backslash_escapes && query.is_mode_known);
        assert!(!read(&[200, 1], b"x").is_mode_known);
        assert!(read(&[6, 3, b's', b't', b'd', 4, 8, 0, 8, 0, 8, 0, 0x81], b"x").is_mode_known);
        assert!(!read(&[6, 3, b's', b't', b'd', 0x81], b"x").is_mode_known);
        let collations = [0x83, 2, 0x21, 0, 0, 8, 0x23, 0, 0, 10, 4, 8, 0, 8, 0, 8, 0];
        let named = read(&collations, b"\xe4");
        assert_eq!((named.sql.as_str(), named.is_mode_known), ("ä", true));
        assert!(!read(&collations[..8], b"x").is_mode_known);
        let mut pads = vec![1];
        pads.extend((1_u64 << 31).to_le_bytes());
        assert!(read(&pads, b"x").pads_char && !read(&variables, b"x").pads_char);
    }

    #[test]
    fn dictionary_flag_is_read_after_the_character_set() {
        let before = [4, 8, 0, 8, 0, 8, 0, 7, 1, 0, 8, 45, 0, 12, 2, b'a', 0, b'b', b'c', 0, 16, 1];
        let of = |more: &[u8]| read(&[&before, more].concat(), b"TRUNCATE t").in_dictionary;
        assert!(of(&[17, 9, 0, 0, 0, 0, 0, 0, 0]));
        assert!(of(&[11, 1, b'u', 1, b'h', 13, 1, 2, 3, 17, 9, 0, 0, 0, 0, 0, 0, 0, 18, 255, 0]));
        assert!(!of(&[18, 255, 0]) && !of(&[17, 9]) && !of(&[12, 3]));
        assert!(read(&[12, 254, 17, 9, 0, 0, 0, 0, 0, 0, 0], b"x").in_dictionary);
    }
}
