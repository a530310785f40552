//! The names of result columns that are called as the text of their expression: `EXISTS(SELECT 1 FROM t WHERE id = 7)`.
//! The literals in that text may be parameters of a plan; each run names the columns after its own.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ops::{ControlFlow, Range},
};

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem, SetExpr, Visitor};

use super::super::{
    parameterize::{Constants, Literal, LiteralKind, ParameterizedText, TextPiece},
    shape::LiteralGroup,
};
use crate::{Column, parse::Visit};

/// The names that depend on literals, with the number of the column.
#[derive(Default)]
pub(super) struct Labels(Vec<(usize, Vec<LabelPart>)>);

enum LabelPart {
    Text(String),
    Literal(LiteralGroup),
}

/// The select items of a query that are called as their texts.
#[derive(Default)]
pub(super) struct UnnamedItems {
    /// The positions of the literals that names depend on and that must be part of a plan.
    pub fixed: BTreeSet<usize>,
    /// Whether such a literal is in a subquery of an item.
    pub has_fixed_queries: bool,
    /// The result columns whose names can follow their literals, with the positions of these: of the outermost SELECT.
    free: Vec<(ColumnPlace, BTreeSet<usize>)>,
}

/// The place of a column: from the end if it is behind a `*`.
#[derive(Clone, Copy)]
enum ColumnPlace {
    FromStart(usize),
    FromEnd(usize),
}

impl UnnamedItems {
    /// The items of a query, which is not planned yet.
    pub(super) fn of(query: &Query, parameterized: &ParameterizedText) -> Self {
        let mut items = Self::default();
        let mut outermost = None;
        if let SetExpr::Select(select) = query.body.as_ref() {
            items.free_of(select, parameterized);
            outermost = Some(select.as_ref());
        }
        let _ = query.visit(&mut FixedItems { outermost, items: &mut items });
        items
    }

    fn free_of(&mut self, select: &Select, parameterized: &ParameterizedText) {
        for (item, place) in outermost_items(select) {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let places = literals_in(expr);
            // A column that is a literal is called as its value.
            let is_free = !places.is_empty()
                && !matches!(expr, Expr::Value(_))
                && places.iter().all(|place| may_change(*place, parameterized));
            if let Some(place) = place.filter(|_| is_free) {
                self.free.push((place, places));
            }
        }
    }

    /// Whether an item of the outermost SELECT is one whose name follows its literals.
    fn is_free(&self, literals: &BTreeSet<usize>) -> bool {
        self.free.iter().any(|(_, free)| free == literals)
    }

    /// The names of the planned columns; `None` if one is not the text of its item, or may be referred to by it.
    pub(super) fn labels(
        &self,
        columns: &[Column],
        parameterized: &ParameterizedText,
        constants: &Constants<'_>,
    ) -> Option<Labels> {
        let label = |(place, literals): &(ColumnPlace, BTreeSet<usize>)| {
            let at = match *place {
                ColumnPlace::FromStart(at) => at,
                ColumnPlace::FromEnd(back) => columns.len().checked_sub(back)?,
            };
            let name = &columns.get(at)?.name;
            let quoted = ["`", name, "`"].concat();
            let mut windows = constants.text.windows(quoted.len());
            let is_referred_to = windows.any(|window| window == quoted.as_bytes());
            let parts = parts(name, literals, parameterized, constants)?;
            (!is_referred_to).then_some((at, parts))
        };
        self.free.iter().map(label).collect::<Option<_>>().map(Labels)
    }
}

/// The items of a SELECT with the places of their columns, as far as these are known.
fn outermost_items(select: &Select) -> impl Iterator<Item = (&SelectItem, Option<ColumnPlace>)> {
    let items = &select.projection;
    let is_one = |item: &SelectItem| {
        matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. })
    };
    let first = items.iter().position(|item| !is_one(item)).unwrap_or(items.len());
    let last = items.iter().rposition(|item| !is_one(item));
    items.iter().enumerate().map(move |(at, item)| {
        let place = match (at < first, last.is_none_or(|last| at > last)) {
            (true, _) => Some(ColumnPlace::FromStart(at)),
            (false, true) => Some(ColumnPlace::FromEnd(items.len() - at)),
            (false, false) => None,
        };
        (item, place)
    })
}

/// Whether the literal there is one whose text can be another one in a name: not a member of a list, nor a number whose
/// sign is no part of it.
fn may_change(place: usize, parameterized: &ParameterizedText) -> bool {
    let Some((literal, group)) = parameterized.literal_at(place) else {
        // It is a part of the text that all statements of the plan share.
        return true;
    };
    let is_alone = |piece: &TextPiece| matches!(piece, TextPiece::Literal(of) if *of == group);
    literal.kind != LiteralKind::Negative && parameterized.pieces.iter().any(is_alone)
}

fn literals_in(expr: &Expr) -> BTreeSet<usize> {
    let mut places = BTreeSet::new();
    let _ = expr.visit(&mut Places(&mut places));
    places
}

impl Labels {
    /// Whether the names can follow a statement's literals: the sign of a negative one is no part of it.
    pub(super) fn fit(&self, constants: &Constants<'_>) -> bool {
        let parts = self.0.iter().flat_map(|(_, parts)| parts);
        parts.into_iter().all(|part| match part {
            LabelPart::Text(_) => true,
            LabelPart::Literal(group) => match constants.group(*group) {
                [literal] => literal.kind != LiteralKind::Negative,
                _ => false,
            },
        })
    }

    /// The columns with the names for these literals.
    pub(super) fn named<'c>(
        &self,
        columns: &'c [Column],
        constants: &Constants<'_>,
    ) -> Cow<'c, [Column]> {
        if self.0.is_empty() {
            return Cow::Borrowed(columns);
        }
        let mut columns = columns.to_vec();
        for (at, parts) in &self.0 {
            if let Some(column) = columns.get_mut(*at) {
                column.name = parts.iter().map(|part| part.text(constants)).collect();
            }
        }
        Cow::Owned(columns)
    }
}

impl LabelPart {
    fn text<'t>(&'t self, constants: &Constants<'t>) -> Cow<'t, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Literal(group) => {
                let literal = constants.group(*group).first();
                let text = literal.and_then(|it| constants.text.get(text_of(it)));
                String::from_utf8_lossy(text.unwrap_or_default())
            }
        }
    }
}

/// Where the text of a literal is; that of a parameter is its mark.
fn text_of(literal: &Literal) -> Range<usize> {
    match literal.kind {
        LiteralKind::Parameter => literal.end.saturating_sub(1)..literal.end,
        _ => literal.start..literal.end,
    }
}

/// A name as texts and literals.
fn parts(
    name: &str,
    places: &BTreeSet<usize>,
    parameterized: &ParameterizedText,
    constants: &Constants<'_>,
) -> Option<Vec<LabelPart>> {
    let mut literals = Vec::new();
    for place in places {
        // What is no literal of a group is a part of the text.
        if let Some((literal, group)) = parameterized.literal_at(*place) {
            literals.push((text_of(literal), group));
        }
    }
    let Some((first, _)) = literals.first() else {
        return Some(vec![LabelPart::Text(name.to_owned())]);
    };
    let (of_first, place) = (constants.text.get(first.clone())?, first.start);
    let is_item =
        |start: &usize| constants.text.get(*start..*start + name.len()) == Some(name.as_bytes());
    let starts = name.as_bytes().windows(of_first.len()).enumerate();
    let starts = starts.filter(|(_, window)| *window == of_first);
    let mut starts = starts.filter_map(|(at, _)| place.checked_sub(at));
    let start = starts.find(is_item)?;
    let (mut parts, mut told) = (Vec::new(), 0);
    for (range, group) in literals {
        let (from, to) = (range.start.checked_sub(start)?, range.end.checked_sub(start)?);
        parts.push(LabelPart::Text(name.get(told..from)?.to_owned()));
        parts.push(LabelPart::Literal(group));
        told = to;
    }
    parts.push(LabelPart::Text(name.get(told..)?.to_owned()));
    Some(parts)
}

/// Collects the literals of the unnamed items of every SELECT, but for those whose names follow their literals.
struct FixedItems<'q, 'i> {
    outermost: Option<&'q Select>,
    items: &'i mut UnnamedItems,
}

impl Visitor for FixedItems<'_, '_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let is_outermost = self.outermost.is_some_and(|outermost| std::ptr::eq(outermost, select));
        for item in &select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let literals = literals_in(expr);
            if is_outermost && self.items.is_free(&literals) {
                continue;
            }
            let has_query = expr.visit(&mut AnyQuery).is_break();
            self.items.has_fixed_queries |= has_query && !literals.is_empty();
            self.items.fixed.extend(literals);
        }
        ControlFlow::Continue(())
    }
}

/// Collects the positions of literals.
struct Places<'p>(&'p mut BTreeSet<usize>);

impl Visitor for Places<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Ok(column) = usize::try_from(value.span.start.column)
        {
            self.0.extend(column.checked_sub(1));
        }
        ControlFlow::Continue(())
    }
}

/// Stops at any query.
struct AnyQuery;

impl Visitor for AnyQuery {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}
