//! `GROUP n BY` and `WITHIN GROUP ORDER BY` of Sphinx: each group shows its best rows.
//!
//! ```text
//! group := "GROUP" number "BY" expr ("," expr)* [within] | "GROUP" "BY" expr ("," expr)* within
//! within := "WITHIN" "GROUP" "ORDER" "BY" expr ["ASC" | "DESC"] ("," expr ["ASC" | "DESC"])*
//! ```
//! The parser reads both as function calls in GROUP BY, [`ROWS`] and [`ORDER`]. MySQL has neither form.

use datafusion::sql::sqlparser::{
    ast::{
        Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
        GroupByExpr, OrderByExpr, Select, Value,
    },
    tokenizer::Token as Out,
};
use remora_mysql::TokenKind;

use super::Source;

/// The function that represents `GROUP n BY`; its argument is n.
pub(super) const ROWS: &str = "#group_rows";
/// The function that represents `WITHIN GROUP ORDER BY`; the order is its clause.
pub(super) const ORDER: &str = "#group_order";

/// Words that end WITHIN GROUP ORDER BY.
const ENDS: [&str; 11] = [
    "EXCEPT",
    "FOR",
    "HAVING",
    "INTERSECT",
    "INTO",
    "LIMIT",
    "LOCK",
    "OPTION",
    "ORDER",
    "UNION",
    "WINDOW",
];

/// Which rows of each group a statement shows.
#[derive(Debug, Default)]
pub(crate) struct GroupRows {
    /// The number of rows per group.
    pub count: Option<u64>,
    /// The order of rows within a group; empty if the statement has none.
    pub order: Vec<OrderByExpr>,
}

/// Tokens that replace others.
pub(super) struct TokenReplacement {
    /// The number of replaced tokens.
    pub taken: usize,
    /// The tokens that the parser reads instead.
    pub tokens: Vec<Out>,
    /// The position of a parenthesis that must be closed.
    pub closes_at: Option<usize>,
}

/// The replacement for one of the two forms, if it begins here. The statement ends at `end`.
pub(super) fn replacement(source: &Source, at: usize, end: usize) -> Option<TokenReplacement> {
    let words = |words: &[&str]| {
        let mut all = words.iter().enumerate();
        all.all(|(index, word)| source.is_word(at + index, word))
    };
    if words(&["WITHIN", "GROUP", "ORDER", "BY"]) {
        let one = Out::Number("1".to_owned(), false);
        let order = [Out::make_keyword("ORDER"), Out::make_keyword("BY")];
        let tokens = [Out::Comma, function(ORDER), Out::LParen, one].into_iter().chain(order);
        let closes_at = Some(end_of_order(source, at + 4, end));
        return Some(TokenReplacement { taken: 4, tokens: tokens.collect(), closes_at });
    }
    let count = source.tokens.get(at + 1).filter(|next| next.kind == TokenKind::Integer)?;
    if !words(&["GROUP"]) || !source.is_word(at + 2, "BY") {
        return None;
    }
    let digits = String::from_utf8_lossy(source.bytes(count)).into_owned();
    let tokens = vec![
        Out::make_keyword("GROUP"),
        Out::make_keyword("BY"),
        function(ROWS),
        Out::LParen,
        Out::Number(digits, false),
        Out::RParen,
        Out::Comma,
    ];
    Some(TokenReplacement { taken: 3, tokens, closes_at: None })
}

fn function(name: &str) -> Out {
    Out::make_word(name, Some('`'))
}

fn end_of_order(source: &Source, start: usize, end: usize) -> usize {
    let mut depth = 0_usize;
    for at in start..end {
        let is_end = || ENDS.iter().any(|word| source.is_word(at, word));
        if source.is(at, "(") {
            depth += 1;
        } else if depth == 0 && (source.is(at, ")") || source.is(at, ";") || is_end()) {
            return at;
        } else if source.is(at, ")") {
            depth -= 1;
        }
    }
    end
}

/// Removes both forms from a SELECT and returns their content; `None` if it has neither.
pub(crate) fn take_group_rows(select: &mut Select) -> Option<GroupRows> {
    let GroupByExpr::Expressions(groups, _) = &mut select.group_by else { return None };
    let mut said = None;
    groups.retain_mut(|group| {
        let Expr::Function(function) = group else { return true };
        let is_rows = is_named(function, ROWS);
        if !is_rows && !is_named(function, ORDER) {
            return true;
        }
        let rows: &mut GroupRows = said.get_or_insert_default();
        let FunctionArguments::List(list) = &mut function.args else { return false };
        for clause in std::mem::take(&mut list.clauses) {
            if let FunctionArgumentClause::OrderBy(order) = clause {
                rows.order = order;
            }
        }
        if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(count)))] = &list.args[..]
            && let Value::Number(digits, _) = &count.value
            && is_rows
        {
            // Sphinx takes none for one.
            rows.count = Some(digits.parse().unwrap_or(u64::MAX).max(1));
        }
        false
    });
    said
}

fn is_named(function: &Function, name: &str) -> bool {
    match function.name.0.as_slice() {
        [part] => part.as_ident().is_some_and(|ident| ident.value == name),
        _ => false,
    }
}
