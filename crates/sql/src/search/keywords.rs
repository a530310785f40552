//! MATCH('query'): what it asks the engine for.

use std::sync::Arc;

use remora_engine::{KeywordQuery, TextQuery};
use remora_mysql::ErrorCode;
use remora_words::{WordsError, query, rank::Ranker};

use crate::{Error, Result, catalog::SqlTable};

/// What the mode of such a MATCH begins with; its options follow, one a line.
pub(crate) const KEYWORDS_MODE: &str = "KEYWORDS";

/// The option, last of all, by which each row that is found weighs 1.
pub(crate) const KEYWORDS_HELD: &str = "#held=1";

/// The options that change nothing here: answers are whole, exact and made of the numbers of the whole table.
const HARMLESS: [&str; 9] = [
    "agent_query_timeout",
    "boolean_simplify",
    "comment",
    "global_idf",
    "local_df",
    "max_matches",
    "retry_count",
    "retry_delay",
    "sort_method",
];

/// The query of a MATCH in the mode [`KEYWORDS_MODE`]; `None` in any other.
///
/// # Errors
/// 1064 in Sphinx's words if the query or an option is not understood; 1191 if the table declares no words.
pub(super) fn keywords(table: &SqlTable, mode: &str, text: &str) -> Result<Option<TextQuery>> {
    let Some(options) = mode.strip_prefix(KEYWORDS_MODE) else { return Ok(None) };
    let schema = &table.schema;
    let Some(words) = &schema.words else {
        let message = format!(
            "Table '{}' has no words to search: ALTER TABLE … MORPHOLOGY='none' declares them",
            schema.name
        );
        return Err(Error::new(ErrorCode::NoFulltextIndex, message));
    };
    let mut asked = KeywordQuery { text: text.to_owned(), ..KeywordQuery::default() };
    for option in options.lines().filter(|line| !line.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        set(&mut asked, &schema.name, name, value)?;
    }
    let analyzer = words.analyzer().map_err(|error| crate::error::from_engine(&error))?;
    let name = |&place: &usize| schema.columns.get(place).map(|column| column.name.clone());
    let fields: Vec<String> = words.columns.iter().filter_map(name).collect();
    match query::parse(text, &analyzer, &fields) {
        Ok(_) => Ok(Some(TextQuery::Keywords(Arc::new(asked)))),
        Err(WordsError::Query(message)) => Err(refused(&schema.name, &message)),
        Err(error) => Err(refused(&schema.name, &error.to_string())),
    }
}

fn set(asked: &mut KeywordQuery, table: &str, name: &str, value: &str) -> Result<()> {
    let bad = || {
        let message = format!("unknown option '{name}' (or bad argument type)");
        Error::new(ErrorCode::ParseError, message)
    };
    match name {
        "ranker" => {
            let unknown = || refused(table, &format!("unknown ranker '{value}'"));
            asked.ranker = Ranker::by_name(value).ok_or_else(unknown)?;
        }
        "#held" => (asked.ranker, asked.table_weight) = (Ranker::None, None),
        "field_weights" => asked.field_weights = pairs(value).ok_or_else(bad)?,
        "index_weights" => {
            let weights = pairs(value).ok_or_else(bad)?;
            let short = table.rsplit('.').next().unwrap_or(table);
            let mine = weights.into_iter().filter(|(name, _)| name.eq_ignore_ascii_case(short));
            asked.table_weight = mine.map(|(_, weight)| weight).next_back();
        }
        "idf" => {
            for part in value.split(',').map(str::trim) {
                match part {
                    "plain" => asked.idf.is_plain = true,
                    "normalized" => asked.idf.is_plain = false,
                    "tfidf_normalized" => asked.idf.is_divided = true,
                    "tfidf_unnormalized" => asked.idf.is_divided = false,
                    _ => return Err(bad()),
                }
            }
        }
        name if HARMLESS.contains(&name) => {}
        _ => return Err(bad()),
    }
    Ok(())
}

/// `title=10,body=3`.
fn pairs(value: &str) -> Option<Vec<(String, i32)>> {
    let pair = |part: &str| {
        let (name, number) = part.split_once('=')?;
        Some((name.trim().to_owned(), number.trim().parse().ok()?))
    };
    value.split(',').map(pair).collect()
}

/// 1064, as Sphinx says it.
fn refused(table: &str, message: &str) -> Error {
    let short = table.rsplit('.').next().unwrap_or(table);
    Error::new(ErrorCode::ParseError, format!("table {short}: {message}"))
}
