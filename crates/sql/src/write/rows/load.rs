//! LOAD DATA: inserts the lines of a file from the client.
//!
//! ```text
//! load := "LOAD" "DATA" word* ["LOCAL"] "INFILE" text ["REPLACE" | "IGNORE"] "INTO" "TABLE" table
//!         ["CHARACTER" "SET" name] ["FIELDS" | "COLUMNS" field*] ["LINES" line*]
//!         ["IGNORE" n ("LINES" | "ROWS")] ["(" (column | @variable),* ")"] ["SET" assignment,*]
//! field := "TERMINATED" "BY" text | ["OPTIONALLY"] "ENCLOSED" "BY" text | "ESCAPED" "BY" text
//! line  := "STARTING" "BY" text | "TERMINATED" "BY" text
//! ```

use std::sync::Arc;

use remora_mysql::{Charset, ErrorCode, messages};

use super::{
    evaluate::StatementText,
    fields::{Fields, FileLine},
    insert::{Inserter, Policy},
    target::{TargetTable, table_name},
};
use crate::{Error, Outcome, Result, catalog::Verb, parse::Tokens, state::SessionState};

/// Lines in a batch.
const LINES_AT_ONCE: usize = 1_000;

/// The separators of a file.
#[derive(Clone, Debug, PartialEq)]
struct Format {
    field_end: Vec<u8>,
    enclosure: Option<u8>,
    escape: Option<u8>,
    line_start: Vec<u8>,
    line_end: Vec<u8>,
}

impl Default for Format {
    fn default() -> Self {
        Self {
            field_end: b"\t".to_vec(),
            enclosure: None,
            escape: Some(b'\\'),
            line_start: Vec::new(),
            line_end: b"\n".to_vec(),
        }
    }
}

/// Files are read as UTF-8: 1235 for another character set, 1115 for one that does not exist.
fn check_charset(name: &str) -> Result<()> {
    match Charset::named(name).map(|it| it.name()) {
        Some("utf8mb4" | "utf8mb3" | "ascii") => Ok(()),
        Some(other) => Err(Error::unsupported(format!("LOAD DATA with CHARACTER SET {other}"))),
        None if name.eq_ignore_ascii_case("binary") => Ok(()),
        None => Err(Error::new(ErrorCode::UnknownCharset, messages::unknown_charset(name))),
    }
}

/// Runs LOAD DATA.
pub(super) async fn run(session: &mut SessionState, text: StatementText<'_>) -> Result<Outcome> {
    let tokens = &mut text.tokens();
    tokens.expect("LOAD DATA")?;
    while tokens.accept_any(&["LOW_PRIORITY", "CONCURRENT"]) {}
    let local = tokens.accept("LOCAL");
    tokens.expect("INFILE")?;
    tokens.text()?;
    let replace = tokens.accept("REPLACE");
    let ignore = tokens.accept("IGNORE") || local && !replace;
    session.refuses_warnings &= !ignore;
    tokens.expect("INTO TABLE")?;
    let table = table_name(tokens, session)?;
    let target = TargetTable::find(session, &table, Verb::Insert)?;
    if tokens.accept_all("CHARACTER SET") {
        check_charset(&tokens.name()?)?;
    }
    let format = Format::parse(tokens)?;
    let skipped = lines_to_skip(tokens)?;
    let fields = Fields::parse(text, tokens, &target)?;
    tokens.expect_end()?;
    let content = content(session, local)?;
    let policy = match (replace, ignore) {
        (true, _) => Policy::Replace,
        (false, true) => Policy::Ignore,
        (false, false) => Policy::Refuse,
    };
    let mut inserter = Inserter::new(session, &target, policy, ignore).await?;
    let mut lines = Lines { format: &format, rest: &content, most_fields: fields.count() + 1 };
    for _ in 0..skipped {
        if lines.next().is_none() {
            break;
        }
    }
    loop {
        let some: Vec<FileLine> = lines.by_ref().take(LINES_AT_ONCE).collect();
        if some.is_empty() {
            break;
        }
        session.check_interrupted()?;
        let (maker, before) = (inserter.maker(), inserter.tally.records);
        let source = text.source();
        let rows = fields.rows(session, source, &target, maker, some, before).await?;
        inserter.insert(session, text, rows).await?;
    }
    let mut outcome = inserter.outcome(session, true);
    let records = inserter.tally.records;
    let skipped = match policy {
        Policy::Ignore => inserter.tally.duplicates,
        _ => 0,
    };
    let deleted = match policy {
        Policy::Replace => outcome.affected_rows.saturating_sub(records),
        _ => 0,
    };
    let warnings = session.warnings.count();
    outcome.info =
        format!("Records: {records}  Deleted: {deleted}  Skipped: {skipped}  Warnings: {warnings}");
    Ok(outcome)
}

/// The file's bytes, which must come from the client. Errors 1290 and 3948.
fn content(session: &SessionState, local: bool) -> Result<Arc<[u8]>> {
    let refused = match local {
        true => Error::new(
            ErrorCode::LocalInfileDisabled,
            "Loading local data is disabled; this must be enabled on both the client and server \
             sides",
        ),
        false => Error::new(
            ErrorCode::OptionPreventsStatement,
            "The MySQL server is running with the --secure-file-priv option so it cannot execute \
             this statement",
        ),
    };
    session.transaction.file().filter(|_| local).ok_or(refused)
}

impl Format {
    fn parse(tokens: &mut Tokens<'_>) -> Result<Self> {
        let mut format = Self::default();
        if tokens.accept_any(&["FIELDS", "COLUMNS"]) {
            loop {
                if tokens.accept_all("TERMINATED BY") {
                    format.field_end = tokens.text()?;
                } else if tokens.accept_all("OPTIONALLY ENCLOSED BY")
                    || tokens.accept_all("ENCLOSED BY")
                {
                    format.enclosure = tokens.text()?.first().copied();
                } else if tokens.accept_all("ESCAPED BY") {
                    format.escape = tokens.text()?.first().copied();
                } else {
                    break;
                }
            }
        }
        if tokens.accept("LINES") {
            loop {
                if tokens.accept_all("STARTING BY") {
                    format.line_start = tokens.text()?;
                } else if tokens.accept_all("TERMINATED BY") {
                    format.line_end = tokens.text()?;
                } else {
                    break;
                }
            }
        }
        // As in MySQL: without LINES TERMINATED BY, lines end as fields do.
        if format.line_end.is_empty() {
            format.line_end.clone_from(&format.field_end);
        }
        if format.line_end.is_empty() {
            return Err(Error::unsupported("LOAD DATA of fields of fixed length"));
        }
        Ok(format)
    }
}

fn lines_to_skip(tokens: &mut Tokens<'_>) -> Result<u64> {
    if !tokens.accept("IGNORE") {
        return Ok(0);
    }
    let lines = tokens.number()?;
    if !tokens.accept_any(&["LINES", "ROWS"]) {
        return Err(tokens.syntax_error());
    }
    Ok(lines)
}

/// The lines of a file, split into fields.
struct Lines<'l> {
    format: &'l Format,
    rest: &'l [u8],
    /// One more than the number of fields that are used; the others are skipped.
    most_fields: usize,
}

impl Iterator for Lines<'_> {
    type Item = FileLine;

    fn next(&mut self) -> Option<Self::Item> {
        let start = &self.format.line_start;
        if !start.is_empty() {
            let at = memchr::memmem::find(self.rest, start)?;
            self.rest = self.rest.get(at + start.len()..)?;
        }
        if self.rest.is_empty() {
            return None;
        }
        let mut line = Vec::new();
        loop {
            let (field, ends) = self.field();
            // A separator at the end of a line does not begin another field.
            let is_end = ends && field.as_ref().is_some_and(Vec::is_empty);
            if line.len() + 1 == self.most_fields && is_end {
                return Some(line);
            }
            if line.len() < self.most_fields {
                line.push(field);
            }
            if ends {
                return Some(line);
            }
        }
    }
}

impl Lines<'_> {
    /// The next field, and whether it is the last of its line.
    fn field(&mut self) -> (Option<Vec<u8>>, bool) {
        let format = self.format;
        let mut field = Vec::new();
        let enclosed = format.enclosure.is_some() && self.rest.first().copied() == format.enclosure;
        let mut at = usize::from(enclosed);
        let mut open = enclosed;
        let mut is_null = false;
        // `\N` means NULL, and so does NULL without quotes if fields are enclosed.
        let is_missing = |field: &[u8], escaped: bool| {
            let bare = format.enclosure.is_some() && !enclosed && field == b"NULL";
            escaped && field == b"N" || bare
        };
        loop {
            let rest = self.rest.get(at..).unwrap_or_default();
            let Some(&byte) = rest.first() else {
                self.rest = &[];
                return (Some(field).filter(|field| !is_missing(field, is_null)), true);
            };
            if format.escape == Some(byte)
                && let Some(&escaped) = rest.get(1)
            {
                is_null = escaped == b'N' && field.is_empty() && !enclosed;
                field.push(unescaped(escaped));
                at += 2;
            } else if open && Some(byte) == format.enclosure {
                if rest.get(1) == Some(&byte) {
                    field.push(byte);
                    at += 1;
                } else {
                    open = false;
                }
                at += 1;
            } else if !open && rest.starts_with(&format.line_end) {
                self.rest = rest.get(format.line_end.len()..).unwrap_or_default();
                return (Some(field).filter(|field| !is_missing(field, is_null)), true);
            } else if !open && !format.field_end.is_empty() && rest.starts_with(&format.field_end) {
                self.rest = rest.get(format.field_end.len()..).unwrap_or_default();
                return (Some(field).filter(|field| !is_missing(field, is_null)), false);
            } else {
                field.push(byte);
                at += 1;
            }
        }
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::read;

    fn lines(format: &Format, text: &str) -> Vec<Vec<Option<String>>> {
        let shown = |field: Option<Vec<u8>>| field.map(|bytes| String::from_utf8(bytes).unwrap());
        let lines = Lines { format, rest: text.as_bytes(), most_fields: 3 };
        lines.map(|line| line.into_iter().map(shown).collect()).collect()
    }

    #[test]
    fn tabs_and_escapes() {
        let found = lines(&Format::default(), "1\ta\\tb\n2\t\\N\n3\t");
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            found,
            [vec![some("1"), some("a\tb")], vec![some("2"), None], vec![some("3"), some("")]]
        );
    }

    #[test]
    fn lines_end_whatever_is_said_of_their_end() {
        let parsed = |text: &str| read(text, Format::parse);
        let format = parsed("FIELDS TERMINATED BY ',' LINES TERMINATED BY ''").unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(lines(&format, "a,b"), [vec![some("a")], vec![some("b")]]);
        let fixed = parsed("FIELDS TERMINATED BY '' LINES TERMINATED BY ''");
        assert_eq!(fixed.unwrap_err().code, ErrorCode::NotSupported);
        let tabs = "\t".repeat(100);
        assert_eq!(lines(&Format::default(), &tabs), [vec![some(""); 3]]);
    }

    #[test]
    fn enclosed_fields_hold_what_ends_others() {
        let format = Format {
            field_end: b",".to_vec(),
            enclosure: Some(b'"'),
            line_end: b"\r\n".to_vec(),
            ..Format::default()
        };
        let found = lines(&format, "\"a,b\",\"c\"\"d\"\r\nx,NULL\r\n");
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(found, [vec![some("a,b"), some("c\"d")], vec![some("x"), None]]);
        let found = lines(&format, "NULL,\"NULL\"\r\n\\N,\\Nx");
        assert_eq!(found, [vec![None, some("NULL")], vec![None, some("Nx")]]);
    }
}
