//! Hexadecimal and bit literals: texts of bytes, but numbers where a function expects a number.

use datafusion::sql::sqlparser::ast::Expr;

use super::{arguments::is_named, call};

/// Makes a hexadecimal or bit literal a number.
pub(super) fn hex_as_number(expr: Expr) -> Expr {
    match expr {
        Expr::Nested(inner) if is_digits(&inner) => hex_as_number(*inner),
        expr if is_digits(&expr) => call("literal_number", vec![expr]),
        expr => expr,
    }
}

/// Whether it is a hexadecimal or bit literal.
pub(super) fn is_digits(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_digits(inner),
        Expr::Function(function) => {
            is_named(function, "hex_literal") || is_named(function, "bit_literal")
        }
        _ => false,
    }
}

/// The arguments of a function, with numbers for the literals where it expects numbers.
pub(super) fn with_numbers(name: &str, args: Vec<Expr>) -> Vec<Expr> {
    if !args.iter().any(is_digits) {
        return args;
    }
    let is_number = numbers(name);
    let args = args.into_iter().enumerate();
    let args = args.map(|(at, arg)| match is_number(at) && is_digits(&arg) {
        // MySQL's result of these is a double.
        true if at == 0 && of_doubles(name) => call("to_double", vec![hex_as_number(arg)]),
        true => hex_as_number(arg),
        false => arg,
    });
    args.collect()
}

fn of_doubles(name: &str) -> bool {
    matches!(name, "abs" | "ceiling" | "floor" | "round" | "truncate")
}

/// Which arguments of a function are numbers, by their places from 0.
fn numbers(name: &str) -> fn(usize) -> bool {
    const ALL: &[&str] = &[
        "%",
        "abs",
        "acos",
        "asin",
        "atan",
        "atan2",
        "average",
        "bin",
        "branch_truth",
        "cast_decimal",
        "cast_double",
        "cast_float",
        "cast_signed",
        "cast_unsigned",
        "cast_year",
        "ceiling",
        "char",
        "conv",
        "cos",
        "cot",
        "degrees",
        "exp",
        "floor",
        "from_days",
        "inet_ntoa",
        "interval_index",
        "ln",
        "log",
        "log10",
        "log2",
        "makedate",
        "maketime",
        "oct",
        "period_add",
        "period_diff",
        "power",
        "radians",
        "round",
        "sec_to_time",
        "sign",
        "sin",
        "space",
        "sqrt",
        "sum_argument",
        "tan",
        "to_double",
        "truncate",
        "truth",
    ];
    match name {
        "format" => |at| at < 2,
        "elt" | "from_unixtime" | "make_set" | "rand" | "rand_sequence" => |at| at == 0,
        "date_add" | "date_sub" | "left" | "lpad" | "repeat" | "right" | "rpad" | "sha2"
        | "timestampadd" | "week" | "yearweek" => |at| at == 1,
        "substring" => |at| at > 0,
        "locate" | "substring_index" => |at| at == 2,
        "insert" => |at| at == 1 || at == 2,
        "export_set" => |at| at == 0 || at == 4,
        name if ALL.contains(&name) => |_| true,
        _ => |_| false,
    }
}
