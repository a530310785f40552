//! Converts filters and ranges of keys to conditions in SQL.

use super::{
    ColumnKind, Result,
    names::{Names, Term},
    quote,
};
use crate::sphinx::{Filter, FilterTest, Query};

/// A condition on rows.
pub struct Condition {
    /// The value that is tested.
    pub term: Term,
    /// The test, as SQL to put behind the value, such as `IN (1, 2)`.
    test: String,
    /// Whether the condition also holds for NULL.
    holds_of_null: bool,
}

impl Condition {
    /// The condition in SQL. `value` is the SQL of the tested value.
    pub fn of(&self, value: &str) -> String {
        match self.holds_of_null {
            true => format!("({value} {} OR {value} IS NULL)", self.test),
            false => format!("{value} {}", self.test),
        }
    }
}

/// The conditions of a query: its range of keys, then its filters.
///
/// # Errors
/// A sentence for unknown attributes and for what cannot be asked of one.
pub fn conditions(query: &Query<'_>, names: &Names<'_>) -> Result<Vec<Condition>> {
    let mut conditions = Vec::new();
    if let Some(test) = keys(query) {
        conditions.push(Condition { term: names.key(), test, holds_of_null: false });
    }
    for filter in &query.filters {
        conditions.push(condition(filter, names)?);
    }
    Ok(conditions)
}

fn keys(query: &Query<'_>) -> Option<String> {
    match (query.min_id, query.max_id) {
        (0, 0) => None,
        (least, 0) => Some(format!(">= {least}")),
        (0, most) => Some(format!("<= {most}")),
        (least, most) => Some(format!("BETWEEN {least} AND {most}")),
    }
}

fn condition(filter: &Filter<'_>, names: &Names<'_>) -> Result<Condition> {
    let term = attribute(&filter.attribute, names)?;
    let not = if filter.is_excluding { "NOT " } else { "" };
    if let FilterTest::Null(is_null) = filter.test {
        let not = if is_null == filter.is_excluding { "NOT " } else { "" };
        return Ok(Condition { term, test: format!("IS {not}NULL"), holds_of_null: false });
    }
    let (test, holds_of_zero) = test(filter, &term, names)?;
    let Some(test) = test else {
        // No values: it holds of no row, even if it is to be false.
        return Ok(Condition { term, test: "IS NULL AND FALSE".to_owned(), holds_of_null: false });
    };
    // NULL is 0 or an empty text to Sphinx.
    let holds_of_null = term.is_nullable && holds_of_zero != filter.is_excluding;
    Ok(Condition { term, test: format!("{not}{test}"), holds_of_null })
}

/// The value of the attribute that a filter names.
fn attribute(name: &str, names: &Names<'_>) -> Result<Term> {
    let lower = name.to_lowercase();
    if ["@count", "@group", "@groupby", "@distinct"].contains(&&*lower) {
        return Err(names.shape.refuse(format!("unsupported filter column '{lower}'")));
    }
    let column = names.shape.column(name);
    let is_field = column.is_some_and(|column| names.shape.is_field(column));
    let is_alias = names.aliases.iter().any(|(alias, _)| *alias == lower);
    let term = names.find(name).filter(|_| is_alias || !is_field);
    term.ok_or_else(|| names.shape.refuse(format!("no such filter attribute '{name}'")))
}

/// The test of a filter in SQL, `None` if no value satisfies it; and whether 0 or an empty text satisfies it.
fn test(filter: &Filter<'_>, term: &Term, names: &Names<'_>) -> Result<(Option<String>, bool)> {
    let name = &filter.attribute;
    let refuse = |test: &str| {
        let column = column_name(term.kind);
        Err(names.shape.refuse(format!("unsupported filter type '{test}' on {column} column")))
    };
    Ok(match &filter.test {
        FilterTest::Values(_) if is_text(term.kind) => return refuse("values"),
        FilterTest::Range(..) if is_text(term.kind) => return refuse("range"),
        FilterTest::FloatRange(..) if !is_real(term.kind) => return refuse("floatrange"),
        FilterTest::Text(_) | FilterTest::Texts(_) if !is_text(term.kind) => {
            return refuse("string");
        }
        FilterTest::FloatRange(least, most) if least.is_nan() || most.is_nan() => {
            return Err(names.shape.refuse(format!("a bound of '{name}' is no number")));
        }
        FilterTest::Values(values) => {
            // Keys have no sign.
            let shown = |value: &i64| match term.is_key {
                true => (*value as u64).to_string(),
                false => value.to_string(),
            };
            let list: Vec<String> = values.iter().map(shown).collect();
            (listed(&list), values.contains(&0))
        }
        FilterTest::Range(least, most) if term.is_key => {
            let (least, most) = (*least as u64, *most as u64);
            (Some(format!("BETWEEN {least} AND {most}")), false)
        }
        FilterTest::Range(least, most) => {
            (Some(format!("BETWEEN {least} AND {most}")), (*least..=*most).contains(&0))
        }
        FilterTest::FloatRange(least, most) => {
            let (a, b) = (bound(term.kind, *least), bound(term.kind, *most));
            (Some(format!("BETWEEN {a} AND {b}")), (*least..=*most).contains(&0.0))
        }
        FilterTest::Text(text) => (listed(&[quote::text(text)]), text.is_empty()),
        FilterTest::Texts(texts) => {
            let list: Vec<String> = texts.iter().map(|text| quote::text(text)).collect();
            (listed(&list), texts.iter().any(|text| text.is_empty()))
        }
        FilterTest::Null(_) => (None, false),
    })
}

fn listed(values: &[String]) -> Option<String> {
    (!values.is_empty()).then(|| format!("IN ({})", values.join(", ")))
}

fn is_text(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Text | ColumnKind::Json)
}

fn is_real(kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Float | ColumnKind::Double)
}

fn column_name(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Text => "string",
        ColumnKind::Json => "json",
        ColumnKind::Float | ColumnKind::Double => "float",
        ColumnKind::Set | ColumnKind::WideSet => "MVA",
        ColumnKind::Number | ColumnKind::BigInt | ColumnKind::Bool | ColumnKind::Time => "int",
    }
}

/// A bound in the precision of the column: 0.1 as a float of 32 bits differs from 0.1 as one of 64.
fn bound(kind: ColumnKind, bound: f32) -> String {
    let finite = bound.clamp(f32::MIN, f32::MAX);
    match kind {
        ColumnKind::Float => quote::number(f64::from(finite)),
        _ => format!("{finite:e}"),
    }
}
