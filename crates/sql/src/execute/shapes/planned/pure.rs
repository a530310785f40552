//! Expressions whose value depends only on the row and on [`super::PlanSettings`]. Only those may be in a cached plan.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{DataType, Expr, Query, TypedString, Visitor};

use crate::parse::Visit;

/// Deterministic functions whose results are not much longer than their arguments, and clock functions, whose values
/// each run computes anew. A statement with any other function is planned each time.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "abs", "adddate", "any_value", "ascii", "avg", "bin", "bit_and", "bit_count", "bit_length",
    "bit_or", "bit_xor", "ceil", "ceiling", "char_length", "character_length", "coalesce",
    "concat", "concat_ws", "conv", "count", "crc32", "curdate", "current_date",
    "current_timestamp", "date", "date_add", "date_format", "date_sub", "datediff", "day",
    "dayname", "dayofmonth", "dayofweek", "dayofyear", "elt", "exp", "field", "find_in_set",
    "floor", "format", "from_base64", "greatest", "group_concat", "hex", "hour", "if", "ifnull",
    "insert", "instr", "isnull", "json_array", "json_arrayagg", "json_contains",
    "json_contains_path", "json_extract", "json_keys", "json_length", "json_object",
    "json_objectagg", "json_type", "json_unquote", "json_valid", "json_value", "last_day",
    "lcase", "least", "left", "length", "ln", "localtime", "localtimestamp", "locate", "log",
    "log10", "log2", "lower", "ltrim", "max", "md5", "microsecond", "mid", "min", "minute", "mod",
    "month", "monthname", "now", "nullif", "octet_length", "ord", "position", "pow", "power",
    "quarter", "replace", "reverse", "right", "round", "rtrim", "second", "sha1", "sha2", "sign",
    "sqrt", "std", "stddev", "stddev_pop", "stddev_samp", "strcmp", "subdate", "substr",
    "substring", "substring_index", "sum", "time_to_sec", "timestampdiff", "to_base64", "to_days",
    "trim", "truncate", "ucase", "unhex", "unix_timestamp", "upper", "utc_date", "utc_timestamp",
    "var_pop", "var_samp", "variance", "weekday", "year",
];

/// Window functions.
const OF_WINDOWS: &[&str] = &[
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// Whether a query calls only functions of these lists.
pub(super) fn is_pure(query: &Query) -> bool {
    query.visit(&mut Seeking).is_continue()
}

struct Seeking;

impl Visitor for Seeking {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let function = match expr {
            Expr::Function(function) => function,
            // A TIME becomes a DATETIME of the current day when it is compared with a date.
            Expr::TypedString(TypedString { data_type: DataType::Time(..), .. })
            | Expr::Cast { data_type: DataType::Time(..), .. } => return ControlFlow::Break(()),
            _ => return ControlFlow::Continue(()),
        };
        let name = match function.name.0.as_slice() {
            [name] => name.as_ident().map(|name| name.value.to_ascii_lowercase()),
            _ => None,
        };
        let is_pure = name.is_some_and(|name| {
            PURE.binary_search(&name.as_str()).is_ok()
                || function.over.is_some() && OF_WINDOWS.contains(&name.as_str())
        });
        if is_pure { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
