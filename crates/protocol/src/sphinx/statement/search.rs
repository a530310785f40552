//! Converts a query to a SELECT.
//!
//! Without groups, an outer order and conditions on the weight it is one level:
//!
//! ```sql
//! SELECT key, WEIGHT(), values FROM t WHERE MATCH('…') AND … ORDER BY … LIMIT … OPTION …
//! ```
//!
//! Otherwise SELECTs are nested. The innermost one (`base`) gives names to all values that outer ones need. Around it
//! stand the conditions on the weight, then the groups: window functions number the rows of each group and compute its
//! aggregates, and the first row represents the group.

use super::{
    ColumnKind, Result, TableShape,
    expression::expression,
    filter::{Condition, conditions},
    group,
    lex::Tokens,
    names::{Names, Term},
    options,
    order::{order, segment},
    quote,
    select::{Item, Shown, select},
};
use crate::sphinx::{AttributeKind, Query, SortMode};

/// The statements of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Returns the rows: key, weight, then a value for each output.
    pub rows: String,
    /// Returns the number of rows or groups.
    pub count: String,
    /// The attributes of the reply.
    pub outputs: Vec<Output>,
    /// Whether the query has a MATCH, whose words SHOW META reports after `rows`.
    pub has_words: bool,
}

/// An attribute of the reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The name of the attribute.
    pub name: String,
    /// The type of its values.
    pub kind: AttributeKind,
}

/// The statements of a query.
///
/// # Errors
/// A sentence that names what is unknown or has no equivalent.
pub fn search(query: &Query<'_>, shape: &TableShape) -> Result<Statement> {
    if let Some(name) = query.overrides.first() {
        let why = format!("an override of attribute '{name}' is not answered: update its rows");
        return Err(shape.refuse(why));
    }
    if query.is_idf_global {
        return Err(shape.refuse("global_idf is not answered: weights are those of the table"));
    }
    let mut names = Names::of(query, shape)?;
    let mut items = select(&query.select, &mut names)?;
    if query.sort == SortMode::Expression {
        let mut tokens = Tokens::new(&query.sort_clause)?;
        // It is sent as a number with a point, whatever it is.
        let term = expression(&mut tokens, &names)?.operand();
        names.sort_expression = Some(Term { kind: ColumnKind::Double, ..term });
        if !tokens.is_end() {
            return Err(tokens.unexpected());
        }
    }
    let is_grouped =
        !query.group.column.is_empty() || items.iter().any(|item| item.shown.is_of_group());
    add_computed(query, &names, is_grouped, &mut items);
    let conditions = conditions(query, &names)?;
    let (late, early): (Vec<_>, Vec<_>) =
        conditions.into_iter().partition(|condition| condition.term.has_weight);
    let is_nested = is_grouped || query.outer.is_some() || !late.is_empty();
    let mut building = Building { query, names: &names, is_nested, base: Vec::new() };
    let source = building.source(&early);
    let (rows, count) = match is_nested {
        false => (building.plain(&items, &source)?, format!("SELECT COUNT(*){source}")),
        true => building.nested(&items, &source, &late, is_grouped)?,
    };
    let has_words = options::words(query).is_some();
    let options = if has_words { options::options(query, shape)? } else { String::new() };
    let common = if is_grouped { Some(group::common(&query.group, &names)?) } else { None };
    let kind = |item: &Item| output_kind(&item.shown, common.as_ref());
    let outputs = items.iter().map(|item| Output { name: item.name.clone(), kind: kind(item) });
    Ok(Statement {
        rows: format!("{rows}{options}"),
        // OPTION of a statement that shows no weights would say nothing.
        count: if is_nested { format!("{count}{options}") } else { count },
        outputs: outputs.collect(),
        has_words,
    })
}

/// Adds the attributes that Sphinx computes and returns without being asked: `@geodist`, `@expr`, `@groupby` and so on.
fn add_computed(query: &Query<'_>, names: &Names<'_>, is_grouped: bool, items: &mut Vec<Item>) {
    let mut add = |name: &str, shown: Shown| {
        if items.iter().all(|item| item.name != name) {
            items.push(Item { name: name.to_owned(), shown });
        }
    };
    for (name, term) in [("@geodist", &names.distance), ("@expr", &names.sort_expression)] {
        if let Some(term) = term {
            add(name, Shown::Value(term.clone()));
        }
    }
    if is_grouped {
        add("@groupby", Shown::Group);
        add("@count", Shown::Count);
        if !query.group.distinct.is_empty() {
            add("@distinct", Shown::Distinct);
        }
    }
}

fn output_kind(shown: &Shown, common: Option<&Term>) -> AttributeKind {
    match shown {
        Shown::Value(term) => term.kind.attribute(),
        Shown::Aggregate("AVG", _) => AttributeKind::Float,
        Shown::Aggregate("SUM", term) => match term.kind {
            ColumnKind::Float | ColumnKind::Double => AttributeKind::Float,
            _ => AttributeKind::BigInt,
        },
        Shown::Aggregate(_, term) => term.kind.attribute(),
        Shown::Count | Shown::Distinct => AttributeKind::Number,
        Shown::Group => match common.map(|term| term.kind.attribute()) {
            Some(kind @ (AttributeKind::BigInt | AttributeKind::Text)) => kind,
            _ => AttributeKind::Number,
        },
    }
}

struct Building<'b, 'a> {
    query: &'b Query<'a>,
    names: &'b Names<'b>,
    is_nested: bool,
    /// The values of the innermost SELECT that outer ones use.
    base: Vec<String>,
}

impl Building<'_, '_> {
    /// FROM and WHERE of the innermost SELECT.
    fn source(&self, conditions: &[Condition]) -> String {
        let words = options::words(self.query);
        let words = words.map(|words| format!("MATCH({})", quote::text(&words)));
        let others = conditions.iter().map(|condition| condition.of(&condition.term.sql));
        let all: Vec<String> = words.into_iter().chain(others).collect();
        let table = self.names.shape.quoted();
        match &*all {
            [] => format!(" FROM {table}"),
            _ => format!(" FROM {table} WHERE {}", all.join(" AND ")),
        }
    }

    /// The SQL of a value where rows are sorted. If SELECTs are nested, this is a name that the innermost one gives it.
    fn place(&mut self, term: Term) -> String {
        if !self.is_nested {
            return term.sql;
        }
        let known = self.base.iter().position(|sql| *sql == term.sql);
        let place = known.unwrap_or_else(|| {
            self.base.push(term.sql);
            self.base.len() - 1
        });
        format!("`c{place}`")
    }

    fn plain(&mut self, items: &[Item], source: &str) -> Result<String> {
        let values = items.iter().filter_map(|item| match &item.shown {
            Shown::Value(term) => Some(format!(", {}", term.sql)),
            _ => None,
        });
        let values: String = values.collect();
        let (key, order) = (self.names.key().sql, self.row_order()?.join(", "));
        let limit = self.limit();
        Ok(format!("SELECT {key}, WEIGHT(){values}{source} ORDER BY {order}{limit}"))
    }

    fn limit(&self) -> String {
        let Query { offset, limit, .. } = *self.query;
        format!(" LIMIT {offset}, {}", limit.min(self.query.most_rows().saturating_sub(offset)))
    }

    /// The order of rows. It ends with the key.
    fn row_order(&mut self) -> Result<Vec<String>> {
        let clause = self.query.sort_clause.trim();
        let mut values = match self.query.sort {
            SortMode::Relevance => Vec::new(),
            SortMode::AttributeDescending => vec![format!("{} DESC", self.attribute(clause)?)],
            SortMode::AttributeAscending => vec![format!("{} ASC", self.attribute(clause)?)],
            SortMode::TimeSegments => {
                let term = segment(self.attribute_term(clause)?);
                vec![format!("{} ASC", self.place(term))]
            }
            SortMode::Extended => self.order_by(clause)?,
            SortMode::Expression => {
                let term = self.names.sort_expression.clone();
                let place = term.map(|term| self.place(term));
                place.into_iter().map(|value| format!("{value} DESC")).collect()
            }
        };
        if !matches!(self.query.sort, SortMode::Extended | SortMode::Expression) {
            let weight = self.place(Term::weight());
            values.push(format!("{weight} DESC"));
        }
        let key = self.place(self.names.key());
        values.push(format!("{key} ASC"));
        Ok(values)
    }

    fn attribute_term(&self, name: &str) -> Result<Term> {
        let term = self.names.find(name).filter(|_| !name.starts_with("@w"));
        let shape = self.names.shape;
        let term =
            term.ok_or_else(|| shape.refuse(format!("sort-by attribute '{name}' not found")))?;
        match term.kind.is_set() {
            true => Err(shape.refuse("order by MVA is undefined")),
            false => Ok(term),
        }
    }

    fn attribute(&mut self, name: &str) -> Result<String> {
        let term = self.attribute_term(name)?.ordered();
        Ok(self.place(term))
    }

    fn order_by(&mut self, clause: &str) -> Result<Vec<String>> {
        let names = self.names;
        order(clause, names, |name| Some(self.place(names.find(name)?.ordered())))
    }

    fn nested(
        &mut self,
        items: &[Item],
        source: &str,
        late: &[Condition],
        is_grouped: bool,
    ) -> Result<(String, String)> {
        let late: Vec<String> = late
            .iter()
            .map(|condition| condition.of(&self.place(condition.term.clone())))
            .collect();
        let rows = self.row_order()?;
        let (group, order) = match is_grouped {
            true => {
                let group = self.group(items, &rows)?;
                let order = self.group_order()?;
                (Some(group), order)
            }
            false => (None, rows),
        };
        let outer = match &self.query.outer {
            Some(outer) if !outer.order.trim().is_empty() => self.outer_order(&outer.order)?,
            _ => Vec::new(),
        };
        let values = self.values(items);
        let mut body = self.base(group.as_ref(), source);
        if !late.is_empty() {
            body = format!("SELECT * FROM ({body}) AS `base` WHERE {}", late.join(" AND "));
        }
        if let Some(group) = &group {
            body = group.around(&body);
        }
        let count = format!("SELECT COUNT(*) FROM ({body}) AS `counted`");
        let (order, limit) = (order.join(", "), self.limit());
        let shown = format!("`@id`, `@weight`{values}");
        let rows = match &self.query.outer {
            None => format!("SELECT {shown} FROM ({body}) AS `kept` ORDER BY {order}{limit}"),
            Some(asked) => {
                let inner = format!("SELECT * FROM ({body}) AS `kept` ORDER BY {order}{limit}");
                let outer = if outer.is_empty() { order } else { outer.join(", ") };
                let most = if asked.limit == 0 { u32::MAX } else { asked.limit };
                format!(
                    "SELECT {shown} FROM ({inner}) AS `inner` ORDER BY {outer} LIMIT {}, {most}",
                    asked.offset
                )
            }
        };
        Ok((rows, count))
    }

    /// The innermost SELECT.
    fn base(&self, group: Option<&Grouping>, source: &str) -> String {
        let key = self.names.key().sql;
        let mut base = format!("SELECT {key} AS `@id`, WEIGHT() AS `@weight`");
        for (number, value) in self.base.iter().enumerate() {
            base.push_str(&format!(", {value} AS `c{number}`"));
        }
        if let Some(group) = group {
            base.push_str(&format!(", {} AS `@group`", group.common));
        }
        base + source
    }

    /// The values to return, after key and weight.
    fn values(&mut self, items: &[Item]) -> String {
        let mut aggregates = 0;
        let mut values = String::new();
        for item in items {
            let value = match &item.shown {
                Shown::Value(term) => self.place(term.clone()),
                Shown::Aggregate(..) => {
                    aggregates += 1;
                    format!("`a{}`", aggregates - 1)
                }
                Shown::Count => "`@count`".to_owned(),
                Shown::Group => "`@group`".to_owned(),
                Shown::Distinct => "`@distinct`".to_owned(),
            };
            values.push_str(", ");
            values.push_str(&value);
        }
        values
    }

    fn group(&mut self, items: &[Item], rows: &[String]) -> Result<Grouping> {
        const OVER: &str = "OVER (PARTITION BY `@group`";
        let common = group::common(&self.query.group, self.names)?.sql;
        let rows = rows.join(", ");
        let mut windows = format!("ROW_NUMBER() {OVER} ORDER BY {rows}) AS `@place`");
        windows.push_str(&format!(", COUNT(*) {OVER}) AS `@count`"));
        let mut aggregates = 0;
        for item in items {
            if let Shown::Aggregate(function, term) = &item.shown {
                let value = self.place(term.clone());
                windows.push_str(&format!(", {function}({value}) {OVER}) AS `a{aggregates}`"));
                aggregates += 1;
            }
        }
        let distinct = &*self.query.group.distinct;
        if distinct.is_empty() {
            return match items.iter().any(|item| item.shown == Shown::Distinct) {
                true => Err(self.names.shape.refuse("@distinct without a column to count")),
                false => Ok(Grouping { common, windows, has_distinct: false }),
            };
        }
        let missing = || format!("distinct-count attribute '{distinct}' not found");
        let term = self.names.find(distinct).ok_or_else(|| self.names.shape.refuse(missing()))?;
        if term.kind.is_set() {
            let why = format!("counts different numbers of the multi-value attribute '{distinct}'");
            return Err(self.names.shape.refuse(why));
        }
        let value = self.place(term.operand());
        windows.push_str(&format!(", DENSE_RANK() {OVER} ORDER BY {value}) AS `@rank`"));
        Ok(Grouping { common, windows, has_distinct: true })
    }

    /// The order of groups. It ends with the key of the row that represents a group.
    fn group_order(&mut self) -> Result<Vec<String>> {
        let (names, has_distinct) = (self.names, !self.query.group.distinct.is_empty());
        let clause = match self.query.group.order.trim() {
            "" => "@group desc",
            clause => clause,
        };
        let mut values = order(clause, names, |name| match &*name.to_lowercase() {
            "@group" | "@groupby" => Some("`@group`".to_owned()),
            "@count" => Some("`@count`".to_owned()),
            "@distinct" => has_distinct.then(|| "`@distinct`".to_owned()),
            _ => Some(self.place(names.find(name)?.ordered())),
        })?;
        values.push("`@id` ASC".to_owned());
        if names.find(&self.query.group.column).is_some_and(|term| term.kind.is_set()) {
            // One row may stand for the groups of several of its numbers.
            values.push("`@group` ASC".to_owned());
        }
        Ok(values)
    }

    fn outer_order(&mut self, clause: &str) -> Result<Vec<String>> {
        let mut values = self.order_by(clause)?;
        values.push("`@id` ASC".to_owned());
        Ok(values)
    }
}

/// The SQL that makes groups of rows.
struct Grouping {
    /// The value that the rows of a group have in common.
    common: String,
    /// Window functions: the number of each row in its group, and the aggregates.
    windows: String,
    /// Whether distinct values are counted.
    has_distinct: bool,
}

impl Grouping {
    /// The SELECT of one row for each group of the rows of `body`: the first of the group.
    fn around(&self, body: &str) -> String {
        let mut ranked = format!("SELECT *, {} FROM ({body}) AS `found`", self.windows);
        if self.has_distinct {
            ranked = format!(
                "SELECT *, MAX(`@rank`) OVER (PARTITION BY `@group`) AS `@distinct` \
                 FROM ({ranked}) AS `ranked`"
            );
        }
        format!("SELECT * FROM ({ranked}) AS `grouped` WHERE `@place` = 1")
    }
}
