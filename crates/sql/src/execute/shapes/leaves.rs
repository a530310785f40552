//! What the syntax trees of shapes are made of: names, columns, literals, operators and calls.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, ObjectNamePart,
};

use super::{
    normalize::group_of,
    shape::{ColumnName, Comparison, LiteralGroup},
};

/// Words that are not accepted as names; the general path handles them.
const RESERVED: &str = "\
     ALL AND AS ASC BETWEEN BINARY BY CASE CAST COLLATE CONVERT CROSS CURRENT_DATE \
     CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER DEFAULT DESC DISTINCT DISTINCTROW DIV ELSE \
     EXCEPT EXISTS FALSE FOR FORCE FROM GROUP HAVING HIGH_PRIORITY IGNORE IN INNER INTERSECT \
     INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOCK MATCH MOD NATURAL NOT NULL ON OR \
     ORDER PARTITION PROCEDURE REGEXP RIGHT SELECT STRAIGHT_JOIN TRUE UNION USE WHERE USING \
     WINDOW XOR RLIKE LOCALTIME LOCALTIMESTAMP UTC_DATE UTC_TIME UTC_TIMESTAMP \
     SQL_CALC_FOUND_ROWS VALUES WITH JSON_TABLE";

/// The operands of a chain of AND or OR.
pub(super) fn chain<'t>(expr: &'t Expr, wanted: &BinaryOperator) -> Vec<&'t Expr> {
    // With a work list instead of recursion: there may be thousands.
    let (mut left, mut operands) = (vec![expr], Vec::new());
    while let Some(expr) = left.pop() {
        match expr {
            Expr::BinaryOp { left: one, op, right: other } if op == wanted => {
                left.push(other);
                left.push(one);
            }
            expr => operands.push(expr),
        }
    }
    operands
}

/// How an operator compares.
pub(super) fn comparison(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// The group of a list of literals, or of tuples of so many.
pub(super) fn list_of(list: &[Expr], arity: usize) -> Option<LiteralGroup> {
    let [only] = list else { return None };
    let Expr::Tuple(members) = only else { return literal(only).filter(|_| arity == 1) };
    let group = literal(members.first()?)?;
    let same = members.iter().all(|member| literal(member) == Some(group));
    (same && members.len() == arity && arity > 1).then_some(group)
}

/// A call of a function without more words.
pub(super) struct PlainCall<'t> {
    pub name: &'t Ident,
    pub duplicates: Option<DuplicateTreatment>,
    pub args: &'t [FunctionArg],
}

impl<'t> PlainCall<'t> {
    /// The call that an expression is.
    pub fn of(expr: &'t Expr) -> Option<Self> {
        let Expr::Function(function) = expr else { return None };
        let Function {
            name,
            uses_odbc_syntax: false,
            parameters: FunctionArguments::None,
            args: FunctionArguments::List(list),
            filter: None,
            null_treatment: None,
            over: None,
            within_group,
        } = function
        else {
            return None;
        };
        let FunctionArgumentList { duplicate_treatment: duplicates, args, clauses } = list;
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else { return None };
        let is_whole = within_group.is_empty() && clauses.is_empty();
        is_whole.then_some(Self { name, duplicates: *duplicates, args })
    }

    /// Whether it is a call of this function. Quoted names are of no function.
    pub fn is(&self, name: &str) -> bool {
        self.name.quote_style.is_none() && self.name.value.eq_ignore_ascii_case(name)
    }

    /// Whether it is one that only our own tokens can call.
    pub fn is_quoted(&self, name: &str) -> bool {
        self.name.quote_style == Some('`') && self.name.value == name
    }

    /// The arguments, if all are expressions.
    pub fn expressions(&self) -> Option<Vec<&'t Expr>> {
        let expression = |arg: &'t FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
            _ => None,
        };
        self.args.iter().map(expression).collect()
    }
}

/// The group of a literal.
pub(super) fn literal(expr: &Expr) -> Option<LiteralGroup> {
    let Expr::Value(value) = expr else { return None };
    group_of(&value.value)
}

/// A column, qualified with its table or not. A third part would mean `database.table.column`.
pub(super) fn column(expr: &Expr) -> Option<ColumnName> {
    match expr {
        Expr::Identifier(ident) => column_named(&[ident]),
        Expr::CompoundIdentifier(idents) => {
            column_named(idents.iter().collect::<Vec<_>>().as_slice())
        }
        _ => None,
    }
}

/// The column of these names.
pub(super) fn column_named(idents: &[&Ident]) -> Option<ColumnName> {
    let (table, ident) = match idents {
        [ident] => (None, ident),
        [table, ident] => (Some(name(table)?), ident),
        _ => return None,
    };
    Some(ColumnName { table, name: name(ident)?, hidden: None })
}

/// The parts of a name.
pub(super) fn parts_of(name: &ObjectName) -> Option<Vec<&Ident>> {
    name.0.iter().map(ObjectNamePart::as_ident).collect()
}

/// A name, if it is one: no word that means something else, and no text.
pub(super) fn name(ident: &Ident) -> Option<String> {
    let is_name = match ident.quote_style {
        None => !is_reserved(&ident.value),
        Some(quote) => quote == '`',
    };
    is_name.then(|| ident.value.clone())
}

pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.split_ascii_whitespace().any(|word| name.eq_ignore_ascii_case(word))
}
