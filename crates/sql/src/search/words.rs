//! Conditions in plain words, for EXPLAIN.

use remora_engine::{Comparison, Filter, Literal, Piece, PieceMatch, TextQuery};

/// The most parts of a condition that are described.
const MAX_PARTS: usize = 8;

/// Describes which rows a condition on texts and columns keeps, and what finds them.
pub(crate) fn selection(text: Option<&TextQuery>, filter: Option<&Filter>) -> String {
    let text = text.map(|query| format!("the text index finds {}", text_words(query)));
    let filter =
        filter.map(|filter| format!("columns are tested in the segments: {}", test(filter)));
    match (text, filter) {
        (None, None) => "every row is read".to_owned(),
        (Some(text), None) => text,
        (None, Some(filter)) => filter,
        (Some(text), Some(filter)) => format!("{text}; {filter}"),
    }
}

fn text_words(query: &TextQuery) -> String {
    match query {
        TextQuery::Term(text) => format!("'{text}'"),
        TextQuery::Piece(piece) => piece_words(piece),
        TextQuery::Keywords(query) => {
            format!("what the query '{}' matches by keywords", query.text)
        }
        TextQuery::And(parts) => joined(parts, " and ", text_words),
        TextQuery::Or(parts) => joined(parts, " or ", text_words),
        TextQuery::Not(part) => format!("not {}", text_words(part)),
    }
}

fn piece_words(piece: &Piece) -> String {
    let text = &piece.text;
    match piece.matching {
        PieceMatch::Substring if piece.letters.is_some() => {
            format!("'{text}' anywhere, letters compared by the column's collation")
        }
        PieceMatch::Substring => format!("'{text}' anywhere"),
        PieceMatch::Words => format!("the word '{text}'"),
        PieceMatch::WordPrefix => format!("words that begin with '{text}'"),
        PieceMatch::Near(apart) => format!("the words of '{text}' within {apart}"),
    }
}

fn test(filter: &Filter) -> String {
    match filter {
        Filter::Compare { column, comparison, literal } => {
            format!("{column} {} {}", sign(*comparison), constant(literal))
        }
        Filter::In(column, literals) => format!("{column} in {} values", literals.len()),
        Filter::Between(column, low, high) => {
            format!("{column} from {} to {}", constant(low), constant(high))
        }
        Filter::KeyIn(column, _, keys) => match keys.len() {
            1 => format!("{column} equal by its collation"),
            count => format!("{column} one of {count} by its collation"),
        },
        Filter::KeyWithin(column, ..) => format!("{column} within bounds by its collation"),
        Filter::Begins(column, _, text) => format!("{column} begins with {text:?}"),
        Filter::Path(column, names, _) => format!("{column}.{} by its values", names.join(".")),
        Filter::PathsTogether(column, paths, _) => {
            let paths: Vec<String> = paths.iter().map(|names| names.join(".")).collect();
            format!("{column}.({}) by their values", paths.join(", "))
        }
        Filter::PathTexts(column, _, text) => format!("texts of {column} hold {text:?}"),
        Filter::PathMayHold(column, _, text) => format!("texts of {column} may hold {text:?}"),
        Filter::Rows(_) => "chosen rows".to_owned(),
        Filter::IsNull(column) => format!("{column} is NULL"),
        Filter::IsNotNull(column) => format!("{column} is not NULL"),
        Filter::And(parts) => joined(parts, " and ", test),
        Filter::Or(parts) => joined(parts, " or ", test),
        Filter::Prefix(part) => format!("{} by its prefix", test(part)),
        Filter::Not(part) => format!("not {}", test(part)),
    }
}

fn joined<T>(parts: &[T], word: &str, shown: impl Fn(&T) -> String) -> String {
    let mut shown: Vec<String> = parts.iter().take(MAX_PARTS).map(shown).collect();
    if parts.len() > MAX_PARTS {
        shown.push(format!("{} more", parts.len() - MAX_PARTS));
    }
    format!("({})", shown.join(word))
}

fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
    }
}

fn constant(literal: &Literal) -> String {
    match literal {
        Literal::Text(text) => format!("'{text}'"),
        Literal::Value(value) => value.to_string(),
    }
}
