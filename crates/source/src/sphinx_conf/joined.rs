//! `sql_joined_field`: fields of a mysql source from separate queries.
//!
//! ```text
//! value := name "from" from
//! from  := "query" ";" query                        gives pairs: a document's number and a text
//!        | "ranged-query" ";" query ";" query       the first with $start and $end, the second gives their ends
//! ```
//! The texts of a document are joined in the order in which they arrive.

use std::collections::HashMap;

use super::{
    columns::{Column, Kind, document_number},
    pairs::Pairs,
    range::Pace,
};
use crate::{Error, Result, files::MAX_RECORD_BYTES, mysql::connection::Connection};

/// The most bytes of all joined texts of a source, which are in memory while the documents are read.
const MAX_BYTES: usize = 1 << 30;
/// The approximate memory of a document's entry without its texts.
const ENTRY_BYTES: usize = 64;

/// A field and its queries.
pub(super) struct Joined {
    pub column: Column,
    query: String,
    /// The query for the range of ids, if the field is read in ranges.
    ends: Option<String>,
}

/// The texts of a field by document id.
pub(super) type Texts = HashMap<u64, Vec<u8>>;

impl Joined {
    /// Parses a value of `sql_joined_field`.
    ///
    /// # Errors
    /// A message for invalid values and for payloads.
    pub fn of_value(value: &str) -> std::result::Result<Self, String> {
        let (declared, queries) = value.split_once(';').unwrap_or((value, ""));
        let queries = queries.trim();
        let refuse = || {
            format!("sql_joined_field: '{value}' is not like 'tags from query; SELECT id, tag …'")
        };
        let words: Vec<&str> = declared.split_whitespace().collect();
        let [name, from, source] = words.as_slice() else { return Err(refuse()) };
        if !from.eq_ignore_ascii_case("from") || queries.is_empty() {
            return Err(refuse());
        }
        let column = Column::new(name, Kind::Field);
        match source.to_ascii_lowercase().as_str() {
            "query" => Ok(Self { column, query: queries.to_owned(), ends: None }),
            "ranged-query" => {
                let (query, ends) = queries.split_once(';').ok_or_else(refuse)?;
                if !(query.contains("$start") && query.contains("$end")) {
                    return Err("sql_joined_field: its query needs $start and $end".to_owned());
                }
                let ends = Some(ends.trim().to_owned()).filter(|ends| !ends.is_empty());
                let ends = Some(ends.ok_or_else(refuse)?);
                Ok(Self { column, query: query.to_owned(), ends })
            }
            "payload-query" => {
                Err("sql_joined_field: payloads are not kept: give the texts by query".to_owned())
            }
            _ => Err(refuse()),
        }
    }
}

/// Runs the queries of all fields.
pub(super) fn read(
    source: &str,
    fields: &[Joined],
    pace: Pace,
    connection: &mut Connection,
) -> Result<Vec<Texts>> {
    let (mut bytes, mut all) = (0, Vec::with_capacity(fields.len()));
    for field in fields {
        let mut texts = Texts::new();
        let pairs = Pairs {
            source,
            key: "sql_joined_field",
            column: &field.column.name,
            value: "a text",
            query: &field.query,
            ends: field.ends.as_deref(),
        };
        pairs.each(pace, connection, &mut |cells| {
            bytes += add(&mut texts, cells);
            match bytes > MAX_BYTES {
                true => Err(Error::format(
                    source,
                    format!("sql_joined_field: its queries give more than {MAX_BYTES} bytes"),
                )),
                false => Ok(()),
            }
        })?;
        if let Some((document, text)) = texts.iter().find(|(_, text)| text.len() > MAX_RECORD_BYTES)
        {
            let message = format!(
                "document {document}: its texts of '{}' have {} bytes: a document has {MAX_RECORD_BYTES} at most",
                field.column.name,
                text.len()
            );
            return Err(Error::format(source, message));
        }
        all.push(texts);
    }
    Ok(all)
}

/// Adds a row; returns the additional bytes.
fn add(found: &mut Texts, cells: &[Vec<u8>]) -> usize {
    let [document, text] = cells else { return 0 };
    let Some(document) = document_number(document) else { return 0 };
    let is_new = !found.contains_key(&document);
    let texts = found.entry(document).or_default();
    let before = texts.len();
    if !texts.is_empty() {
        texts.push(b' ');
    }
    texts.extend_from_slice(text);
    texts.len() - before + if is_new { ENTRY_BYTES } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_name_a_field_and_its_query() {
        let field = Joined::of_value("Tags FROM query; SELECT id, tag FROM t ORDER BY 1").unwrap();
        assert_eq!((field.column.name.as_str(), field.column.kind), ("tags", Kind::Field));
        assert_eq!((field.query.as_str(), field.ends), ("SELECT id, tag FROM t ORDER BY 1", None));
        let ranged = "t from ranged-query; SELECT a WHERE a>=$start AND a<=$end; SELECT 1, 9";
        let field = Joined::of_value(ranged).unwrap();
        assert_eq!(field.ends.as_deref(), Some("SELECT 1, 9"));
        for wrong in [
            "",
            "tags",
            "tags from query",
            "tags of query; SELECT 1",
            "tags from field; SELECT 1",
            "tags from payload-query; SELECT 1, 'a', 2",
            "t from ranged-query; SELECT 1; SELECT 2",
            "t from ranged-query; SELECT $start, $end",
        ] {
            let why = Joined::of_value(wrong).err();
            assert!(why.is_some_and(|why| why.starts_with("sql_joined_field: ")), "{wrong}");
        }
    }

    #[test]
    fn texts_of_a_document_are_joined() {
        let mut found = Texts::new();
        let mut bytes = 0;
        for (document, text) in [("7", "red"), ("8", "blue"), ("7", "green sea"), ("x", "no")] {
            bytes += add(&mut found, &[document.as_bytes().to_vec(), text.as_bytes().to_vec()]);
        }
        let expected = Texts::from([(7, b"red green sea".to_vec()), (8, b"blue".to_vec())]);
        assert_eq!((found, bytes), (expected, 17 + 2 * ENTRY_BYTES));
    }
}
