//! MATCH('query') as a keyword query of the engine.

use std::sync::Arc;

use remora_engine::{ColumnType, FactorsForm, KeywordQuery, Schema, TextQuery, united_names};
use remora_mysql::ErrorCode;
use remora_words::{
    WordsError,
    rank::{AttributeKind, Attributes, Expression, Ranker},
    settings::WordExpansion,
};

use crate::{
    Error, Result,
    catalog::SqlTable,
    parse::{UNKNOWN_RANKER, check_option},
};

/// The prefix of the mode of such a MATCH. Options follow, one a line.
pub(crate) const KEYWORDS_MODE: &str = "KEYWORDS";

/// The last option: every row found has weight 1.
pub(crate) const KEYWORDS_HELD: &str = "#held=1";

/// The last option: each row's ranking factors are returned, in the form that follows it.
pub(crate) const KEYWORDS_FACTORS: &str = "#factors";

/// The query of a MATCH whose mode begins with [`KEYWORDS_MODE`]; `None` for other modes.
///
/// # Errors
/// 1064 with Sphinx's message if the query or an option is malformed; 1191 if the table has no
/// keyword index.
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
        set(&mut asked, schema, name, value)?;
    }
    let analyzer = words.analyzer().map_err(|error| crate::error::from_engine(&error))?;
    let name = |&place: &usize| schema.columns.get(place).map(|column| column.name.clone());
    let fields: Vec<String> = words.columns.iter().filter_map(name).collect();
    match asked.parse(&analyzer, &fields) {
        Ok(_) => Ok(Some(TextQuery::Keywords(Arc::new(asked)))),
        Err(WordsError::Query(message)) => Err(refused(&schema.name, &message)),
        Err(error) => Err(refused(&schema.name, &error.to_string())),
    }
}

fn set(asked: &mut KeywordQuery, schema: &Schema, name: &str, value: &str) -> Result<()> {
    let table = schema.name.as_str();
    let bad = || {
        let message = format!("unknown option '{name}' (or bad argument type)");
        Error::new(ErrorCode::ParseError, message)
    };
    match name {
        "ranker" => {
            let value = if value == UNKNOWN_RANKER { "expr(1)" } else { value };
            asked.ranker = ranker(schema, value)?;
        }
        KEYWORDS_FACTORS if !matches!(asked.ranker, Ranker::Expression(_)) => {
            let message = "PACKEDFACTORS() tells what a ranking expression weighs by: \
                           say OPTION ranker=expr('…')";
            return Err(refused(table, message));
        }
        KEYWORDS_FACTORS => {
            let is = |form: &str| value.split(',').any(|given| given == form);
            let (is_json, is_without_closeness) = (is("json=1"), is("no_atc=1"));
            asked.factors = Some(FactorsForm { is_json, is_without_closeness });
        }
        "#held" => {
            (asked.ranker, asked.table_weight) = (Ranker::None, None);
            asked.part_weights.clear();
        }
        "field_weights" => asked.field_weights = pairs(value).ok_or_else(bad)?,
        "index_weights" => {
            let weights = pairs(value).ok_or_else(bad)?;
            index_weights(asked, schema, &weights)?;
        }
        "idf" => {
            for part in value.split(',').map(str::trim) {
                match part {
                    "plain" => asked.idf.is_plain = true,
                    "normalized" => asked.idf.is_plain = false,
                    "tfidf_normalized" => asked.idf.is_divided = true,
                    "tfidf_unnormalized" => asked.idf.is_divided = false,
                    part => {
                        let message = format!(
                            "unknown flag {part} in idf={value} (known values are plain, normalized, \
                             tfidf_normalized, tfidf_unnormalized)"
                        );
                        return Err(Error::new(ErrorCode::ParseError, message));
                    }
                }
            }
        }
        // Options of the whole statement are checked here and read elsewhere.
        _ => {
            check_option(name, value)?;
            read_as(asked, name, value);
        }
    }
    Ok(())
}

/// Applies an option of how the text is read; its value was checked.
fn read_as(asked: &mut KeywordQuery, name: &str, value: &str) {
    let options = &mut asked.options;
    match name {
        "boolean_mode" => options.is_any = value.eq_ignore_ascii_case("or"),
        "expand_keywords" => options.expand_keywords = WordExpansion::parse(value).ok(),
        "expansion_limit" => {
            let limit = value.parse::<u64>().unwrap_or(0);
            options.expansion_limit = limit.try_into().unwrap_or(u32::MAX);
        }
        "morphology" => options.is_unstemmed = true,
        "not_terms_only_allowed" => options.takes_only_not = value != "0",
        _ => {}
    }
}

/// Applies `index_weights`: the weight of a table's rows, or of each of several tables read as one.
fn index_weights(
    asked: &mut KeywordQuery,
    schema: &Schema,
    weights: &[(String, i32)],
) -> Result<()> {
    let short_of = |stored: &str| stored.rsplit('.').next().unwrap_or(stored).to_ascii_lowercase();
    let weight_of = |stored: &str| {
        let short = &short_of(stored);
        let given = weights.iter().filter(|(name, _)| name.eq_ignore_ascii_case(short));
        given.map(|(_, weight)| *weight).next_back()
    };
    let parts = schema.parts();
    let named: Vec<&str> = united_names(&schema.name).collect();
    match named.as_slice() {
        [table] => asked.table_weight = weight_of(table),
        listed => {
            // In a list of tables, the parts of a distributed table cannot be told apart here.
            let is_weighed = |name: &&&str| {
                let is_part = parts.iter().any(|part| part == **name);
                !is_part && weight_of(name).is_some_and(|weight| weight != 1)
            };
            if let Some(name) = listed.iter().find(is_weighed) {
                let short = name.rsplit('.').next().unwrap_or(name);
                let what = format!(
                    "OPTION index_weights=({short}=…) of a distributed table in a list of tables: name its parts"
                );
                return Err(Error::unsupported(what));
            }
        }
    }
    // A weight under the table's own name is the table's, even if a part in another database has
    // the same name.
    let own = named.first().filter(|_| named.len() == 1).map(|table| short_of(table));
    let others = parts.iter().filter(|part| own.as_ref() != Some(&short_of(part)));
    let of_part = |part: &String| Some((part.clone(), weight_of(part)?));
    asked.part_weights = others.filter_map(of_part).collect();
    Ok(())
}

/// The ranker of this name, or one that computes an expression.
pub(crate) fn ranker(schema: &Schema, value: &str) -> Result<Ranker> {
    let refused = |message: &str| refused(&schema.name, message);
    if let Some(ranker) = Ranker::by_name(value) {
        return Ok(ranker);
    }
    let (name, expression) = match value.split_once('(') {
        Some((name, expression)) => (name, expression.strip_suffix(')').unwrap_or(expression)),
        None => (value, ""),
    };
    let is_export = name.eq_ignore_ascii_case("export");
    if !is_export && !name.eq_ignore_ascii_case("expr") {
        return Err(refused(&format!("unknown ranker '{value}'")));
    }
    if expression.is_empty() {
        let example = format!("use OPTION ranker={name}('1+2') for example");
        return Err(refused(&format!("missing ranker expression ({example})")));
    }
    match Expression::parse(expression, &Numbers(schema)) {
        Ok(expression) if is_export => Ok(Ranker::Export(Arc::new(expression))),
        Ok(expression) => Ok(Ranker::Expression(Arc::new(expression))),
        Err(WordsError::Expression(message) | WordsError::Query(message)) => Err(refused(&message)),
        Err(error) => Err(refused(&error.to_string())),
    }
}

/// The columns available to a ranking expression, by position. `id` is the key unless a column has
/// that name.
struct Numbers<'s>(&'s Schema);

impl Attributes for Numbers<'_> {
    fn find(&self, name: &str) -> Option<(usize, AttributeKind)> {
        let schema = self.0;
        let named = schema.columns.iter().position(|it| it.name.eq_ignore_ascii_case(name));
        let key = match schema.primary_key[..] {
            [key] if name == "id" => Some(key),
            _ => None,
        };
        let place = named.or(key)?;
        let column = schema.columns.get(place).filter(|column| column.indexed)?;
        let kind = match column.kind {
            ColumnType::Int(64) | ColumnType::Uint(64) => AttributeKind::BigInteger,
            ColumnType::Int(_) | ColumnType::Uint(_) | ColumnType::Bool => AttributeKind::Integer,
            ColumnType::Float | ColumnType::Double => AttributeKind::Real,
            _ => return None,
        };
        Some((place, kind))
    }
}

/// Parses `title=10,body=3`.
fn pairs(value: &str) -> Option<Vec<(String, i32)>> {
    let pair = |part: &str| {
        let (name, number) = part.split_once('=')?;
        Some((name.trim().to_owned(), number.trim().parse().ok()?))
    };
    value.split(',').map(pair).collect()
}

/// 1064 with Sphinx's message.
fn refused(table: &str, message: &str) -> Error {
    let last = |name| str::rsplit(name, '.').next().unwrap_or(name);
    let short: Vec<&str> = united_names(table).map(last).collect();
    Error::new(ErrorCode::ParseError, format!("table {}: {message}", short.join(",")))
}
