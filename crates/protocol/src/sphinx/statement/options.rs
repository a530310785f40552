//! Converts the text of a query to a query of MATCH and its OPTION clause.

use super::{Result, TableShape, quote};
use crate::sphinx::{MatchMode, Query, Ranker};

/// The characters that are operators of the query language: those that EscapeString of the client libraries escapes.
const SPECIAL: &str = "<\\()|-!@~\"&/^$=";

/// The text for MATCH, in the query language; `None` if all rows are asked for.
pub fn words(query: &Query<'_>) -> Option<String> {
    let text = &*query.text;
    let words = match query.mode {
        MatchMode::All => escaped(text),
        MatchMode::Any => format!("\"{}\"/1", escaped(text)),
        MatchMode::Phrase => format!("\"{}\"", escaped(text)),
        MatchMode::Boolean | MatchMode::Extended => text.to_owned(),
        MatchMode::FullScan => return None,
    };
    (!words.is_empty()).then_some(words)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if SPECIAL.contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// The OPTION clause of a query with MATCH: ranker, weights of fields and indexes, IDF.
///
/// # Errors
/// A sentence if a weight is out of range.
pub fn options(query: &Query<'_>, shape: &TableShape) -> Result<String> {
    let mut options = vec![format!("ranker={}", ranker(query))];
    let fields = weights(field_weights(query, shape), "field", shape)?;
    options.extend(fields.map(|list| format!("field_weights=({list})")));
    // Of the table, and of each of several as one; others mean nothing, and what is no name of an index is none of them.
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|each| each.is_alphanumeric() || each == '_')
    };
    let index = query.index_weights.iter().map(|(name, weight)| (&**name, *weight));
    let index = weights(index.filter(|(name, _)| is_name(name)).collect(), "index", shape)?;
    options.extend(index.map(|list| format!("index_weights=({list})")));
    let idf = [
        query.is_idf_plain.then_some("plain"),
        query.is_idf_undivided.then_some("tfidf_unnormalized"),
    ];
    let idf: Vec<&str> = idf.into_iter().flatten().collect();
    if !idf.is_empty() {
        options.push(format!("idf='{}'", idf.join(",")));
    }
    Ok(format!(" OPTION {}", options.join(", ")))
}

fn ranker(query: &Query<'_>) -> String {
    let name = match (query.mode, &query.ranker) {
        (MatchMode::All | MatchMode::Phrase, _) => "proximity",
        (MatchMode::Any, _) => "matchany",
        (MatchMode::Boolean | MatchMode::FullScan, _) => "none",
        (MatchMode::Extended, ranker) => match ranker {
            Ranker::ProximityBm25 => "proximity_bm25",
            Ranker::Bm25 => "bm25",
            Ranker::None => "none",
            Ranker::WordCount => "wordcount",
            Ranker::Proximity => "proximity",
            Ranker::MatchAny => "matchany",
            Ranker::FieldMask => "fieldmask",
            Ranker::Sph04 => "sph04",
            Ranker::Expression(by) => return format!("expr({})", quote::text(by)),
            Ranker::Export(by) => return format!("export({})", quote::text(by)),
        },
    };
    name.to_owned()
}

/// The weights of fields by name, or by position if there are none by name. Names that are no fields are ignored.
fn field_weights<'q>(query: &'q Query<'_>, shape: &'q TableShape) -> Vec<(&'q str, u32)> {
    if query.field_weights.is_empty() {
        let fields = shape.fields.iter().map(String::as_str);
        return fields.zip(query.weights.iter().copied()).collect();
    }
    let field = |name: &str| shape.fields.iter().find(|field| field.eq_ignore_ascii_case(name));
    let named = query.field_weights.iter();
    named.filter_map(|(name, weight)| Some((field(name)?.as_str(), *weight))).collect()
}

fn weights(weights: Vec<(&str, u32)>, what: &str, shape: &TableShape) -> Result<Option<String>> {
    let mut list = Vec::with_capacity(weights.len());
    for (name, weight) in weights {
        if i32::try_from(weight).is_err() {
            return Err(shape.refuse(format!("{what} weight out of bounds ({name}={weight})")));
        }
        list.push(format!("{}={weight}", quote::name(name)));
    }
    Ok((!list.is_empty()).then(|| list.join(", ")))
}
