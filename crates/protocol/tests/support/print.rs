//! Prints commands as request lines in a canonical form: every name, text and value is quoted.

use remora_engine::{
    Comparison, Filter, Highlight, Literal, SearchRequest, Selection, SortBy, SortKey, TextQuery,
};
use remora_protocol::line::{Command, Search, quote};

/// The command as a request that parses to it.
pub fn print(command: &Command) -> String {
    match command {
        Command::Search(search) => print_search(search),
        Command::Count(selection) => format!("COUNT {}", print_selection(selection, "")),
        Command::Facet(facet) => {
            let selection = print_selection(&facet.selection, &quote(&facet.column));
            format!("FACET {selection} LIMIT {} OFFSET {}", facet.limit, facet.offset)
        }
        Command::Get(get) => {
            let fields = print_fields(&get.fields);
            format!("GET {} {}{fields}", quote(&get.table), quote(&get.key))
        }
        other => format!("{other:?}"),
    }
}

fn print_search(search: &Search) -> String {
    let SearchRequest { selection, sort, limit, offset, after, fields, highlight } =
        &search.request;
    let mut text = format!("SEARCH {}", print_selection(selection, ""));
    if !sort.is_empty() {
        let keys: Vec<String> = sort.iter().map(print_sort_key).collect();
        text += &format!(" SORT {}", keys.join(", "));
    }
    if search.limit_given {
        text += &format!(" LIMIT {limit}");
    }
    if search.offset_given {
        text += &format!(" OFFSET {offset}");
    }
    if let Some(Highlight { open, close, snippet_chars, max_fragments }) = highlight {
        let tags = format!("{} {}", quote(open), quote(close));
        let sizes = format!("SNIPPET_LEN {snippet_chars} MAX_FRAGMENTS {max_fragments}");
        text += &format!(" HIGHLIGHT TAG {tags} {sizes}");
    }
    if let Some(distance) = selection.fuzzy {
        text += &format!(" FUZZY {distance}");
    }
    text += &print_fields(fields);
    match after {
        Some(after) => text + &format!(" AFTER {}", quote(after)),
        None if search.cursor => text + " CURSOR",
        None => text,
    }
}

fn print_fields(fields: &[String]) -> String {
    match fields {
        [] => String::new(),
        names => {
            let names: Vec<String> = names.iter().map(|name| quote(name)).collect();
            format!(" FIELDS {}", names.join(", "))
        }
    }
}

fn print_selection(selection: &Selection, facet: &str) -> String {
    let mut parts = vec![quote(&selection.table), facet.to_owned()];
    parts.extend(selection.text.as_ref().map(print_text));
    parts.extend(
        selection.filter.as_ref().map(|filter| format!("FILTER ({})", print_filter(filter))),
    );
    parts.retain(|part| !part.is_empty());
    parts.join(" ")
}

fn print_text(text: &TextQuery) -> String {
    match text {
        TextQuery::Term(term) => quote(term),
        TextQuery::Piece(piece) => unreachable!("no line asks for the piece {piece:?}"),
        TextQuery::Keywords(query) => unreachable!("no line asks for the keywords {query:?}"),
        TextQuery::Not(inner) => format!("NOT {}", print_text(inner)),
        TextQuery::And(all) => grouped(all.iter().map(print_text), " AND "),
        TextQuery::Or(all) => grouped(all.iter().map(print_text), " OR "),
    }
}

fn print_filter(filter: &Filter) -> String {
    let value = |literal: &Literal| match literal {
        Literal::Text(text) => quote(text),
        Literal::Value(value) => quote(&value.to_string()),
    };
    match filter {
        Filter::Compare { column, comparison, literal } => {
            format!("{} {} {}", quote(column), symbol(*comparison), value(literal))
        }
        Filter::In(column, values) => {
            format!("{} IN {}", quote(column), grouped(values.iter().map(value), ", "))
        }
        Filter::Between(column, low, high) => {
            format!("{} BETWEEN {} AND {}", quote(column), value(low), value(high))
        }
        Filter::KeyIn(..)
        | Filter::Prefix(_)
        | Filter::KeyWithin(..)
        | Filter::Begins(..)
        | Filter::Path(..)
        | Filter::PathsTogether(..)
        | Filter::PathTexts(..)
        | Filter::PathMayHold(..)
        | Filter::Rows(_) => {
            unreachable!("no line asks for keys of texts, or for paths")
        }
        Filter::IsNull(column) => format!("{} IS NULL", quote(column)),
        Filter::IsNotNull(column) => format!("{} IS NOT NULL", quote(column)),
        Filter::Not(inner) => format!("NOT {}", print_filter(inner)),
        Filter::And(all) => grouped(all.iter().map(print_filter), " AND "),
        Filter::Or(all) => grouped(all.iter().map(print_filter), " OR "),
    }
}

fn grouped(parts: impl Iterator<Item = String>, between: &str) -> String {
    format!("({})", parts.collect::<Vec<_>>().join(between))
}

fn print_sort_key(key: &SortKey) -> String {
    let direction = if key.descending { "DESC" } else { "ASC" };
    match &key.by {
        SortBy::Key => direction.to_owned(),
        SortBy::Score => format!("_score {direction}"),
        SortBy::Column(name) => format!("{} {direction}", quote(name)),
        SortBy::TextKey(..) => unreachable!("no line asks for keys of texts"),
    }
}

fn symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
    }
}
