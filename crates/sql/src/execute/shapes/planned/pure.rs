//! Which expressions are the same for the same row whenever and by whomever they are evaluated, but for what
//! [`super::Meaning`] holds.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Visit, Visitor};

/// Functions of their arguments alone. One that is not here is planned each time.
const PURE: [&str; 113] = [
    "abs",
    "adddate",
    "any_value",
    "ascii",
    "avg",
    "bin",
    "bit_and",
    "bit_count",
    "bit_length",
    "bit_or",
    "bit_xor",
    "ceil",
    "ceiling",
    "char_length",
    "character_length",
    "coalesce",
    "concat",
    "concat_ws",
    "conv",
    "count",
    "crc32",
    "date",
    "date_add",
    "date_format",
    "date_sub",
    "datediff",
    "day",
    "dayname",
    "dayofmonth",
    "dayofweek",
    "dayofyear",
    "elt",
    "exp",
    "field",
    "find_in_set",
    "floor",
    "format",
    "from_base64",
    "greatest",
    "group_concat",
    "hex",
    "hour",
    "if",
    "ifnull",
    "insert",
    "instr",
    "isnull",
    "json_array",
    "json_arrayagg",
    "json_contains",
    "json_contains_path",
    "json_extract",
    "json_keys",
    "json_length",
    "json_object",
    "json_objectagg",
    "json_type",
    "json_unquote",
    "json_valid",
    "json_value",
    "last_day",
    "lcase",
    "least",
    "left",
    "length",
    "ln",
    "locate",
    "log",
    "log10",
    "log2",
    "lower",
    "lpad",
    "ltrim",
    "max",
    "md5",
    "microsecond",
    "mid",
    "min",
    "minute",
    "mod",
    "month",
    "monthname",
    "nullif",
    "octet_length",
    "ord",
    "position",
    "pow",
    "power",
    "quarter",
    "replace",
    "reverse",
    "right",
    "round",
    "rpad",
    "rtrim",
    "second",
    "sha1",
    "sha2",
    "sign",
    "sqrt",
    "std",
    "stddev",
    "strcmp",
    "subdate",
    "substr",
    "substring",
    "substring_index",
    "sum",
    "time_to_sec",
    "timestampdiff",
    "to_base64",
    "to_days",
    "trim",
];
const MORE_PURE: [&str; 12] = [
    "truncate",
    "ucase",
    "unhex",
    "upper",
    "var_pop",
    "var_samp",
    "variance",
    "weekday",
    "year",
    "stddev_pop",
    "stddev_samp",
    "space",
];

/// Whether all functions of a query are of their arguments alone.
pub(super) fn is_pure(query: &Query) -> bool {
    query.visit(&mut Seeking).is_continue()
}

struct Seeking;

impl Visitor for Seeking {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        let name = match function.name.0.as_slice() {
            [name] => name.as_ident().map(|name| name.value.to_ascii_lowercase()),
            _ => None,
        };
        let is_pure = function.over.is_none()
            && name.is_some_and(|name| PURE.iter().chain(&MORE_PURE).any(|pure| *pure == name));
        if is_pure { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
