//! Keys over expressions, as queries find them: an expression that is said again is answered by the hidden column
//! that has what it gives.

use std::{ops::ControlFlow, sync::Arc};

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, DataType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, ObjectName, Query, SelectItem, SetExpr, Value, Visit, VisitMut, Visitor,
    VisitorMut,
};
use remora_mysql::{Collation, LexMode};

use super::{PartOf, SqlTable};
use crate::{
    SqlType,
    parse::{Source, Statement, tokens},
};

/// Functions that give the same to every session for the same arguments.
#[rustfmt::skip]
const FIXED: &[&str] = &[
    "abs", "ascii", "ceil", "ceiling", "char_length", "character_length", "coalesce", "concat",
    "crc32", "date", "datediff", "day", "dayofmonth", "dayofweek", "dayofyear", "floor",
    "hex", "hour", "if", "ifnull", "isnull", "json_contains", "json_extract", "json_length",
    "json_type", "json_unquote", "json_value", "last_day", "lcase", "left", "length", "lower",
    "ltrim", "md5", "microsecond", "mid", "minute", "mod", "month", "octet_length", "quarter",
    "replace", "reverse", "right", "round", "rtrim", "second", "sha1", "sha2", "sign", "substr",
    "substring", "substring_index", "to_days", "trim", "truncate", "ucase", "unhex", "upper",
    "weekday", "year",
];

/// An expression that a key is over.
#[derive(Clone, Debug)]
pub(crate) struct ExpressionKey {
    /// The expression, as [`plain_text`] has it.
    pub text: String,
    /// The place of the hidden column.
    pub position: usize,
    /// The collation that a session's texts must have for it to mean the same.
    collation: Option<Collation>,
}

impl ExpressionKey {
    /// Those of a table whose hidden columns the segments hold, and that mean the same to every session.
    pub(super) fn all(table: &SqlTable) -> Vec<Self> {
        let mut all = Vec::new();
        for key in &table.keys {
            for (nth, part) in key.parts.iter().enumerate() {
                if let PartOf::Expression(expression) = &part.of
                    && let Some(position) = table.key_part(key, nth)
                {
                    all.extend(Self::of(table, expression, position));
                }
            }
        }
        all
    }

    fn of(table: &SqlTable, expression: &str, position: usize) -> Option<Self> {
        let is_indexed = table.schema.columns.get(position)?.indexed;
        // What modes of SQL read differently.
        let is_plain = !expression.contains(['"', '\\']) && !expression.contains("||");
        if !is_indexed || !is_plain {
            return None;
        }
        let parsed = parsed(expression)?;
        let mut seeking = Seeking { table, follows_connection: false };
        if Visit::visit(&parsed, &mut seeking).is_break() {
            return None;
        }
        let kind = &table.columns.get(position)?.kind;
        let collation = (seeking.follows_connection && kind.is_text()).then_some(kind.collation);
        let (_, text) = plain_text(&parsed)?;
        Some(Self { text, position, collation })
    }

    /// Whether it means in a session of this collation what it meant where rows were written.
    pub(crate) fn is_for(&self, connection: Collation) -> bool {
        self.collation.is_none_or(|collation| collation == connection)
    }
}

/// The column and the path of a key over the members of arrays, `CAST(column->'path' AS … ARRAY)`.
pub(crate) fn array_path(expression: &str) -> Option<(String, String)> {
    let mut expr = parsed(expression)?;
    while let Expr::Nested(inner) = expr {
        expr = *inner;
    }
    let Expr::Cast { expr, array: true, .. } = expr else { return None };
    let (document, path) = match *expr {
        Expr::BinaryOp { left, op: BinaryOperator::Arrow, right } => (*left, *right),
        Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("json_extract") => {
            let FunctionArguments::List(list) = call.args else { return None };
            let mut args = list.args.into_iter();
            let mut next = || match args.next()? {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            };
            let pair = (next()?, next()?);
            next().is_none().then_some(pair)?
        }
        _ => return None,
    };
    let column = match document {
        Expr::Identifier(name) => name.value,
        Expr::CompoundIdentifier(names) => names.into_iter().next_back()?.value,
        _ => return None,
    };
    let Expr::Value(path) = path else { return None };
    Some((column, path.value.into_string()?))
}

/// The syntax tree of an expression.
fn parsed(expression: &str) -> Option<Expr> {
    let text = format!("SELECT ({expression})").into_bytes();
    let mode = LexMode::default();
    let read = tokens(&text, mode).ok()?;
    let source = Arc::new(Source::new(text, read, mode));
    let parsed = Statement { source, parameters: &[] }.parse().ok()?;
    let ast::Statement::Query(query) = parsed else { return None };
    let SetExpr::Select(select) = *query.body else { return None };
    match select.projection.into_iter().next()? {
        SelectItem::UnnamedExpr(expr) => Some(expr),
        _ => None,
    }
}

/// An expression without parentheses around it and without the name of the table that all its columns are of, in one
/// spelling; and that name. `None` if it is of several tables or of none.
pub(crate) fn plain_text(expr: &Expr) -> Option<(Option<String>, String)> {
    let mut expr = expr.clone();
    while let Expr::Nested(inner) = expr {
        expr = *inner;
    }
    let mut spelling = Spelling { table: None };
    if VisitMut::visit(&mut expr, &mut spelling).is_break() {
        return None;
    }
    Some((spelling.table?, expr.to_string()))
}

/// Gives names one spelling.
struct Spelling {
    /// What is before the columns' names, once there was a column.
    table: Option<Option<String>>,
}

impl VisitorMut for Spelling {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let (table, column) = match expr {
            Expr::Identifier(name) => (None, name.value.to_lowercase()),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, name] => (Some(table.value.clone()), name.value.to_lowercase()),
                _ => return ControlFlow::Break(()),
            },
            Expr::Function(function) => {
                let [part] = function.name.0.as_slice() else { return ControlFlow::Break(()) };
                let Some(name) = part.as_ident() else { return ControlFlow::Break(()) };
                let name = ast::Ident::new(name.value.to_lowercase());
                function.name = ObjectName::from(vec![name]);
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        if *self.table.get_or_insert_with(|| table.clone()) != table {
            return ControlFlow::Break(());
        }
        *expr = Expr::Identifier(ast::Ident::with_quote('`', column));
        ControlFlow::Continue(())
    }
}

/// Breaks at what may give something else to another session.
struct Seeking<'t> {
    table: &'t SqlTable,
    /// Whether there are texts that have the collation of the session's connection.
    follows_connection: bool,
}

impl Seeking<'_> {
    fn is_fixed(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::Identifier(name) => {
                let column = self.table.column(&name.value);
                let spec = column.and_then(|place| self.table.columns.get(place));
                // Moments are shown by the clocks of a zone, and times of day become moments of today.
                let moves = |sql| matches!(sql, SqlType::Timestamp(_) | SqlType::Time(_));
                spec.is_some_and(|spec| !moves(spec.kind.sql))
            }
            Expr::Value(value) => {
                let is_text = matches!(value.value, Value::SingleQuotedString(_));
                self.follows_connection |= is_text;
                is_text || matches!(value.value, Value::Number(..) | Value::Null)
            }
            Expr::Function(function) => {
                let name = match function.name.0.as_slice() {
                    [name] => name.as_ident().map(|name| name.value.to_lowercase()),
                    _ => None,
                };
                // Those of numbers give texts that have it too.
                let keeps = name.as_deref().is_some_and(|name| KEEPING_COLLATION.contains(&name));
                self.follows_connection |= !keeps;
                let is_known = |name: &String| FIXED.binary_search(&name.as_str()).is_ok();
                function.over.is_none() && name.as_ref().is_some_and(is_known)
            }
            Expr::Cast { kind, data_type, .. } => {
                self.follows_connection = true;
                matches!(kind, CastKind::Cast) && !matches!(data_type, DataType::Time(..))
            }
            Expr::BinaryOp { op, .. } => matches!(
                op,
                BinaryOperator::Plus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Modulo
                    | BinaryOperator::Arrow
                    | BinaryOperator::LongArrow
            ),
            Expr::Nested(_) | Expr::Substring { .. } | Expr::Trim { .. } => true,
            Expr::Ceil { .. } | Expr::Floor { .. } => true,
            _ => false,
        }
    }
}

/// Functions that give texts in the collation of their arguments alone.
const KEEPING_COLLATION: &[&str] = &[
    "lcase",
    "left",
    "lower",
    "ltrim",
    "mid",
    "reverse",
    "right",
    "rtrim",
    "substr",
    "substring",
    "trim",
    "ucase",
    "upper",
];

impl Visitor for Seeking<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.is_fixed(expr) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fixed_is_sorted() {
        assert!(FIXED.is_sorted());
    }

    #[test]
    fn spellings_of_an_expression_are_one() {
        let text = |expression| plain_text(&parsed(expression)?);
        let plain = |expression: &str| Some((None, expression.to_owned()));
        let of_table = Some((Some("T".to_owned()), "lower(`name`)".to_owned()));
        assert_eq!(text("LOWER(Name)"), plain("lower(`name`)"));
        assert_eq!(text("((lower( `NAME` )))"), plain("lower(`name`)"));
        assert_eq!(text("Lower(T.name)"), of_table);
        assert_eq!(text("concat(a.x, b.y)"), None);
        assert_eq!(text("1 + 1"), None);
        assert_eq!(text("(SELECT a)"), None);
    }
}
