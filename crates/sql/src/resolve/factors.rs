//! PACKEDFACTORS(): a column with the factors that the ranking of WHERE's keyword query uses for each row.

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value, ValueWithSpan,
};
use remora_mysql::ErrorCode;

use super::{matching::text, scope::Clause};
use crate::{Error, Result, parse::FACTORS, search::KEYWORDS_FACTORS};

/// A call of [`FACTORS`] as a MATCH that returns factors. `weight` is the resolved WEIGHT(), from which the query is
/// taken. `None` for other functions.
///
/// # Errors
/// 1064 for unknown options and if no MATCH finds the rows; 1235 outside of the select list.
pub(super) fn call(
    function: &Function,
    weight: Option<&Expr>,
    clause: Clause,
) -> Result<Option<Expr>> {
    if function.name.to_string() != FACTORS {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let Some(options) = list.args.first().and_then(literal) else { return Ok(None) };
    if clause != Clause::Fields {
        return Err(Error::unsupported("PACKEDFACTORS() outside of the select list"));
    }
    check(options)?;
    let found = weight.and_then(|weight| with_factors(weight, options));
    found.map(Some).ok_or_else(|| {
        let message = "PACKEDFACTORS() tells of what WHERE MATCH('…') finds: ask for that";
        Error::new(ErrorCode::ParseError, message)
    })
}

/// Refuses unknown options.
fn check(options: &str) -> Result<()> {
    let is_known = |option: &&str| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        ["json", "no_atc"].contains(&&*name.to_ascii_lowercase()) && ["0", "1"].contains(&value)
    };
    let unknown = options.split(',').filter(|option| !option.is_empty()).find(|it| !is_known(it));
    match unknown {
        None => Ok(()),
        Some(option) => {
            let message = format!("unknown option {option} of PACKEDFACTORS(): json=1, no_atc=1");
            Err(Error::new(ErrorCode::ParseError, message))
        }
    }
}

/// The MATCH of a resolved WEIGHT(), returning factors instead.
fn with_factors(weight: &Expr, options: &str) -> Option<Expr> {
    let Expr::Cast { expr, .. } = weight else { return None };
    let Expr::Function(function) = expr.as_ref() else { return None };
    let mut function = function.clone();
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let mode = list.args.first_mut()?;
    let said = format!("{}\n{KEYWORDS_FACTORS}={}", literal(mode)?, options.to_ascii_lowercase());
    *mode = FunctionArg::Unnamed(FunctionArgExpr::Expr(text(said)));
    Some(Expr::Function(function))
}

fn literal(arg: &FunctionArg) -> Option<&str> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan {
            value: Value::SingleQuotedString(text),
            ..
        }))) => Some(text),
        _ => None,
    }
}
