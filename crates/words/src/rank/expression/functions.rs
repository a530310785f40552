//! The numeric functions of expressions.

use super::value_kind::ValueKind;

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Abs,
    Ceil,
    Floor,
    Sin,
    Cos,
    Ln,
    Log2,
    Log10,
    Exp,
    Sqrt,
    Fibonacci,
    /// `sint`: the low 32 bits as a signed number.
    Signed,
    /// `bigint`, `integer`, `double` and `uint`: the same value with another kind.
    Called,
    Min,
    Max,
    Pow,
    Atan2,
    /// `idiv` and `div`.
    Quotient,
    If,
    /// a * b + c.
    MultiplyAdd,
    /// a * b * c.
    Product,
    Interval,
    /// The sum of the arguments whose bit is set in the first one.
    BitDot,
}

/// The number of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arity {
    Exactly(usize),
    AtLeast(usize),
}

/// A function with its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub name: &'static str,
    pub function: Function,
    pub arity: Arity,
    /// The kind of the result; `None` for the widest kind of the arguments.
    pub kind: Option<ValueKind>,
}

/// Sphinx's functions that are refused: those of texts, times, places, sets and the state of the server.
const REFUSED: [&str; 32] = [
    "all",
    "any",
    "connection_id",
    "contains",
    "crc32",
    "current_user",
    "curtime",
    "day",
    "exist",
    "factors",
    "geodist",
    "geopoly2d",
    "greatest",
    "indexof",
    "least",
    "length",
    "min_top_sortval",
    "min_top_weight",
    "month",
    "now",
    "packedfactors",
    "poly2d",
    "rankfactors",
    "remap",
    "timediff",
    "to_string",
    "utc_time",
    "utc_timestamp",
    "year",
    "yearmonth",
    "yearmonthday",
    "zonespanlist",
];

/// Whether this is a function of Sphinx that is not supported.
pub(super) fn is_refused(name: &str) -> bool {
    REFUSED.binary_search(&name).is_ok()
}

/// The function with this name, which must be in lower case.
pub(super) fn by_name(name: &str) -> Option<Named> {
    FUNCTIONS.iter().find(|named| named.name == name).copied()
}

const fn named(
    name: &'static str,
    function: Function,
    arguments: usize,
    kind: Option<ValueKind>,
) -> Named {
    Named { name, function, arity: Arity::Exactly(arguments), kind }
}

const INTEGER: Option<ValueKind> = Some(ValueKind::Integer);
const BIG: Option<ValueKind> = Some(ValueKind::BigInteger);
const REAL: Option<ValueKind> = Some(ValueKind::Real);

const FUNCTIONS: [Named; 26] = [
    named("abs", Function::Abs, 1, None),
    named("ceil", Function::Ceil, 1, INTEGER),
    named("floor", Function::Floor, 1, INTEGER),
    named("sin", Function::Sin, 1, REAL),
    named("cos", Function::Cos, 1, REAL),
    named("ln", Function::Ln, 1, REAL),
    named("log2", Function::Log2, 1, REAL),
    named("log10", Function::Log10, 1, REAL),
    named("exp", Function::Exp, 1, REAL),
    named("sqrt", Function::Sqrt, 1, REAL),
    named("fibonacci", Function::Fibonacci, 1, INTEGER),
    named("sint", Function::Signed, 1, BIG),
    named("bigint", Function::Called, 1, BIG),
    named("integer", Function::Called, 1, BIG),
    named("double", Function::Called, 1, REAL),
    named("uint", Function::Called, 1, INTEGER),
    named("min", Function::Min, 2, None),
    named("max", Function::Max, 2, None),
    named("pow", Function::Pow, 2, REAL),
    named("atan2", Function::Atan2, 2, REAL),
    named("idiv", Function::Quotient, 2, None),
    named("if", Function::If, 3, None),
    named("madd", Function::MultiplyAdd, 3, None),
    named("mul3", Function::Product, 3, None),
    Named {
        name: "interval",
        function: Function::Interval,
        arity: Arity::AtLeast(2),
        kind: INTEGER,
    },
    Named { name: "bitdot", function: Function::BitDot, arity: Arity::AtLeast(1), kind: None },
];
