//! Commands that write and export, which MygramDB does not have. They are administrative. A server in
//! MygramDB's dialect refuses them.
//!
//! ```text
//! write  = "PUT" table [ "FROM" source ] rows
//!        | "DELETE" table key { key }
//!        | "CREATE" "TABLE" table definition
//!        | "SCHEMA" table
//!        | "SOURCE" name
//!        | "IDS" collection count
//!        | "EXPORT" table [ options ]
//! table  = bare or quoted token
//! source = JSON array of two texts: a name, and the position stored with the rows
//! rows   = JSON object | JSON array of objects     ; applied whole or not at all
//! definition = JSON object                         ; as a schema file has it
//! options = JSON object
//! ```
//! Replies: `OK PUT <rows> <position>`, `OK DELETE <keys> <position>`, `OK CREATED <table>`,
//! `OK SCHEMA <definition>`, `OK SOURCE [<position>]`, `OK IDS <first>`, and that of [`super::export`].

use super::{LineError, token::Tokens};

/// The most ids that one request reserves.
const MAX_IDS: usize = 1_000_000;

/// A parsed command that writes or exports, or that writers need. JSON is not parsed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteCommand<'f> {
    /// `PUT`: inserts rows, or replaces those with the same keys.
    Put {
        /// The table.
        table: String,
        /// Whether a source precedes the rows.
        from: bool,
        /// The source and the rows, or only the rows, as JSON.
        json: &'f str,
    },
    /// `DELETE`: deletes rows.
    Delete {
        /// The table.
        table: String,
        /// Their keys as they were written.
        keys: Vec<String>,
    },
    /// `CREATE TABLE`
    Create {
        /// The table.
        table: String,
        /// Its definition.
        json: &'f str,
    },
    /// `SCHEMA`: returns a table's definition.
    Schema(String),
    /// `SOURCE`: returns the position that was last stored with rows from a source.
    Source(String),
    /// `IDS`: reserves consecutive ids of a collection.
    Ids {
        /// The collection.
        collection: String,
        /// How many.
        count: usize,
    },
    /// `EXPORT`: returns all rows of a table, or all documents of a collection.
    Export {
        /// The table or collection.
        table: String,
        /// The options as JSON; may be empty.
        json: &'f str,
    },
}

/// Parses the command; `None` if the frame is not one of these.
pub fn parse_write(frame: &[u8]) -> Option<Result<WriteCommand<'_>, LineError>> {
    let line = std::str::from_utf8(frame).ok()?.trim();
    let (verb, rest) = first_word(line);
    let is = |name: &str| verb.eq_ignore_ascii_case(name);
    if is("PUT") {
        Some(parse_put(rest))
    } else if is("CREATE") {
        Some(parse_create(rest))
    } else if is("DELETE") {
        Some(parse_delete(rest))
    } else if is("SCHEMA") {
        Some(parse_name(rest, "SCHEMA <table>").map(WriteCommand::Schema))
    } else if is("SOURCE") {
        Some(parse_name(rest, "SOURCE <name>").map(WriteCommand::Source))
    } else if is("IDS") {
        Some(parse_ids(rest))
    } else if is("EXPORT") {
        Some(parse_export(rest))
    } else {
        None
    }
}

/// The text before the first white space, and the text after it.
fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// The table's name, bare or quoted, and the text after it.
fn first_name(text: &str) -> Result<(String, &str), LineError> {
    let Some(quote @ ('"' | '\'')) = text.chars().next() else {
        let (name, rest) = first_word(text);
        return Ok((name.to_owned(), rest));
    };
    let mut is_escaped = false;
    let end = text.char_indices().skip(1).find(|&(_, char)| {
        let is_end = char == quote && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        is_end
    });
    let end = end.map_or(text.len(), |(at, _)| at + 1);
    let (name, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    Ok((parse_name(name, "a name in quotation marks")?, rest.trim_start()))
}

fn parse_put(rest: &str) -> Result<WriteCommand<'_>, LineError> {
    let (table, rest) = first_name(rest)?;
    let (word, behind) = first_word(rest);
    let from = word.eq_ignore_ascii_case("FROM");
    let json = if from { behind } else { rest };
    if !json.starts_with(['{', '[']) {
        return Err(usage("PUT <table> <JSON object, or array of them>"));
    }
    Ok(WriteCommand::Put { table, from, json })
}

fn parse_create(rest: &str) -> Result<WriteCommand<'_>, LineError> {
    let (word, rest) = first_word(rest);
    let (table, json) = first_name(rest)?;
    if !word.eq_ignore_ascii_case("TABLE") || !json.starts_with('{') {
        return Err(usage("CREATE TABLE <table> <definition as JSON>"));
    }
    Ok(WriteCommand::Create { table, json })
}

fn parse_delete(rest: &str) -> Result<WriteCommand<'static>, LineError> {
    let mut tokens = Tokens::cut(rest.as_bytes())?;
    let table = tokens.next().map(|token| token.text.clone().into_owned());
    let keys: Vec<String> =
        tokens.rest().iter().map(|token| token.text.clone().into_owned()).collect();
    match table {
        Some(table) if !keys.is_empty() => Ok(WriteCommand::Delete { table, keys }),
        _ => Err(usage("DELETE <table> <key> ...")),
    }
}

fn parse_ids(rest: &str) -> Result<WriteCommand<'static>, LineError> {
    let (collection, count) = first_name(rest)?;
    match count.trim().parse() {
        Ok(count @ 1..=MAX_IDS) => Ok(WriteCommand::Ids { collection, count }),
        _ => Err(usage("IDS <collection> <number of ids, up to a million>")),
    }
}

fn parse_export(rest: &str) -> Result<WriteCommand<'_>, LineError> {
    let (table, json) = first_name(rest)?;
    if table.is_empty() || !(json.is_empty() || json.starts_with('{')) {
        return Err(usage("EXPORT <table> [<options as JSON>]"));
    }
    Ok(WriteCommand::Export { table, json })
}

fn parse_name(rest: &str, form: &str) -> Result<String, LineError> {
    match Tokens::cut(rest.as_bytes())?.rest() {
        [token] => Ok(token.text.clone().into_owned()),
        _ => Err(usage(form)),
    }
}

fn usage(form: &str) -> LineError {
    LineError::syntax(format!("write it as: {form}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> WriteCommand<'_> {
        parse_write(line.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn writes_are_parsed() {
        assert_eq!(
            parsed("put t  {\"a\": 1}"),
            WriteCommand::Put { table: "t".into(), from: false, json: "{\"a\": 1}" }
        );
        assert_eq!(
            parsed(r#"PUT d.t FROM ["f","1"] [{"a":1}]"#),
            WriteCommand::Put { table: "d.t".into(), from: true, json: r#"["f","1"] [{"a":1}]"# }
        );
        assert_eq!(
            parsed("DELETE t 1 'a b' \"c\""),
            WriteCommand::Delete {
                table: "t".into(),
                keys: vec!["1".into(), "a b".into(), "c".into()]
            }
        );
        let created = WriteCommand::Create { table: "t".into(), json: "{}" };
        assert_eq!(parsed("create table t {}"), created);
        assert_eq!(parsed("SOURCE 'a b'"), WriteCommand::Source("a b".into()));
        assert_eq!(
            parsed("ids notes 20"),
            WriteCommand::Ids { collection: "notes".into(), count: 20 }
        );
        let whole = WriteCommand::Export { table: "t".into(), json: "" };
        assert_eq!(parsed("export t "), whole);
    }

    #[test]
    fn names_may_be_quoted() {
        let named = |name: &str, json| WriteCommand::Export { table: name.into(), json };
        assert_eq!(parsed(r#"EXPORT "my \"t\\" {"a":1}"#), named("my \"t\\", r#"{"a":1}"#));
        assert_eq!(parsed("EXPORT 'it\\'s'{}"), named("it's", "{}"));
        let put = WriteCommand::Put { table: "a b".into(), from: false, json: "[]" };
        assert_eq!(parsed("PUT 'a b' []"), put);
        assert!(parse_write(b"EXPORT 'a b").unwrap().is_err());
    }

    #[test]
    fn other_commands_are_ignored_and_wrong_forms_refused() {
        for other in ["SEARCH t put", "", "PUTS t {}"] {
            assert!(parse_write(other.as_bytes()).is_none(), "{other}");
        }
        for wrong in [
            "PUT",
            "PUT t",
            "PUT t 1",
            "DELETE t",
            "SCHEMA",
            "SOURCE a b",
            "CREATE t {}",
            "IDS t",
            "IDS t 0",
            "IDS t 1000001",
            "IDS t 1 2",
            "EXPORT",
            "EXPORT t x",
        ] {
            assert!(parse_write(wrong.as_bytes()).unwrap().is_err(), "{wrong}");
        }
    }
}
