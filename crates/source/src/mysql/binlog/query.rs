//! Query events: statements as text.
//!
//! ```text
//! thread u32 | seconds u32 | length of database u8 | error u16 | length of variables u16
//! | variables: (code u8, value)* | database | 0 | text, in the client's character set
//! ```

use super::{Reader, Short, compressed};

/// Status variables come in this order, and all before the character set are of known length.
mod variable {
    pub(super) const FLAGS: u8 = 0;
    pub(super) const SQL_MODE: u8 = 1;
    pub(super) const CATALOG_WITH_ZERO: u8 = 2;
    pub(super) const AUTO_INCREMENT: u8 = 3;
    pub(super) const CHARACTER_SET: u8 = 4;
    pub(super) const TIME_ZONE: u8 = 5;
    pub(super) const CATALOG: u8 = 6;
}

/// A statement as the source logged it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The default database, maybe empty.
    pub database: String,
    /// The text in UTF-8.
    pub sql: String,
}

/// What a query means for its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning<'a> {
    Begin,
    Commit,
    Rollback,
    Savepoint(&'a str),
    RollbackTo(&'a str),
    XaStart,
    XaEnd,
    /// With the rest of the text, which names the transaction.
    XaCommit(&'a str),
    XaRollback(&'a str),
    /// Releasing a savepoint: nothing.
    Nothing,
    Statement,
}

impl Query {
    /// Reads the body of a query event.
    pub fn parse(body: &[u8]) -> Result<Self, Short> {
        let (database, character_set, text) = Self::split(body)?;
        Ok(Self { database, sql: decode(text, character_set) })
    }

    /// Reads the body of a compressed query event of MariaDB.
    pub fn parse_compressed(body: &[u8]) -> Result<Self, Short> {
        let (database, character_set, text) = Self::split(body)?;
        let mut plain = Vec::new();
        compressed::inflate(text, &mut plain)?;
        Ok(Self { database, sql: decode(&plain, character_set) })
    }

    fn split(body: &[u8]) -> Result<(String, Option<u16>, &[u8]), Short> {
        let mut reader = Reader::new(body);
        reader.skip(8)?;
        let database_length = usize::from(reader.u8()?);
        reader.skip(2)?;
        let variables_length = usize::from(reader.u16()?);
        let character_set = character_set(reader.bytes(variables_length)?);
        let database = String::from_utf8_lossy(reader.bytes(database_length)?).into_owned();
        reader.skip(1)?;
        Ok((database, character_set.ok(), reader.rest()))
    }

    /// What it means for its transaction.
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

/// The collation of the client's character set, if the variables say it.
fn character_set(variables: &[u8]) -> Result<u16, Short> {
    let mut reader = Reader::new(variables);
    loop {
        match reader.u8()? {
            variable::FLAGS | variable::AUTO_INCREMENT => reader.skip(4)?,
            variable::SQL_MODE => reader.skip(8)?,
            variable::CATALOG_WITH_ZERO => {
                let length = usize::from(reader.u8()?);
                reader.skip(length + 1)?;
            }
            variable::CATALOG | variable::TIME_ZONE => {
                let length = usize::from(reader.u8()?);
                reader.skip(length)?;
            }
            variable::CHARACTER_SET => return reader.u16(),
            _ => return Err(Short),
        }
    }
}

/// Text in a character set that is not known to be another is UTF-8.
fn decode(text: &[u8], collation: Option<u16>) -> String {
    let encoding = match collation.unwrap_or(0) {
        1 | 84 => encoding_rs::BIG5,
        5 | 8 | 15 | 31 | 47..=49 | 94 => encoding_rs::WINDOWS_1252,
        2 | 9 | 21 | 27 | 77 => encoding_rs::ISO_8859_2,
        12 | 91 | 97 | 98 => encoding_rs::EUC_JP,
        13 | 88 | 95 | 96 => encoding_rs::SHIFT_JIS,
        14 | 23 | 50..=52 => encoding_rs::WINDOWS_1251,
        19 | 85 => encoding_rs::EUC_KR,
        24 | 86 | 28 | 87 | 248..=250 => encoding_rs::GB18030,
        _ => return String::from_utf8_lossy(text).into_owned(),
    };
    encoding.decode_without_bom_handling(text).0.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meaning(sql: &str) -> String {
        let query = Query { database: String::new(), sql: sql.to_owned() };
        format!("{:?}", query.meaning())
    }

    #[test]
    fn transaction_control_is_told_from_statements() {
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

    #[test]
    fn text_is_decoded_from_the_clients_character_set() {
        assert_eq!(decode(b"sp\xe4ter", Some(8)), "später");
        assert_eq!(decode("später".as_bytes(), Some(255)), "später");
        assert_eq!(decode(b"\x93\xfa\x96{", Some(13)), "日本");
        assert_eq!(decode(b"\xff", None), "\u{fffd}");
    }
}
