//! `SELECT … FACET …`: how many of the rows that a SELECT finds have each value, a result set for each FACET.
//!
//! ```text
//! facet := "FACET" value ("," value)* ["BY" expr ("," expr)*] ["DISTINCT" expr]
//!          ["ORDER" "BY" part ("," part)*] ["LIMIT" [number ","] number]
//! value := expr ["AS" name]              part := (expr | "FACET" "(" ")" | "COUNT" "(" "*" ")") ["ASC" | "DESC"]
//! ```
//! Each FACET becomes a separate SELECT over the same FROM and WHERE, grouped, with the best row for each group.

use std::ops::Range;

use remora_mysql::TokenKind;

use super::Source;
use crate::Result;

/// Most FACETs of a SELECT.
const MAX_FACETS: usize = 32;

/// A SELECT and its FACETs.
pub(crate) struct Faceted {
    /// The SELECT without them.
    pub select: String,
    /// FROM and WHERE.
    from: String,
    /// OPTION.
    option: String,
    facets: Vec<Facet>,
}

/// One FACET, as texts.
struct Facet {
    values: Vec<(String, Option<String>)>,
    by: Vec<String>,
    distinct: Option<String>,
    order: Vec<(String, bool)>,
    limit: String,
}

/// Words that may follow the values of a FACET, and that end FROM and WHERE.
const CLAUSES: [&str; 5] = ["BY", "DISTINCT", "ORDER", "LIMIT", "FACET"];
const ENDS: [&str; 6] = ["GROUP", "HAVING", "ORDER", "LIMIT", "OPTION", "WITHIN"];
/// The function that returns a group's value.
const GROUP: &str = "GROUPBY()";
/// Words after which a word is a name.
const BEFORE_NAMES: [&str; 14] = [
    "SELECT", "AS", "BY", "WHERE", "AND", "OR", "NOT", "FROM", "JOIN", "ON", "HAVING", "IN",
    "LIKE", "DISTINCT",
];

/// The FACETs of a SELECT, if it has any.
pub(crate) fn faceted(source: &Source) -> Result<Option<Faceted>> {
    let depths = depths(source);
    let top = |at: usize, word: &str| depths.get(at) == Some(&0) && source.is_word(at, word);
    let count = source.tokens.len();
    let Some(from) = (0..count).find(|&at| top(at, "FROM")) else { return Ok(None) };
    let is_facet = |at: &usize| top(*at, "FACET") && begins(source, *at);
    let starts: Vec<usize> = (from + 2..count).filter(is_facet).collect();
    let Some(&first) = starts.first() else { return Ok(None) };
    if starts.len() > MAX_FACETS {
        return Err(source.syntax_error(starts[MAX_FACETS]));
    }
    // With UNION no SELECT is the one whose rows a FACET counts.
    let is_united = |at: &usize| ["UNION", "EXCEPT", "INTERSECT"].iter().any(|word| top(*at, word));
    if (from..first).any(|at| is_united(&at)) {
        return Err(source.syntax_error(first));
    }
    let end = (from..first).find(|&at| ENDS.iter().any(|word| top(at, word))).unwrap_or(first);
    let option = (end..first).rev().find(|&at| top(at, "OPTION")).unwrap_or(first);
    let ends = starts.iter().skip(1).copied().chain([count]);
    let facets = starts.iter().zip(ends);
    let facets = facets.map(|(&start, end)| {
        Facet::read(&NestedTokens { source, depths: &depths }, start + 1..end)
    });
    Ok(Some(Faceted {
        select: shown(source, 0..first),
        from: shown(source, from..end),
        option: shown(source, option..first),
        facets: facets.collect::<Result<_>>()?,
    }))
}

/// Whether this FACET begins a clause and is not a name.
fn begins(source: &Source, at: usize) -> bool {
    let is_name = BEFORE_NAMES.iter().any(|word| source.is_word(at - 1, word))
        || [",", ".", "="].iter().any(|mark| source.is(at - 1, mark));
    let has_value = source.tokens.get(at + 1).is_some_and(|next| {
        matches!(next.kind, TokenKind::Word | TokenKind::Quoted | TokenKind::Integer)
            || source.is(at + 1, "(")
    });
    let is_alias = ["WHERE", "JOIN", "ON", "LEFT", "INNER", "ORDER", "GROUP", "LIMIT", "OPTION"]
        .iter()
        .any(|word| source.is_word(at + 1, word));
    !is_name && has_value && !is_alias
}

/// The number of open parentheses at each token.
pub(super) fn depths(source: &Source) -> Vec<usize> {
    let mut depth = 0usize;
    let of = |at: usize| {
        if source.is(at, ")") {
            depth = depth.saturating_sub(1);
        }
        let here = depth;
        if source.is(at, "(") {
            depth += 1;
        }
        here
    };
    (0..source.tokens.len()).map(of).collect()
}

fn shown(source: &Source, range: Range<usize>) -> String {
    let Some([first, .., last]) = source.tokens.get(range.clone()) else {
        let only = source.tokens.get(range).and_then(|tokens| tokens.first());
        let bytes = only.map_or(&[][..], |token| source.bytes(token));
        return String::from_utf8_lossy(bytes).into_owned();
    };
    let bytes = source.text.get(first.start..last.end).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

/// The tokens of a statement and the depth of each.
struct NestedTokens<'s> {
    source: &'s Source,
    depths: &'s [usize],
}

impl NestedTokens<'_> {
    fn is_top(&self, at: usize, word: &str) -> bool {
        self.depths.get(at) == Some(&0) && self.source.is_word(at, word)
    }

    /// Where the next clause of a FACET begins.
    fn end_of_clause(&self, range: Range<usize>) -> usize {
        let end = range.end;
        let mut places = range;
        places.find(|&at| CLAUSES.iter().any(|word| self.is_top(at, word))).unwrap_or(end)
    }

    /// The parts between commas; none is empty.
    fn parts(&self, range: Range<usize>) -> Result<Vec<Range<usize>>> {
        let mut parts = Vec::new();
        let mut start = range.start;
        for at in range.clone() {
            if self.depths.get(at) == Some(&0) && self.source.is(at, ",") {
                parts.push(start..at);
                start = at + 1;
            }
        }
        parts.push(start..range.end);
        match parts.iter().find(|part| part.is_empty()) {
            Some(empty) => Err(self.source.syntax_error(empty.start)),
            None => Ok(parts),
        }
    }
}

impl Facet {
    fn read(place: &NestedTokens<'_>, range: Range<usize>) -> Result<Self> {
        let source = place.source;
        let mut at = range.start;
        let clause = |at: &mut usize| {
            let part = *at..place.end_of_clause(*at..range.end);
            *at = part.end;
            part
        };
        let values = place.parts(clause(&mut at))?.into_iter().map(|part| value(source, part));
        let mut facet = Self {
            values: values.collect(),
            by: Vec::new(),
            distinct: None,
            order: Vec::new(),
            limit: "20".to_owned(),
        };
        if place.is_top(at, "BY") && at < range.end {
            at += 1;
            let parts = place.parts(clause(&mut at))?.into_iter();
            facet.by = parts.map(|part| shown(source, part)).collect();
        }
        if place.is_top(at, "DISTINCT") && at < range.end {
            at += 1;
            let part = clause(&mut at);
            if part.is_empty() {
                return Err(source.syntax_error(at));
            }
            facet.distinct = Some(shown(source, part));
        }
        if place.is_top(at, "ORDER") && at < range.end {
            if !source.is_word(at + 1, "BY") {
                return Err(source.syntax_error(at + 1));
            }
            at += 2;
            for part in place.parts(clause_of_order(place, &mut at, range.end))? {
                facet.order.push(facet.order_part(source, part)?);
            }
        }
        if place.is_top(at, "LIMIT") && at < range.end {
            let part = at + 1..range.end;
            let numbers = place.parts(part.clone())?;
            let is_number = |part: &Range<usize>| {
                let kind = source.tokens.get(part.start).map(|token| token.kind);
                part.len() == 1 && kind == Some(TokenKind::Integer)
            };
            if numbers.len() > 2 || !numbers.iter().all(is_number) {
                return Err(source.syntax_error(part.start));
            }
            facet.limit = shown(source, part.clone());
            at = part.end;
        }
        if at < range.end { Err(source.syntax_error(at)) } else { Ok(facet) }
    }

    /// The GROUP BY expressions.
    fn groups(&self) -> Vec<String> {
        match self.by.is_empty() {
            true => self.values.iter().map(|(value, _)| value.clone()).collect(),
            false => self.by.clone(),
        }
    }

    fn order_part(&self, source: &Source, mut part: Range<usize>) -> Result<(String, bool)> {
        let last = part.end - 1;
        let is_descending = source.is_word(last, "DESC");
        if is_descending || source.is_word(last, "ASC") {
            part.end = last;
        }
        if part.is_empty() {
            return Err(source.syntax_error(part.start));
        }
        let is_facet = source.is_word(part.start, "FACET") && source.is(part.start + 1, "(");
        let text = match (is_facet, self.groups().as_slice()) {
            // For a multi-value attribute it is one number, not the set.
            (true, [_]) => GROUP.to_owned(),
            (true, groups) => groups.join(", "),
            (false, _) => shown(source, part),
        };
        Ok((text, is_descending))
    }
}

/// ORDER BY's parts, of which FACET() may be one.
fn clause_of_order(place: &NestedTokens<'_>, at: &mut usize, end: usize) -> Range<usize> {
    let start = *at;
    let stops = |at: &usize| place.is_top(*at, "LIMIT");
    *at = (start..end).find(stops).unwrap_or(end);
    start..*at
}

fn value(source: &Source, part: Range<usize>) -> (String, Option<String>) {
    match part.len() > 2 && source.is_word(part.end - 2, "AS") {
        true => (shown(source, part.start..part.end - 2), source.plain(part.end - 1)),
        false => (shown(source, part), None),
    }
}

/// The name of the column that a value is, with its table or without.
fn column_of(value: &str) -> Option<&str> {
    let mut parts = value.split('.');
    let last = parts.next_back()?;
    (parts.all(is_name) && is_name(last)).then(|| last.trim_matches('`'))
}

/// Whether a part of a value is a name.
fn is_name(value: &str) -> bool {
    let bare = value.strip_prefix('`').and_then(|value| value.strip_suffix('`')).unwrap_or(value);
    !bare.is_empty()
        && !bare.starts_with(|first: char| first.is_ascii_digit())
        && bare.chars().all(|each| each.is_alphanumeric() || each == '_')
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl Faceted {
    /// The SELECTs of the FACETs.
    pub(crate) fn selects(&self) -> Vec<String> {
        self.facets.iter().map(|facet| self.select_of(facet)).collect()
    }

    fn select_of(&self, facet: &Facet) -> String {
        let is_of_one = facet.by.is_empty() && facet.values.len() == 1;
        let item = |(value, alias): &(String, Option<String>)| match (alias, column_of(value)) {
            (None, Some(column)) if is_of_one => format!("{GROUP} AS {}", quoted(column)),
            (None, _) => value.clone(),
            (Some(alias), _) => format!("{value} AS {}", quoted(alias)),
        };
        let mut items: Vec<String> = facet.values.iter().map(item).collect();
        items.push("COUNT(*) AS `count(*)`".to_owned());
        if let Some(distinct) = &facet.distinct {
            let name = quoted(&format!("count(distinct {distinct})"));
            items.push(format!("COUNT(DISTINCT {distinct}) AS {name}"));
        }
        let part = |(text, is_descending): &(String, bool)| {
            let direction = if *is_descending { " DESC" } else { "" };
            format!("{text}{direction}")
        };
        let order = match facet.order.is_empty() {
            true => String::new(),
            false => {
                let parts: Vec<String> = facet.order.iter().map(part).collect();
                format!("ORDER BY {}", parts.join(", "))
            }
        };
        let (items, groups) = (items.join(", "), facet.groups().join(", "));
        let (from, limit, option) = (&self.from, &facet.limit, &self.option);
        format!("SELECT {items} {from} GROUP 1 BY {groups} {order} LIMIT {limit} {option}")
    }
}
