//! Function calls: aliases, special arguments, and unknown functions.

use std::ops::{ControlFlow, RangeInclusive};

use datafusion::sql::sqlparser::ast::{Expr, Function, Value};
use remora_mysql::ErrorCode;

use super::{
    Rewriter, aggregates,
    arguments::{self, arguments, in_document, name_of, span, wrong_count},
    branch_truth, call, digits, frames, function_name, number, text,
};
use crate::{
    Error, Result,
    meaning::{GIVE_LAST_INSERT_ID, function::Caching, library::definition},
    parse::{MATCH, MATCH_AT_PATHS, visit_expressions},
};

/// Aliases of functions.
const SAME: &[(&str, &str)] = &[
    ("adddate", "date_add"),
    ("subdate", "date_sub"),
    ("ceil", "ceiling"),
    ("character_length", "char_length"),
    ("curdate", "current_date"),
    ("curtime", "current_time"),
    ("current_timestamp", "now"),
    ("localtime", "now"),
    ("localtimestamp", "now"),
    ("day", "dayofmonth"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("mid", "substring"),
    ("substr", "substring"),
    ("octet_length", "length"),
    ("pow", "power"),
    ("schema", "database"),
    ("session_user", "user"),
    ("system_user", "user"),
    ("current_user", "user"),
    ("sha", "sha1"),
    ("st_aswkb", "st_asbinary"),
    ("st_aswkt", "st_astext"),
    ("st_geometryfromtext", "st_geomfromtext"),
    ("st_geometryfromwkb", "st_geomfromwkb"),
    ("st_linestringfromtext", "st_linefromtext"),
    ("st_polygonfromtext", "st_polyfromtext"),
    ("position", "locate"),
    ("mod", "%"),
    ("json_merge", "json_merge_preserve"),
    ("regexp", "regexp_like"),
    ("rlike", "regexp_like"),
];

/// Whether it is one of DataFusion's window functions.
fn is_window(name: &str) -> bool {
    matches!(
        name,
        "row_number"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
            | "ntile"
            | "lag"
            | "lead"
            | "first_value"
            | "last_value"
            | "nth_value"
            | "grouping"
    )
}

/// How many arguments one of them takes.
fn window_arguments(name: &str) -> RangeInclusive<usize> {
    match name {
        "ntile" | "first_value" | "last_value" => 1..=1,
        "lag" | "lead" => 1..=3,
        "nth_value" => 2..=2,
        "grouping" => 1..=usize::MAX,
        _ => 0..=0,
    }
}

/// The longest result of a function such as LPAD in a cached plan.
const MAX_CACHED_LENGTH: u32 = 255;

/// The name under which a function is defined.
fn defined_as(name: &str) -> &str {
    SAME.iter().find(|(other, _)| *other == name).map_or(name, |(_, defined)| defined)
}

/// Whether a plan that is kept for further statements may have a call, as the client wrote it. Its value depends on the
/// row, on the literals, and on what all runs of the plan have in common, or each run computes it anew.
pub(crate) fn may_be_cached(function: &Function) -> bool {
    let Some(name) = name_of(function) else { return false };
    if is_window(&name) {
        return function.over.is_some() && name != "grouping";
    }
    // No client calls these.
    if name.starts_with('#') {
        return false;
    }
    if aggregates::is_aggregate(&name) || name == "if" {
        return true;
    }
    let name = defined_as(&name);
    let is_small = |length: &Expr| match length {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().is_ok_and(|it: u32| it <= MAX_CACHED_LENGTH),
            _ => false,
        },
        _ => false,
    };
    match definition(name).map(|definition| definition.caching) {
        Some(Caching::ByArguments) => true,
        // LAST_INSERT_ID(value) changes the session.
        Some(Caching::PerStatement) => name != "last_insert_id" || arguments(function).is_empty(),
        Some(Caching::ByLength(at)) => arguments(function).get(at).is_some_and(is_small),
        Some(Caching::Never) | None => false,
    }
}

impl Rewriter<'_> {
    pub(super) fn function(&self, mut function: Function) -> Result<Expr> {
        frames::plain_offsets(&mut function)?;
        let Some(name) = name_of(&function) else {
            return Err(self.missing(&function.name.to_string()));
        };
        if aggregates::is_aggregate(&name) {
            aggregates::number_queries(&mut function);
            return aggregates::aggregate(&name, function);
        }
        if is_window(&name) {
            if function.over.is_none() && name != "grouping" {
                let message =
                    format!("{} is a window function and needs OVER", original_name(&function));
                return Err(Error::new(ErrorCode::ParseError, message));
            }
            let count = arguments(&function).len();
            if !window_arguments(&name).contains(&count) {
                let message =
                    format!("{} does not take {count} arguments", original_name(&function));
                return Err(Error::new(ErrorCode::ParseError, message));
            }
            function.name = function_name(&name);
            return Ok(Expr::Function(function));
        }
        if name == "row" {
            return Ok(Expr::Tuple(arguments(&function)));
        }
        let name = defined_as(&name).to_owned();
        if function.over.is_some() {
            return Err(Error::new(ErrorCode::ParseError, format!("{name} is no window function")));
        }
        let mut args = arguments(&function);
        if name == "rand" && args.len() == 1 && args.iter().all(is_constant) {
            return Ok(self.sequence(args));
        }
        if let Some(special) = special_call(&name, &mut args)? {
            return Ok(special);
        }
        let Some(definition) = definition(&name) else {
            return Err(self.missing(&original_name(&function)));
        };
        if args.len() < definition.fewest || args.len() > definition.most {
            return Err(wrong_count(&original_name(&function)));
        }
        // With an argument it is evaluated for each row; without one it is a constant.
        let gives = name == "last_insert_id" && !args.is_empty();
        let args = with_documents(&name, args);
        Ok(call(if gives { GIVE_LAST_INSERT_ID } else { &name }, args))
    }

    /// RAND(seed), with a sequence of its own that continues from row to row.
    fn sequence(&self, mut args: Vec<Expr>) -> Expr {
        let place = self.sequences.get();
        self.sequences.set(place + 1);
        args.push(number(place));
        // A call with constant arguments only would be treated as a constant, and ORDER BY would
        // drop it.
        args.push(call("this_row", Vec::new()));
        call("rand_sequence", args)
    }

    fn missing(&self, name: &str) -> Error {
        let database = &self.reading.database;
        Error::new(ErrorCode::DoesNotExist, format!("FUNCTION {database}.{name} does not exist"))
    }
}

/// The arguments of a function, with those marked that become values in a document.
fn with_documents(name: &str, args: Vec<Expr>) -> Vec<Expr> {
    let is_put: fn(usize) -> bool = match name {
        "json_array" => |_| true,
        "json_object" => |at| at % 2 == 1,
        "json_set" | "json_insert" | "json_replace" => |at| at > 0 && at % 2 == 0,
        "json_array_append" | "json_array_insert" => |at| at > 0 && at % 2 == 0,
        _ => return args,
    };
    let args = args.into_iter().enumerate();
    args.map(|(at, arg)| if is_put(at) { in_document(arg) } else { arg }).collect()
}

/// Whether an expression has the same value for all rows of a query.
fn is_constant(expr: &Expr) -> bool {
    let varies = |each: &Expr| {
        matches!(each, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Subquery(_))
    };
    visit_expressions(expr, |each| match varies(each) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
    .is_continue()
}

fn original_name(function: &Function) -> String {
    function.name.to_string().trim_matches('`').to_owned()
}

/// Rewrites functions with arguments that are not plain values.
fn special_call(name: &str, args: &mut Vec<Expr>) -> Result<Option<Expr>> {
    Ok(Some(match name {
        "date_add" | "date_sub" if args.len() == 2 => {
            let (Some(size), Some(date)) = (args.pop(), args.pop()) else { return Ok(None) };
            match span(size) {
                Ok((size, unit)) => call(name, vec![date, size, unit]),
                Err(days) => call(name, vec![date, days, text("DAY")]),
            }
        }
        "timestampadd" | "timestampdiff" | "get_format" if !args.is_empty() => {
            let unit = args.remove(0);
            let word = match &unit {
                Expr::Identifier(word) => word.value.clone(),
                other => other.to_string(),
            };
            args.insert(0, text(word.trim_matches('\'')));
            return plain(name, args);
        }
        "if" if args.len() == 3 => {
            let condition = args.remove(0);
            args.insert(0, branch_truth(condition));
            call("case", std::mem::take(args))
        }
        "trim" if args.len() == 1 => {
            args.insert(0, text("BOTH"));
            call("trim", std::mem::take(args))
        }
        "now" | "current_time" | "utc_time" | "utc_timestamp" | "sysdate" if args.len() <= 1 => {
            call(name, arguments::digits(std::mem::take(args)))
        }
        "values" if args.len() == 1 => args.remove(0),
        "not" if args.len() == 1 => super::not(args.remove(0)),
        // A literal of digits is a number, whatever the base.
        "conv" if args.len() == 3 && args.first().is_some_and(digits::is_digits) => {
            if let Some(base) = args.get_mut(1) {
                *base = number(10);
            }
            return plain(name, args);
        }
        "match" => return Err(Error::unsupported("MATCH here")),
        MATCH | MATCH_AT_PATHS => call(name, std::mem::take(args)),
        _ => return Ok(None),
    }))
}

fn plain(name: &str, args: &mut Vec<Expr>) -> Result<Option<Expr>> {
    match definition(name) {
        Some(definition) if (definition.fewest..=definition.most).contains(&args.len()) => {
            Ok(Some(call(name, std::mem::take(args))))
        }
        _ => Err(wrong_count(name)),
    }
}
