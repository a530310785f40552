//! Evaluates an expression for a single row, without a plan or a session. Accepted are only
//! expressions with the same meaning in every session, texts in the default collation of
//! connections, and a value for every row. An expression that may fail, such as a sum that may
//! overflow, is refused, since a row for which it failed would be missing from the index.

use std::{borrow::Cow, sync::Arc};

use datafusion::{
    arrow::{
        array::{ArrayRef, Int64Array},
        datatypes::DataType,
    },
    common::ScalarValue,
    sql::sqlparser::ast::{self, Expr, FunctionArg, FunctionArgExpr, FunctionArguments},
};
use remora_engine::{Date, Value};
use remora_mysql::SqlMode;

use super::{
    array::{ArrayColumn, Building},
    call::{Call, TypeContext},
    decimal::Dec,
    formatted::takes_texts,
    function::{Definition, Dialect},
    library::definition,
    rewrite::{RewriteSettings, rewrite},
    temporal::Moment,
    types::{ExprType, MAX_DIGITS, MAX_SCALE},
    value::SqlValue,
};
use crate::SqlType;

/// A compiled expression.
pub(crate) struct Formula(Node);

enum Node {
    /// A column, by its position.
    Column(usize, ExprType),
    Constant(ScalarValue, ExprType),
    Call(Box<FunctionCall>),
}

/// A function call.
struct FunctionCall {
    definition: &'static Definition,
    args: Vec<Node>,
    types: Vec<ExprType>,
    kind: ExprType,
    held: DataType,
}

/// Finds a column by name: its position and type.
type Find<'f> = &'f dyn Fn(&str) -> Option<(usize, ExprType)>;

impl Formula {
    /// Compiles an expression. The error says why it is refused: it has more than calls, columns
    /// and literals, or may fail.
    pub(crate) fn of(expr: &Expr, find: Find<'_>) -> Result<Self, String> {
        let mut expr = expr.clone();
        let reading = RewriteSettings { sql_mode: SqlMode::DEFAULT, database: String::new() };
        rewrite(&mut expr, &reading).map_err(|error| error.message)?;
        Node::of(&expr, find).map(Self)
    }

    /// The type of the result.
    pub(crate) fn kind(&self) -> &ExprType {
        self.0.kind()
    }

    /// The value for a row, as an array with one element; an error where a query would fail.
    pub(crate) fn evaluate(&self, row: &[Value]) -> Result<ArrayRef, String> {
        self.0.evaluate(row)
    }
}

impl Node {
    fn of(expr: &Expr, find: Find<'_>) -> Result<Self, String> {
        match expr {
            Expr::Nested(inner) => Self::of(inner, find),
            Expr::Identifier(name) => {
                let found = find(&name.value);
                let (place, kind) =
                    found.ok_or_else(|| format!("there is no column {:?}", name.value))?;
                match is_held_alike(&kind) {
                    true => Ok(Self::Column(place, kind)),
                    false => {
                        Err(format!("column {:?} is of a type that is not computed", name.value))
                    }
                }
            }
            Expr::Value(literal) => {
                let value = constant(&literal.value)
                    .ok_or_else(|| format!("the literal {expr} is not computed"))?;
                let kind = ExprType::of_literal(&value, Dialect::default().collation);
                Ok(Self::Constant(value, kind))
            }
            Expr::Function(call) => {
                FunctionCall::of(call, find).map(|called| Self::Call(called.into()))
            }
            other => Err(format!("{other} is no call of a function")),
        }
    }

    fn kind(&self) -> &ExprType {
        match self {
            Self::Column(_, kind) | Self::Constant(_, kind) => kind,
            Self::Call(called) => &called.kind,
        }
    }

    fn constant(&self) -> Option<&ScalarValue> {
        match self {
            Self::Constant(value, _) => Some(value),
            _ => None,
        }
    }

    fn evaluate(&self, row: &[Value]) -> Result<ArrayRef, String> {
        match self {
            Self::Column(place, kind) => {
                let value = row.get(*place).ok_or("the row has too few columns")?;
                Ok(array(value, kind))
            }
            Self::Constant(value, _) => value.to_array().map_err(|error| error.to_string()),
            Self::Call(called) => called.evaluate(row),
        }
    }

    /// The least and greatest value, if it is an integer.
    fn bounds(&self) -> (i128, i128) {
        match self {
            Self::Constant(ScalarValue::Int64(Some(number)), _) => {
                (i128::from(*number), i128::from(*number))
            }
            Self::Column(_, kind) => bounds_of_column(kind),
            Self::Constant(_, kind) => bounds_of(kind),
            Self::Call(called) => called.bounds(),
        }
    }
}

/// Whether values of this column type are represented here as scans represent them.
fn is_held_alike(kind: &ExprType) -> bool {
    let is_plain = kind.multi.is_none() && kind.decimals.is_none();
    let is_whole = kind.is_integer() && !matches!(kind.kind, SqlType::Bit(_));
    let is_known = is_whole
        || matches!(
            kind.kind,
            SqlType::Decimal(..)
                | SqlType::Double
                | SqlType::Char
                | SqlType::VarChar
                | SqlType::TinyBlob
                | SqlType::Blob
                | SqlType::MediumBlob
                | SqlType::LongBlob
                | SqlType::Date
                | SqlType::DateTime(_)
                | SqlType::Json
        );
    is_plain && is_known && kind.members.is_none()
}

/// The least and greatest value of an integer column.
fn bounds_of_column(kind: &ExprType) -> (i128, i128) {
    let bits = match kind.kind {
        SqlType::TinyInt => 8,
        SqlType::SmallInt | SqlType::Year => 16,
        SqlType::MediumInt => 24,
        SqlType::Int => 32,
        _ => 64,
    };
    match kind.unsigned {
        true => (0, (1 << bits) - 1),
        false => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
    }
}

/// The least and greatest value of an integer expression, by the digits of its type.
fn bounds_of(kind: &ExprType) -> (i128, i128) {
    let most = 10_i128.pow(kind.length.min(20)) - 1;
    let (least, greatest) = match kind.unsigned {
        true => (0, i128::from(u64::MAX)),
        false => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    (least.max(-most), greatest.min(most))
}

impl FunctionCall {
    fn of(call: &ast::Function, find: Find<'_>) -> Result<Self, String> {
        let unknown = || format!("{call} is not computed");
        let [name] = call.name.0.as_slice() else { return Err(unknown()) };
        let name = &name.as_ident().ok_or_else(unknown)?.value;
        let definition = definition(name).ok_or_else(unknown)?;
        let FunctionArguments::List(list) = &call.args else { return Err(unknown()) };
        let arg = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Node::of(expr, find),
            _ => Err(unknown()),
        };
        let args: Vec<Node> = list.args.iter().map(arg).collect::<Result<_, _>>()?;
        if definition.volatile || !(definition.fewest..=definition.most).contains(&args.len()) {
            return Err(unknown());
        }
        let types: Vec<ExprType> = args.iter().map(|arg| arg.kind().clone()).collect();
        let scalars: Vec<Option<&ScalarValue>> = args.iter().map(Node::constant).collect();
        let Dialect { collation, division_digits } = Dialect::default();
        let typing = TypeContext { types: &types, scalars: &scalars, collation, division_digits };
        let kind = (definition.typing)(&typing).map_err(|error| error.message)?;
        let kind = ExprType { width: None, ..kind };
        let held = definition.held(&kind);
        let called = Self { definition, args, types, kind, held };
        match called.may_fail() {
            None => Ok(called),
            Some(why) => Err(format!("{call} may fail: {why}")),
        }
    }

    /// Why the call fails for some rows, or `None` if it never does.
    fn may_fail(&self) -> Option<&'static str> {
        let (Some(first), Some(arg)) = (self.types.first(), self.args.first()) else {
            return Some("it reads nothing");
        };
        let is_constant = |arg: &Node| matches!(arg, Node::Constant(..));
        // A result type with the most digits may have been capped. A cast keeps to its declared
        // digits.
        if self.definition.name != "cast_decimal"
            && matches!(
                self.kind.kind,
                SqlType::Decimal(MAX_DIGITS, _) | SqlType::Decimal(_, MAX_SCALE)
            )
        {
            return Some("it may have more digits than a DECIMAL");
        }
        match self.definition.name {
            "+" | "*" => self.may_overflow().then_some("it may be too large"),
            "abs" => {
                let (least, _) = arg.bounds();
                let is_least = first.is_integer() && least <= i128::from(i64::MIN);
                is_least.then_some("the least BIGINT has no opposite")
            }
            "round" | "truncate" => {
                let is_up = match self.args.get(1) {
                    None => true,
                    Some(Node::Constant(ScalarValue::Int64(Some(digits)), _)) => *digits >= 0,
                    Some(_) => false,
                };
                (!is_up).then_some("it may be too large")
            }
            "json_extract" | "->>" | "json_length" | "json_type" | "json_value"
            | "json_contains" => {
                let is_document = |place: usize| {
                    self.types.get(place).is_some_and(|kind| kind.kind == SqlType::Json)
                };
                let mut others = self.args.iter().enumerate().skip(1);
                let is_fixed =
                    others.all(|(place, arg)| is_constant(arg) || (place == 1 && is_document(1)));
                let is_right = is_document(0) && is_fixed && self.is_right_for_a_document();
                (!is_right).then_some("what it reads may be no document, or no path")
            }
            "json_unquote" => {
                (first.kind != SqlType::Json).then_some("what it reads may be no JSON")
            }
            "concat" | "replace" => {
                let is_long = self.kind.length > MAX_MADE_CHARACTERS;
                is_long.then_some("it may be longer than a session takes")
            }
            name if TOTAL.binary_search(&name).is_ok() => None,
            _ => Some("it is not known to give something for every row"),
        }
    }

    /// Whether a sum or product may exceed its type.
    fn may_overflow(&self) -> bool {
        let [a, b] = self.args.as_slice() else { return true };
        let (of_a, of_b) = (a.kind(), b.kind());
        let (scale_a, scale_b) = (u32::from(of_a.scale()), u32::from(of_b.scale()));
        match self.kind.kind {
            SqlType::Decimal(..) if self.definition.name == "+" => {
                let whole = of_a.integer_digits().max(of_b.integer_digits()) + 1;
                whole + scale_a.max(scale_b) > u32::from(MAX_DIGITS)
            }
            SqlType::Decimal(..) => {
                of_a.digits() + of_b.digits() > u32::from(MAX_DIGITS)
                    || scale_a + scale_b > u32::from(MAX_SCALE)
            }
            _ if self.kind.is_integer() => {
                let (least, most) = self.bounds();
                let (lowest, highest) = match self.kind.unsigned {
                    true => (0, i128::from(u64::MAX)),
                    false => (i128::from(i64::MIN), i128::from(i64::MAX)),
                };
                least < lowest || most > highest
            }
            _ => true,
        }
    }

    /// The least and greatest value of the call, if it is an integer.
    fn bounds(&self) -> (i128, i128) {
        let of = |place: usize| self.args.get(place).map_or((i128::MIN, i128::MAX), Node::bounds);
        let are_whole = self.types.iter().all(ExprType::is_integer);
        match self.definition.name {
            "+" if are_whole => {
                let ((a, b), (c, d)) = (of(0), of(1));
                (a.saturating_add(c), b.saturating_add(d))
            }
            "*" if are_whole => {
                let ((a, b), (c, d)) = (of(0), of(1));
                let all = [(a, c), (a, d), (b, c), (b, d)].map(|(x, y)| x.saturating_mul(y));
                let least = all.iter().copied().min().unwrap_or(i128::MIN);
                (least, all.into_iter().max().unwrap_or(i128::MAX))
            }
            _ => bounds_of(&self.kind),
        }
    }

    /// Whether the call accepts a document as its first argument, with its constant arguments.
    /// Tests it with an empty one.
    fn is_right_for_a_document(&self) -> bool {
        let value = |arg: &Node| match arg {
            Node::Constant(..) => arg.evaluate(&[]).ok(),
            _ => Some(array(&Value::Json("{}".into()), &ExprType::json())),
        };
        let arrays: Option<Vec<ArrayRef>> = self.args.iter().map(value).collect();
        arrays.is_some_and(|arrays| self.call(&arrays).is_ok())
    }

    fn evaluate(&self, row: &[Value]) -> Result<ArrayRef, String> {
        let mut arrays = Vec::with_capacity(self.args.len());
        for (place, arg) in self.args.iter().enumerate() {
            arrays.push(match self.is_asked(place, &arrays)? {
                true => arg.evaluate(row)?,
                false => null(arg.kind()),
            });
        }
        self.call(&arrays)
    }

    /// Whether an argument is evaluated, as in MySQL, given the values of those before it.
    fn is_asked(&self, place: usize, before: &[ArrayRef]) -> Result<bool, String> {
        match self.definition.name {
            "coalesce" | "ifnull" => Ok(before.iter().all(|value| value.is_null(0))),
            "case" => {
                // Arguments are conditions and results in turn, with the ELSE value last.
                for (nth, condition) in before.iter().enumerate().step_by(2) {
                    if self.is_true(nth, condition)? {
                        return Ok(place == nth + 1);
                    }
                }
                Ok(place.is_multiple_of(2))
            }
            _ => Ok(true),
        }
    }

    fn is_true(&self, place: usize, value: &ArrayRef) -> Result<bool, String> {
        let kind = self.types.get(place).cloned().unwrap_or_else(ExprType::null);
        let column = ArrayColumn::new(value, kind).map_err(|error| error.to_string())?;
        let call = Call { context: None, types: &self.types, result: &self.kind, kept: None };
        let value = column.get(0);
        Ok(!value.is_null() && value.double(&call) != 0.0)
    }

    fn call(&self, arrays: &[ArrayRef]) -> Result<ArrayRef, String> {
        let mut columns = Vec::with_capacity(arrays.len());
        for (array, kind) in arrays.iter().zip(&self.types) {
            let mut column =
                ArrayColumn::new(array, kind.clone()).map_err(|error| error.to_string())?;
            if takes_texts(self.definition.name) {
                column.read_as_text();
            }
            columns.push(column);
        }
        let values: Vec<SqlValue<'_>> = columns.iter().map(|column| column.get(0)).collect();
        let call = Call { context: None, types: &self.types, result: &self.kind, kept: None };
        let value = (self.definition.eval)(&call, &values).map_err(|error| error.message)?;
        let mut built = Building::new(&self.held, &self.kind);
        built.push(&value, &call);
        Ok(built.finish())
    }
}

/// The most characters of a text composed of several. No session's `max_allowed_packet` is smaller.
const MAX_MADE_CHARACTERS: u32 = 4_096;

/// Functions that have a value, possibly NULL, for all arguments.
#[rustfmt::skip]
const TOTAL: &[&str] = &[
    "%", "ascii", "case", "cast_binary", "cast_char", "cast_date", "cast_datetime", "cast_decimal", "cast_double",
    "cast_signed", "cast_unsigned", "ceiling", "char_length", "coalesce", "collate", "crc32", "date", "datediff",
    "dayofmonth", "dayofweek", "dayofyear", "floor", "hex", "hour", "ifnull", "isnull", "last_day", "left", "length",
    "lower", "ltrim", "md5", "microsecond", "minute", "month", "quarter", "reverse", "right", "rtrim", "second", "sha1",
    "sha2", "sign", "substring", "substring_index", "to_days", "trim", "unhex", "upper", "weekday", "year",
];

/// NULL as an array of this type.
fn null(kind: &ExprType) -> ArrayRef {
    array(&Value::Null, kind)
}

/// A literal as the planner represents it.
fn constant(value: &ast::Value) -> Option<ScalarValue> {
    Some(match value {
        ast::Value::Null => ScalarValue::Null,
        ast::Value::SingleQuotedString(text) => ScalarValue::Utf8View(Some(text.clone())),
        ast::Value::Number(digits, _) => match digits.parse::<i64>() {
            Ok(number) => ScalarValue::Int64(Some(number)),
            Err(_) => ScalarValue::UInt64(Some(digits.parse().ok()?)),
        },
        _ => return None,
    })
}

/// A column's value as scans represent it.
fn array(value: &Value, kind: &ExprType) -> ArrayRef {
    let packed = |date: Date, micros: u64| -> ArrayRef {
        let Date { year, month, day } = date;
        let micros = i64::try_from(micros).unwrap_or(0);
        Arc::new(Int64Array::from(vec![Moment { year, month, day, micros }.pack()]))
    };
    match value {
        Value::Date(date) => return packed(*date, 0),
        Value::DateTime(moment) => return packed(moment.date, moment.micros),
        _ => {}
    }
    let call = Call { context: None, types: &[], result: kind, kept: None };
    let mut built = Building::new(&kind.arrow(), kind);
    built.push(&plain(value), &call);
    built.finish()
}

/// A value other than a date. Types that depend on the session's time zone are not supported and
/// become NULL.
fn plain(value: &Value) -> SqlValue<'_> {
    match value {
        Value::Int(number) => SqlValue::Int(*number),
        Value::Uint(number) => SqlValue::Uint(*number),
        Value::Float(number) => SqlValue::Double(*number),
        Value::Decimal(number) => SqlValue::Dec(Dec::parse_prefix(number.as_str()).0),
        Value::Bool(truth) => SqlValue::truth(*truth),
        Value::Text(text) => SqlValue::Text(Cow::Borrowed(text)),
        Value::Json(text) => SqlValue::Json(Cow::Borrowed(text)),
        Value::Bytes(bytes) => SqlValue::Bytes(Cow::Borrowed(bytes)),
        Value::Null
        | Value::Date(_)
        | Value::DateTime(_)
        | Value::Time(_)
        | Value::Timestamp(_) => SqlValue::Null,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use remora_mysql::Collation;

    use super::*;
    use crate::SqlType;

    /// A call by name, whose arguments are these.
    fn call(name: &str, args: Vec<Expr>) -> Expr {
        Expr::Function(crate::parse::function_named(ast::Ident::new(name), args))
    }

    fn name(name: &str) -> Expr {
        Expr::Identifier(ast::Ident::new(name))
    }

    fn text(text: &str) -> Expr {
        Expr::Value(ast::Value::SingleQuotedString(text.to_owned()).into())
    }

    fn find(name: &str) -> Option<(usize, ExprType)> {
        let collation = Collation::UTF8MB4_0900_AI_CI;
        match name {
            "doc" => Some((0, ExprType::json())),
            "mail" => Some((1, ExprType::column(SqlType::VarChar, false, 50, collation))),
            "n" => Some((2, ExprType::column(SqlType::Int, false, 11, collation))),
            "big" => Some((3, ExprType::column(SqlType::BigInt, false, 20, collation))),
            "price" => Some((4, ExprType::column(SqlType::Decimal(10, 2), false, 12, collation))),
            "widest" => Some((7, ExprType::column(SqlType::Decimal(65, 0), false, 66, collation))),
            "finest" => Some((8, ExprType::column(SqlType::Decimal(30, 30), false, 32, collation))),
            "real" => Some((5, ExprType::column(SqlType::Double, false, 22, collation))),
            "at" => Some((6, ExprType::column(SqlType::Timestamp(0), false, 19, collation))),
            _ => None,
        }
    }

    fn made(expr: &Expr, row: &[Value]) -> ArrayRef {
        Formula::of(expr, &find).unwrap().evaluate(row).unwrap()
    }

    #[test]
    fn calls_of_columns_and_literals_are_evaluated() {
        let row =
            [Value::Json("{\"year\": \"1999\", \"n\": null}".into()), Value::Text("Ann@X".into())];
        let none = [Value::Null, Value::Null];
        let lower = call("lower", vec![name("mail")]);
        assert_eq!(made(&lower, &row).as_string_view().value(0), "ann@x");
        assert!(made(&lower, &none).is_null(0));
        let path = |path| call("json_extract", vec![name("doc"), text(path)]);
        let year = call("json_unquote", vec![path("$.year")]);
        assert_eq!(made(&year, &row).as_string_view().value(0), "1999");
        let number = call("cast_signed", vec![year.clone()]);
        let found = made(&number, &row);
        let numbers = found.as_primitive::<datafusion::arrow::datatypes::Int64Type>();
        assert_eq!(numbers.value(0), 1999);
        let formula = Formula::of(&number, &find).unwrap();
        assert_eq!((formula.kind().kind, formula.kind().unsigned), (SqlType::BigInt, false));
        assert!(made(&number, &none).is_null(0));
        let kind = Formula::of(
            &call(
                "cast_char",
                vec![year, Expr::Value(ast::Value::Number("64".to_owned(), false).into())],
            ),
            &find,
        )
        .unwrap();
        assert_eq!((kind.kind().kind, kind.kind().length), (SqlType::VarChar, 64));
    }

    #[test]
    fn what_is_no_call_has_no_formula() {
        assert!(Formula::of(&name("other"), &find).is_err());
        assert!(Formula::of(&name("at"), &find).is_err());
        assert!(Formula::of(&Expr::IsNull(Box::new(name("mail"))), &find).is_err());
        assert!(Formula::of(&call("rand", vec![]), &find).is_err());
    }

    fn number(digits: &str) -> Expr {
        Expr::Value(ast::Value::Number(digits.to_owned(), false).into())
    }

    #[test]
    fn what_may_fail_has_no_formula() {
        let plus = |a, b| call("+", vec![a, b]);
        let times = |a, b| call("*", vec![a, b]);
        let path = |of: Expr, path| call("json_extract", vec![of, text(path)]);
        for (expr, is_total) in [
            (plus(name("n"), number("7")), true),
            (times(name("n"), name("n")), true),
            // 2^31 * 2^31 * 2 is 2^63.
            (times(times(name("n"), name("n")), number("2")), false),
            (plus(name("big"), number("1")), false),
            (plus(name("big"), number("0")), true),
            (times(name("price"), name("price")), true),
            (plus(name("price"), name("n")), true),
            (times(name("real"), number("2")), false),
            (plus(name("mail"), number("1")), false),
            (call("abs", vec![name("n")]), true),
            (call("abs", vec![name("big")]), false),
            (call("round", vec![name("n"), number("2")]), true),
            (call("round", vec![name("big"), name("n")]), false),
            (call("round", vec![name("price"), number("1")]), true),
            (call("round", vec![name("price")]), true),
            // 99999999.99 rounded to 10^8 is 100000000, which has one digit more.
            (call("round", vec![name("price"), name("n")]), false),
            (call("truncate", vec![name("price"), name("n")]), false),
            (call("round", vec![name("real"), name("n")]), false),
            (call("coalesce", vec![name("price"), number("1")]), true),
            (call("coalesce", vec![name("widest"), number("1")]), false),
            (call("coalesce", vec![name("widest"), name("finest")]), false),
            (call("cast_decimal", vec![name("mail"), number("65"), number("30")]), true),
            (call("%", vec![name("big"), name("n")]), true),
            (path(name("doc"), "$.a[0]"), true),
            (path(name("doc"), "a b"), false),
            (path(name("mail"), "$.a"), false),
            (call("json_unquote", vec![path(name("doc"), "$.a")]), true),
            (call("json_unquote", vec![name("mail")]), false),
            (call("json_length", vec![name("doc"), text("$.a")]), true),
            (call("json_contains", vec![name("doc"), text("[1]")]), true),
            (call("json_contains", vec![name("doc"), text("[1")]), false),
            (call("coalesce", vec![name("big"), number("1")]), true),
            (call("coalesce", vec![name("n"), plus(name("big"), number("1"))]), false),
        ] {
            assert_eq!(Formula::of(&expr, &find).is_ok(), is_total, "{expr}");
        }
    }

    #[test]
    fn names_of_total_functions_are_sorted_and_known() {
        assert!(TOTAL.is_sorted());
        for name in TOTAL {
            assert!(definition(name).is_some(), "{name}");
        }
    }

    #[test]
    fn only_what_is_needed_is_evaluated() {
        // The row has only two columns, so reading a third would fail.
        let row = [Value::Null, Value::Text("Ann".into())];
        let first = call("coalesce", vec![name("mail"), call("hex", vec![name("n")])]);
        assert_eq!(made(&first, &row).as_string_view().value(0), "Ann");
        let reached = call("coalesce", vec![call("lower", vec![name("n")]), name("mail")]);
        assert!(Formula::of(&reached, &find).unwrap().evaluate(&row).is_err());
        let case = |condition: &str| {
            let condition = call("isnull", vec![name(condition)]);
            call("case", vec![condition, name("mail"), call("hex", vec![name("n")])])
        };
        assert_eq!(made(&case("doc"), &row).as_string_view().value(0), "Ann");
        assert!(Formula::of(&case("mail"), &find).unwrap().evaluate(&row).is_err());
    }
}
