//! Functional keys as queries use them. A query that repeats a key's expression reads the hidden column that holds its
//! values.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, CastKind, CharacterLength, DataType, ExactNumberInfo, Expr, FunctionArg,
    FunctionArgExpr, FunctionArguments, ObjectName, Query, Value, Visitor, VisitorMut,
};
use remora_mysql::Collation;

use super::{ExpressionKey, PartOf, RoundedKey, SqlTable, TypeSpec};
use crate::{
    SqlType,
    parse::{Visit, VisitMut, define::stored_expression, function_named},
};

/// Functions with the same result in every session.
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

/// The functions of [`FIXED`] that read dates and times. For an argument that is not a date or time
/// yet, their result depends on the session's zone, because texts may have an offset, and on its
/// mode, which decides which dates are valid.
const OF_MOMENTS: &[&str] = &[
    "date",
    "datediff",
    "day",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "hour",
    "last_day",
    "microsecond",
    "minute",
    "month",
    "quarter",
    "second",
    "to_days",
    "weekday",
    "year",
];

impl ExpressionKey {
    /// The expressions of a table's functional keys and indexed generated columns, if their values depend on nothing
    /// else.
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
        all.extend(table.visible().filter_map(|(position, _, spec)| {
            let expression = &spec.generated.as_ref()?.expression;
            let leads = table.leads_index(position);
            leads.then(|| Self::of_generated(table, expression, position, &spec.kind))?
        }));
        all
    }

    /// The expression of a generated column, if the column stores its values unchanged.
    fn of_generated(
        table: &SqlTable,
        expression: &str,
        position: usize,
        kind: &TypeSpec,
    ) -> Option<Self> {
        // The row was computed in the zone and mode of the session that wrote it.
        let key = Self::of(table, expression, position)?;
        let mut expr = stored_expression(expression)?;
        while let Expr::Nested(inner) = expr {
            expr = *inner;
        }
        if is_text_of_document(&expr) {
            let is_same = kind.sql == SqlType::VarChar && kind.collation == Collation::UTF8MB4_BIN;
            return is_same.then_some(Self { collation: None, ..key });
        }
        gives(table, &expr, kind).then_some(key)
    }

    fn of(table: &SqlTable, expression: &str, position: usize) -> Option<Self> {
        if !table.schema.columns.get(position)?.indexed {
            return None;
        }
        let DeterministicExpr { expr, follows_connection, of_zone, of_dates } =
            deterministic(table, expression).ok()?;
        let spec = table.columns.get(position)?;
        // The engine computes in UTC and in the default mode; sessions compute in theirs.
        let is_of_engine = table.schema.is_computed(position)
            && spec.generated.as_ref().is_some_and(|generated| !generated.stored);
        if (of_zone || of_dates) && !is_of_engine {
            return None;
        }
        let kind = &spec.kind;
        let collation = (follows_connection && kind.is_text()).then_some(kind.collation);
        let (_, text) = plain_text(&expr)?;
        Some(Self { text, position, collation, of_zone, of_dates })
    }
}

impl RoundedKey {
    /// The columns of a table that are the first of an index.
    pub(super) fn all(table: &SqlTable) -> Vec<Self> {
        let of = |(position, _, spec): (usize, _, &super::ColumnSpec)| {
            let expression = &spec.generated.as_ref()?.expression;
            let bits = spec.kind.integer_bits().filter(|_| table.leads_index(position))?;
            let key = ExpressionKey::of(table, expression, position)?;
            let mut expr = stored_expression(expression)?;
            while let Expr::Nested(inner) = expr {
                expr = *inner;
            }
            let bounds = match spec.kind.unsigned {
                true => (0, 1_i64.checked_shl(bits.into()).unwrap_or(MOST_EXACT).min(MOST_EXACT)),
                false => {
                    let half = 1_i64.checked_shl(u32::from(bits) - 1).unwrap_or(MOST_EXACT);
                    let half = if half < 0 { MOST_EXACT } else { half.min(MOST_EXACT) };
                    (-half, half)
                }
            };
            is_text_of_document(&expr).then_some(Self { text: key.text, position, bounds })
        };
        table.visible().filter_map(of).collect()
    }
}

/// Up to this size, every integer has an exact double.
const MOST_EXACT: i64 = 1 << 53;

/// Whether it is a text from a document, as `->>` returns it.
fn is_text_of_document(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::LongArrow, .. } => true,
        Expr::Function(call) => call.name.to_string().eq_ignore_ascii_case("json_unquote"),
        _ => false,
    }
}

/// Whether a column of this type certainly stores the values of an expression unchanged.
fn gives(table: &SqlTable, expr: &Expr, kind: &TypeSpec) -> bool {
    let is = |sql: SqlType| kind.sql == sql;
    match expr {
        Expr::Cast { data_type, array: false, .. } => match data_type {
            DataType::Signed | DataType::SignedInteger => is(SqlType::BigInt) && !kind.unsigned,
            DataType::Unsigned | DataType::UnsignedInteger => is(SqlType::BigInt) && kind.unsigned,
            DataType::Date => is(SqlType::Date),
            DataType::Datetime(digits) => {
                let digits = u8::try_from(digits.unwrap_or(0));
                digits.is_ok_and(|digits| is(SqlType::DateTime(digits)))
            }
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(digits, scale)) => {
                let (digits, scale) = (u8::try_from(*digits), u8::try_from(*scale));
                let same = |digits| scale.is_ok_and(|scale| is(SqlType::Decimal(digits, scale)));
                !kind.unsigned && digits.is_ok_and(same)
            }
            DataType::Char(Some(CharacterLength::IntegerLength { length, .. })) => {
                is(SqlType::VarChar) && kind.length >= *length
            }
            _ => false,
        },
        Expr::Function(call) => {
            let name = call.name.to_string().to_lowercase();
            let FunctionArguments::List(list) = &call.args else { return false };
            let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(of)))) =
                list.args.first()
            else {
                return false;
            };
            let of = table.column(&of.value).and_then(|place| table.columns.get(place));
            KEEPING_COLLATION.contains(&name.as_str())
                && is(SqlType::VarChar)
                && of.is_some_and(|of| {
                    matches!(of.kind.sql, SqlType::Char | SqlType::VarChar)
                        && of.kind.length <= kind.length
                        && of.kind.collation == kind.collation
                })
        }
        _ => false,
    }
}

/// An expression whose value depends on the row and on the settings named here only.
pub(crate) struct DeterministicExpr {
    /// The syntax tree.
    pub expr: Expr,
    /// Whether it has texts in `collation_connection`.
    follows_connection: bool,
    /// Whether it depends on the session's time zone.
    of_zone: bool,
    /// Whether it depends on which dates the session's mode accepts.
    of_dates: bool,
}

/// Analyzes an expression over a table. If its value depends on anything else, the error is the reason.
pub(crate) fn deterministic(
    table: &SqlTable,
    expression: &str,
) -> std::result::Result<DeterministicExpr, String> {
    if expression.contains('\\') || expression.contains("||") {
        return Err("it has \\ or ||, which modes of SQL read differently".to_owned());
    }
    let expr = stored_expression(expression).ok_or("it is not understood here")?;
    let mut seeking =
        SessionDependence { table, follows_connection: false, of_zone: false, of_dates: false };
    if let ControlFlow::Break(part) = Visit::visit(&expr, &mut seeking) {
        return Err(format!("{part} is not known to give the same to all sessions"));
    }
    let SessionDependence { follows_connection, of_zone, of_dates, .. } = seeking;
    let mut whole = &expr;
    while let Expr::Nested(inner) = whole {
        whole = inner;
    }
    // An explicit collation is the same in every session.
    let says_collation = matches!(whole, Expr::Collate { .. });
    let follows_connection = follows_connection && !says_collation;
    Ok(DeterministicExpr { expr, follows_connection, of_zone, of_dates })
}

/// The column and the path of a multi-valued key, `CAST(column->'path' AS … ARRAY)`.
pub(crate) fn array_path(expression: &str) -> Option<(String, String)> {
    let mut expr = stored_expression(expression)?;
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
    column_and_path(document, path)
}

/// The names of a document column and of a literal path.
pub(super) fn column_and_path(document: Expr, path: Expr) -> Option<(String, String)> {
    let column = match document {
        Expr::Identifier(name) => name.value,
        Expr::CompoundIdentifier(names) => names.into_iter().next_back()?.value,
        _ => return None,
    };
    let Expr::Value(path) = path else { return None };
    Some((column, path.value.into_string()?))
}

/// A normalized text of an expression without outer parentheses and without its table's name, and that name. `None` if
/// its columns belong to several tables, or if it has none.
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

/// Normalizes the spelling of names.
struct Spelling {
    /// The qualifier of the columns, once one was met.
    table: Option<Option<String>>,
}

impl VisitorMut for Spelling {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Nested(inner) = expr {
            *expr = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
            return ControlFlow::Continue(());
        }
        spell(expr);
        let (table, column) = match expr {
            Expr::Identifier(name) => (None, name.value.to_lowercase()),
            Expr::CompoundIdentifier(names) => match names.as_slice() {
                [table, name] => (Some(table.value.clone()), name.value.to_lowercase()),
                _ => return ControlFlow::Break(()),
            },
            Expr::Function(function) => {
                let [part] = function.name.0.as_slice() else { return ControlFlow::Break(()) };
                let Some(name) = part.as_ident() else { return ControlFlow::Break(()) };
                let name = name.value.to_lowercase();
                let same = SAME.iter().find(|(other, _)| *other == name);
                let name = ast::Ident::new(same.map_or(name, |(_, name)| (*name).to_owned()));
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

/// Rewrites synonymous forms to the one that MySQL's SHOW CREATE TABLE prints. Operands that are operations get
/// parentheses, others none.
fn spell(expr: &mut Expr) {
    let call =
        |name: &str, args: Vec<Expr>| Expr::Function(function_named(ast::Ident::new(name), args));
    *expr = match std::mem::replace(expr, Expr::Value(Value::Null.into())) {
        Expr::BinaryOp { left, op: BinaryOperator::Arrow, right } => {
            call("json_extract", vec![*left, *right])
        }
        Expr::BinaryOp { left, op: BinaryOperator::LongArrow, right } => {
            call("json_unquote", vec![call("json_extract", vec![*left, *right])])
        }
        Expr::BinaryOp { left, op, right } => {
            Expr::BinaryOp { left: apart(left), op, right: apart(right) }
        }
        Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
            let args = [*expr, *from].into_iter().chain(substring_for.map(|length| *length));
            call("substring", args.collect())
        }
        Expr::Collate { expr, collation } => Expr::Collate { expr: apart(expr), collation },
        Expr::Value(ast::ValueWithSpan { value: Value::DoubleQuotedString(text), .. }) => {
            Expr::Value(Value::SingleQuotedString(text).into())
        }
        Expr::Function(call) => spell_call(call),
        other => other,
    };
}

/// Does the same for calls that SHOW CREATE TABLE prints as operators.
fn spell_call(call: ast::Function) -> Expr {
    let name = call.name.to_string().to_lowercase();
    let args = match &call.args {
        FunctionArguments::List(list) => list.args.as_slice(),
        _ => &[],
    };
    let plain = |arg: &FunctionArg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let args: Option<Vec<Expr>> = args.iter().map(plain).collect();
    match (name.as_str(), args.as_deref()) {
        ("mod", Some([left, right])) => Expr::BinaryOp {
            left: apart(Box::new(left.clone())),
            op: BinaryOperator::Modulo,
            right: apart(Box::new(right.clone())),
        },
        ("date", Some([of])) => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(of.clone()),
            data_type: DataType::Date,
            array: false,
            format: None,
        },
        _ => Expr::Function(call),
    }
}

/// An operand, in parentheses if it is an operation.
fn apart(operand: Box<Expr>) -> Box<Expr> {
    match *operand {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_) | Expr::Function(_) => {
            operand
        }
        Expr::Cast { .. } => operand,
        _ => Box::new(Expr::Nested(operand)),
    }
}

/// Synonyms of functions.
const SAME: &[(&str, &str)] = &[
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("day", "dayofmonth"),
    ("lcase", "lower"),
    ("mid", "substring"),
    ("octet_length", "length"),
    ("substr", "substring"),
    ("ucase", "upper"),
];

/// Stops at anything that may have another value in another session.
struct SessionDependence<'t> {
    table: &'t SqlTable,
    /// Whether there are texts in `collation_connection`.
    follows_connection: bool,
    /// Whether the value depends on the session's time zone.
    of_zone: bool,
    /// Whether the value depends on which dates the mode accepts.
    of_dates: bool,
}

impl SessionDependence<'_> {
    /// The type of a column.
    fn kind(&self, name: &str) -> Option<SqlType> {
        let spec = self.table.columns.get(self.table.column(name)?)?;
        Some(spec.kind.sql)
    }

    /// Whether it is already a date or time, independent of zone and mode.
    fn is_moment(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Nested(inner) => self.is_moment(inner),
            Expr::Identifier(name) => {
                matches!(self.kind(&name.value), Some(SqlType::Date | SqlType::DateTime(_)))
            }
            Expr::Cast { data_type, .. } => {
                matches!(data_type, DataType::Date | DataType::Datetime(_))
            }
            Expr::Function(call) => {
                let name = call.name.to_string();
                ["date", "last_day"].iter().any(|one| name.eq_ignore_ascii_case(one))
            }
            _ => false,
        }
    }

    /// Notes what a call of a date function depends on.
    fn note_moments(&mut self, name: &str, call: &ast::Function) {
        let FunctionArguments::List(list) = &call.args else { return };
        let is_moment = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => self.is_moment(expr),
            _ => false,
        };
        let reads_others = !list.args.iter().all(is_moment);
        self.of_zone |= reads_others;
        // DATE() is a cast.
        self.of_dates |= reads_others || name == "date";
    }

    /// Whether a cast has the same result in every session, apart from what it notes.
    fn is_fixed_cast(&mut self, kind: &CastKind, of: &Expr, to: &DataType) -> bool {
        self.follows_connection = true;
        if matches!(to, DataType::Date | DataType::Datetime(_)) {
            self.of_dates = true;
            self.of_zone |= !self.is_moment(of);
        }
        // A TIME becomes a date and time of the current day, and a mode decides what REAL means.
        let is_known = match to {
            DataType::Signed | DataType::SignedInteger => true,
            DataType::Unsigned | DataType::UnsignedInteger => true,
            DataType::Char(_) | DataType::Character(_) | DataType::Varchar(_) => true,
            DataType::Nvarchar(_) | DataType::Binary(_) | DataType::Varbinary(_) => true,
            DataType::Decimal(_) | DataType::Dec(_) | DataType::Numeric(_) => true,
            DataType::Double(_) | DataType::DoublePrecision | DataType::JSON => true,
            DataType::Date | DataType::Datetime(_) => true,
            DataType::Custom(name, _) => {
                let name = name.to_string().to_lowercase();
                ["signed", "unsigned", "char", "nchar", "binary", "decimal"]
                    .contains(&name.as_str())
            }
            _ => false,
        };
        is_known && matches!(kind, CastKind::Cast)
    }

    fn is_fixed(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::Identifier(name) => {
                // A TIMESTAMP depends on the zone, and a TIME becomes a date and time of the current day.
                let moves = |sql| matches!(sql, SqlType::Timestamp(_) | SqlType::Time(_));
                self.kind(&name.value).is_some_and(|sql| !moves(sql))
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
                // Results of numeric functions as texts have that collation too.
                let keeps = name.as_deref().is_some_and(|name| KEEPING_COLLATION.contains(&name));
                self.follows_connection |= !keeps;
                if let Some(name) = name.as_deref().filter(|name| OF_MOMENTS.contains(name)) {
                    self.note_moments(name, function);
                }
                let is_known = |name: &String| FIXED.binary_search(&name.as_str()).is_ok();
                function.over.is_none() && name.as_ref().is_some_and(is_known)
            }
            Expr::Cast { kind, expr, data_type, .. } => self.is_fixed_cast(kind, expr, data_type),
            Expr::BinaryOp { op, .. } => matches!(
                op,
                BinaryOperator::Plus
                    | BinaryOperator::Multiply
                    | BinaryOperator::Modulo
                    | BinaryOperator::Arrow
                    | BinaryOperator::LongArrow
            ),
            Expr::Nested(_) | Expr::Substring { .. } | Expr::Trim { .. } => true,
            Expr::Collate { .. } => true,
            Expr::Ceil { .. } | Expr::Floor { .. } => true,
            _ => false,
        }
    }
}

/// Functions whose result has the collation of their arguments.
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

impl Visitor for SessionDependence<'_> {
    type Break = String;

    fn pre_visit_query(&mut self, _query: &Query) -> ControlFlow<String> {
        ControlFlow::Break("a query".to_owned())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<String> {
        match self.is_fixed(expr) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(expr.to_string()),
        }
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
    fn what_earlier_versions_stored_is_understood() {
        let text = plain_text(&stored_expression("CAST(doc->>'$.a' AS VARCHAR(20))").unwrap());
        assert!(text.is_some(), "clients may not say it any more");
    }

    #[test]
    fn spellings_of_an_expression_are_one() {
        let text = |expression| plain_text(&stored_expression(expression)?);
        let plain = |expression: &str| Some((None, expression.to_owned()));
        let of_table = Some((Some("T".to_owned()), "lower(`name`)".to_owned()));
        let path = |expression| array_path(expression);
        let tags = Some(("doc".to_owned(), "$.tags".to_owned()));
        assert_eq!(path("CAST(doc->'$.tags' AS UNSIGNED ARRAY)"), tags);
        assert_eq!(path("cast(json_extract(`doc`,_utf8mb4'$.tags') as char(40) array)"), tags);
        assert_eq!(text("LOWER(Name)"), plain("lower(`name`)"));
        assert_eq!(text("((lower( `NAME` )))"), plain("lower(`name`)"));
        assert_eq!(text("Lower(T.name)"), of_table);
        assert_eq!(text("concat(a.x, b.y)"), None);
        assert_eq!(text("1 + 1"), None);
        assert_eq!(text("(SELECT a)"), None);
        // In the spelling of queries, and as MySQL prints it.
        for (asked, shown) in [
            (
                "CAST(doc->>'$.year' AS SIGNED)",
                "cast(json_unquote(json_extract(`doc`,_utf8mb4'$.year')) as signed)",
            ),
            (
                "CAST(doc->>'$.name' AS CHAR(64))",
                "cast(json_unquote(json_extract(`doc`,_utf8mb4'$.name')) as char(64) charset utf8mb4)",
            ),
            (
                "CAST(doc->>'$.b' AS CHAR(30)) COLLATE utf8mb4_bin",
                "(cast(json_unquote(json_extract(`doc`,_utf8mb4'$.b')) as char(30) charset utf8mb4) \
                 collate utf8mb4_bin)",
            ),
            ("n * 2 + id", "((`n` * 2) + `id`)"),
            ("SUBSTRING(email, 1, 3)", "substr(`email`,1,3)"),
            ("concat(email,'x')", "concat(`email`,_utf8mb4'x')"),
            ("DATE(made)", "cast(`made` as date)"),
            ("year(date(made))", "year(cast(`made` as date))"),
            ("MOD(n, 10)", "(`n` % 10)"),
            ("n mod 10", "(`n` % 10)"),
            ("MOD(n + 1, 10) * 2", "(((`n` + 1) % 10) * 2)"),
            (
                "cast(doc->>'$.\"a b\"' as decimal(10,2))",
                "cast(json_unquote(json_extract(`doc`,_utf8mb4'$.\"a b\"')) as decimal(10,2))",
            ),
        ] {
            assert!(text(asked).is_some(), "{asked}");
            assert_eq!(text(asked), text(shown), "{asked}");
        }
        for (one, other) in [("(a + b) * c", "a + b * c"), ("a + (b + c)", "a + b + c")] {
            assert_ne!(text(one), text(other));
        }
    }
}
