//! Commands that write, which MygramDB does not have. They are administrative. A server in
//! MygramDB's dialect refuses them.
//!
//! ```text
//! write  = "PUT" table [ "FROM" source ] rows
//!        | "DELETE" table key { key }
//!        | "CREATE" "TABLE" table definition
//!        | "SCHEMA" table
//!        | "SOURCE" name
//! source = JSON array of two texts: a name, and the position stored with the rows
//! rows   = JSON object | JSON array of objects     ; applied whole or not at all
//! definition = JSON object                         ; as a schema file has it
//! ```
//! Replies: `OK PUT <rows> <position>`, `OK DELETE <keys> <position>`, `OK CREATED <table>`,
//! `OK SCHEMA <definition>`, `OK SOURCE [<position>]`.

use super::{LineError, token::Tokens};

/// A parsed command that writes, or that writers need. JSON is not parsed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteCommand<'f> {
    /// `PUT`: inserts rows, or replaces those with the same keys.
    Put {
        /// The table.
        table: &'f str,
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
        table: &'f str,
        /// Its definition.
        json: &'f str,
    },
    /// `SCHEMA`: returns a table's definition.
    Schema(String),
    /// `SOURCE`: returns the position that was last stored with rows from a source.
    Source(String),
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
    } else {
        None
    }
}

/// The text before the first white space, and the text after it.
fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    (word, rest.trim_start())
}

fn parse_put(rest: &str) -> Result<WriteCommand<'_>, LineError> {
    let (table, rest) = first_word(rest);
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
    let (table, json) = first_word(rest);
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
            WriteCommand::Put { table: "t", from: false, json: "{\"a\": 1}" }
        );
        assert_eq!(
            parsed(r#"PUT d.t FROM ["f","1"] [{"a":1}]"#),
            WriteCommand::Put { table: "d.t", from: true, json: r#"["f","1"] [{"a":1}]"# }
        );
        assert_eq!(
            parsed("DELETE t 1 'a b' \"c\""),
            WriteCommand::Delete {
                table: "t".into(),
                keys: vec!["1".into(), "a b".into(), "c".into()]
            }
        );
        assert_eq!(parsed("create table t {}"), WriteCommand::Create { table: "t", json: "{}" });
        assert_eq!(parsed("SOURCE 'a b'"), WriteCommand::Source("a b".into()));
    }

    #[test]
    fn other_commands_are_ignored_and_wrong_forms_refused() {
        for other in ["SEARCH t put", "", "PUTS t {}"] {
            assert!(parse_write(other.as_bytes()).is_none(), "{other}");
        }
        for wrong in ["PUT", "PUT t", "PUT t 1", "DELETE t", "SCHEMA", "SOURCE a b", "CREATE t {}"]
        {
            assert!(parse_write(wrong.as_bytes()).unwrap().is_err(), "{wrong}");
        }
    }
}
