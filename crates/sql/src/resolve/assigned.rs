//! User variables that a statement assigns within its expressions: `@a := value`. A read then returns the latest
//! assignment. Its order is only defined if expressions are evaluated one after the other, as in a SELECT without
//! tables.

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
};

use crate::{Error, Result, parse::function_call};

/// The error's words where the order is not defined.
pub(super) const REFUSED: &str = ":= in a query that reads tables or holds another query";

const READ: &str = "get_user_variable";
const ASSIGN: &str = "set_user_variable";

/// Reads a variable that the statement assigns. `name` has its `@`.
pub(super) fn read(name: &str) -> Expr {
    let name = name.trim_start_matches('@').trim_matches(['`', '\'', '"']);
    function_call(READ, vec![Expr::Value(Value::SingleQuotedString(name.to_owned()).into())])
}

/// `variable := value`. The variable has already become [`read`].
pub(super) fn assignment(variable: &Expr, value: &Expr) -> Result<Expr> {
    let name =
        name_of(variable).ok_or_else(|| Error::unsupported(":= of anything but a variable"))?;
    Ok(function_call(ASSIGN, vec![name.clone(), value.clone()]))
}

fn name_of(variable: &Expr) -> Option<&Expr> {
    let Expr::Function(function) = variable else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(name))] = list.args.as_slice() else {
        return None;
    };
    let is_read = function.name.to_string().eq_ignore_ascii_case(READ);
    let is_text =
        matches!(name, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
    (is_read && is_text).then_some(name)
}
