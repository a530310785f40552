//! `sql_attr_multi`: multi-value attributes of a mysql source.
//!
//! ```text
//! value := ("uint" | "timestamp" | "bigint") name "from" from
//! from  := "field"                                  a column of sql_query, numbers with anything between them
//!        | "query" ";" query                        gives pairs: a document's number and one of its numbers
//!        | "ranged-query" ";" query ";" query       the first with $start and $end, the second gives their ends
//! ```

use std::collections::HashMap;

use super::{
    columns::{Column, Kind},
    pairs::Pairs,
    range::Pace,
};
use crate::{Error, Result, mysql::connection::Connection};

/// The most pairs of all queries of a source, which are in memory while the documents are read.
const MAX_PAIRS: usize = 1 << 26;

/// A multi-value attribute and the source of its numbers.
pub(super) struct MultiValueAttribute {
    pub column: Column,
    from: NumberSource,
}

enum NumberSource {
    /// A column of `sql_query`.
    Field,
    /// A separate query.
    Query(String),
    /// A query that runs in ranges; the second query returns their bounds.
    Ranged(String, String),
}

impl MultiValueAttribute {
    /// Parses a value of `sql_attr_multi`.
    ///
    /// # Errors
    /// A message for invalid values.
    pub fn of_value(value: &str) -> std::result::Result<Self, String> {
        let (declared, queries) = value.split_once(';').unwrap_or((value, ""));
        let queries = queries.trim();
        let refuse = || {
            format!(
                "sql_attr_multi: '{value}' is not like 'uint tags from field' or 'uint tags from query; SELECT …'"
            )
        };
        let words: Vec<String> = declared.split_whitespace().map(str::to_ascii_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let [kind, name, "from", source] = words.as_slice() else { return Err(refuse()) };
        let kind = match *kind {
            "uint" | "timestamp" => Kind::Multi,
            "bigint" => Kind::Multi64,
            _ => return Err(refuse()),
        };
        let from = match (*source, queries.split_once(';')) {
            ("field", None) if queries.is_empty() => NumberSource::Field,
            ("query", _) if !queries.is_empty() => NumberSource::Query(queries.to_owned()),
            ("ranged-query", Some((query, ends))) if !ends.trim().is_empty() => {
                if !(query.contains("$start") && query.contains("$end")) {
                    return Err("sql_attr_multi: its query needs $start and $end".to_owned());
                }
                NumberSource::Ranged(query.to_owned(), ends.trim().to_owned())
            }
            _ => return Err(refuse()),
        };
        Ok(Self { column: Column::new(name, kind), from })
    }

    /// Whether `sql_query` returns its numbers.
    pub fn is_of_field(&self) -> bool {
        matches!(self.from, NumberSource::Field)
    }
}

/// The numbers of an attribute by document id, as texts separated by commas.
pub(super) type Sets = HashMap<u64, Vec<u8>>;

/// Runs the queries of these attributes.
pub(super) fn read(
    source: &str,
    sets: &[MultiValueAttribute],
    pace: Pace,
    connection: &mut Connection,
) -> Result<Vec<Sets>> {
    let mut pairs = 0;
    let mut all = Vec::new();
    for set in sets {
        let (query, ends) = match &set.from {
            NumberSource::Field => continue,
            NumberSource::Query(query) => (query, None),
            NumberSource::Ranged(query, ends) => (query, Some(ends.as_str())),
        };
        let mut found = Sets::new();
        let (key, column, value) = ("sql_attr_multi", set.column.name.as_str(), "a number");
        Pairs { source, key, column, value, query, ends }.each(pace, connection, &mut |cells| {
            pairs += 1;
            add(&mut found, cells);
            match pairs > MAX_PAIRS {
                true => Err(Error::format(
                    source,
                    format!("sql_attr_multi: its queries give more than {MAX_PAIRS} rows"),
                )),
                false => Ok(()),
            }
        })?;
        all.push(found);
    }
    Ok(all)
}

fn add(found: &mut Sets, cells: &[Vec<u8>]) {
    let [document, number] = cells else { return };
    let Some(document) = super::columns::document_number(document) else { return };
    let numbers = found.entry(document).or_default();
    if !numbers.is_empty() {
        numbers.push(b',');
    }
    numbers.extend_from_slice(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(value: &str) -> std::result::Result<MultiValueAttribute, String> {
        MultiValueAttribute::of_value(value)
    }

    #[test]
    fn multi_value_declarations_name_their_source() {
        let field = set("uint Tags from field").unwrap();
        assert_eq!((field.column.name.as_str(), field.column.kind), ("tags", Kind::Multi));
        assert!(field.is_of_field());
        let query = set("bigint t from query; SELECT id, tag FROM tags WHERE a <> ';'").unwrap();
        assert_eq!(query.column.kind, Kind::Multi64);
        let expected = "SELECT id, tag FROM tags WHERE a <> ';'";
        assert!(matches!(query.from, NumberSource::Query(query) if query == expected));
        let ranged =
            "uint t from ranged-query; SELECT a, b WHERE a >= $start AND a <= $end; SELECT 1, 9";
        assert!(
            matches!(set(ranged).unwrap().from, NumberSource::Ranged(_, ends) if ends == "SELECT 1, 9")
        );
        for wrong in [
            "",
            "tags",
            "float t from field",
            "uint t of field",
            "uint t from query",
            "uint t from field; SELECT 1",
            "uint t from ranged-query; SELECT $start",
            "uint t from ranged-query; SELECT 1; SELECT 2",
        ] {
            assert!(
                set(wrong).err().is_some_and(|why| why.starts_with("sql_attr_multi: ")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn numbers_of_a_document_are_grouped() {
        let mut found = Sets::new();
        for (document, number) in [("7", "3"), ("8", "1"), ("7", "-5"), ("x", "1"), ("0", "1")] {
            add(&mut found, &[document.as_bytes().to_vec(), number.as_bytes().to_vec()]);
        }
        let expected = Sets::from([(7, b"3,-5".to_vec()), (8, b"1".to_vec())]);
        assert_eq!(found, expected);
    }
}
