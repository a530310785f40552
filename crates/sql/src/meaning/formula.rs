//! What an expression gives for one row, without a plan and without a session: of expressions that mean the same to
//! every session, whose texts have the collation of new connections.

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
    array::{Building, Column},
    call::{Call, Typing},
    decimal::Dec,
    formatted::takes_texts,
    function::{Definition, Dialect, definition},
    rewrite::{Reading, rewrite},
    temporal::Moment,
    types::ExprType,
    value::V,
};

/// What an expression is made of.
pub(crate) struct Formula(Node);

enum Node {
    /// A column, by its place.
    Column(usize, ExprType),
    Constant(ScalarValue, ExprType),
    Call(Box<Called>),
}

/// A function and what it is called with.
struct Called {
    definition: &'static Definition,
    args: Vec<Node>,
    types: Vec<ExprType>,
    kind: ExprType,
    held: DataType,
}

/// Where a column stands, and its type.
type Find<'f> = &'f dyn Fn(&str) -> Option<(usize, ExprType)>;

impl Formula {
    /// The formula of an expression; `None` where it is more than calls, columns and literals.
    pub(crate) fn of(expr: &Expr, find: Find<'_>) -> Option<Self> {
        let mut expr = expr.clone();
        let reading = Reading { sql_mode: SqlMode::DEFAULT, database: String::new() };
        rewrite(&mut expr, &reading).ok()?;
        Node::of(&expr, find).map(Self)
    }

    /// Its type.
    pub(crate) fn kind(&self) -> &ExprType {
        self.0.kind()
    }

    /// What it gives for a row, as an array of one value; `None` where it fails, as a query would.
    pub(crate) fn evaluate(&self, row: &[Value]) -> Option<ArrayRef> {
        self.0.evaluate(row)
    }
}

impl Node {
    fn of(expr: &Expr, find: Find<'_>) -> Option<Self> {
        match expr {
            Expr::Nested(inner) => Self::of(inner, find),
            Expr::Identifier(name) => {
                let (place, kind) = find(&name.value)?;
                Some(Self::Column(place, kind))
            }
            Expr::Value(literal) => {
                let value = constant(&literal.value)?;
                let kind = ExprType::of_literal(&value, Dialect::default().collation);
                Some(Self::Constant(value, kind))
            }
            Expr::Function(call) => Called::of(call, find).map(|called| Self::Call(called.into())),
            _ => None,
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

    fn evaluate(&self, row: &[Value]) -> Option<ArrayRef> {
        match self {
            Self::Column(place, kind) => Some(array(row.get(*place)?, kind)),
            Self::Constant(value, _) => value.to_array().ok(),
            Self::Call(called) => called.evaluate(row),
        }
    }
}

impl Called {
    fn of(call: &ast::Function, find: Find<'_>) -> Option<Self> {
        let [name] = call.name.0.as_slice() else { return None };
        let definition = definition(&name.as_ident()?.value)?;
        let FunctionArguments::List(list) = &call.args else { return None };
        let arg = |arg: &FunctionArg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Node::of(expr, find),
            _ => None,
        };
        let args: Vec<Node> = list.args.iter().map(arg).collect::<Option<_>>()?;
        if definition.volatile || !(definition.fewest..=definition.most).contains(&args.len()) {
            return None;
        }
        let types: Vec<ExprType> = args.iter().map(|arg| arg.kind().clone()).collect();
        let scalars: Vec<Option<&ScalarValue>> = args.iter().map(Node::constant).collect();
        let Dialect { collation, division_digits } = Dialect::default();
        let typing = Typing { types: &types, scalars: &scalars, collation, division_digits };
        let kind = (definition.typing)(&typing).ok()?;
        let kind = ExprType { width: None, ..kind };
        let held = definition.held(&kind);
        Some(Self { definition, args, types, kind, held })
    }

    fn evaluate(&self, row: &[Value]) -> Option<ArrayRef> {
        let mut columns = Vec::with_capacity(self.args.len());
        for (arg, kind) in self.args.iter().zip(&self.types) {
            let mut column = Column::new(&arg.evaluate(row)?, kind.clone()).ok()?;
            if takes_texts(self.definition.name) {
                column.read_as_text();
            }
            columns.push(column);
        }
        let values: Vec<V<'_>> = columns.iter().map(|column| column.get(0)).collect();
        let call = Call { context: None, types: &self.types, result: &self.kind };
        let value = (self.definition.eval)(&call, &values).ok()?;
        let mut built = Building::new(&self.held, &self.kind);
        built.push(&value, &call);
        Some(built.finish())
    }
}

/// A literal as the planner has it.
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

/// A value of a column of this type, as scans have it.
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
    let call = Call { context: None, types: &[], result: kind };
    let mut built = Building::new(&kind.arrow(), kind);
    built.push(&plain(value), &call);
    built.finish()
}

/// A value that is no date. Moments and times of day, which sessions see in their own ways, are none here.
fn plain(value: &Value) -> V<'_> {
    match value {
        Value::Int(number) => V::Int(*number),
        Value::Uint(number) => V::Uint(*number),
        Value::Float(number) => V::Double(*number),
        Value::Decimal(number) => V::Dec(Dec::parse_prefix(number.as_str()).0),
        Value::Bool(truth) => V::truth(*truth),
        Value::Text(text) => V::Text(Cow::Borrowed(text)),
        Value::Json(text) => V::Json(Cow::Borrowed(text)),
        Value::Bytes(bytes) => V::Bytes(Cow::Borrowed(bytes)),
        Value::Null
        | Value::Date(_)
        | Value::DateTime(_)
        | Value::Time(_)
        | Value::Timestamp(_) => V::Null,
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
        assert!(Formula::of(&name("other"), &find).is_none());
        assert!(Formula::of(&Expr::IsNull(Box::new(name("mail"))), &find).is_none());
        assert!(Formula::of(&call("rand", vec![]), &find).is_none());
    }
}
