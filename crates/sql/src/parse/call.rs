//! Function calls in the syntax tree. Forms that the tree lacks, such as MATCH … AGAINST, are read as calls.

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName,
};

/// The name of the function that MATCH … AGAINST becomes: mode, query, columns.
pub(crate) const MATCH: &str = "match_against";

/// What MATCH … AGAINST (expression) is read as: a function of mode, expression, columns.
pub(crate) const MATCH_OF: &str = "match_of_expression";

/// What MATCH of texts at paths is read as: a function of mode, expression, and `document->>path` for each path. No
/// statement can name it.
pub(crate) const MATCH_OF_PATHS: &str = "#match_of_paths";

/// The name of the function that this becomes: mode, query, document, paths.
pub(crate) const MATCH_AT_PATHS: &str = "#match_at_paths";

/// A call of a function.
pub(crate) fn function_call(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Function(function_named(Ident::new(name), args))
}

/// COUNT(*), or COUNT(DISTINCT …).
pub(crate) fn count_of(distinct: Option<Expr>) -> Expr {
    let treatment = distinct.as_ref().map(|_| DuplicateTreatment::Distinct);
    let mut count = function_named(Ident::new("COUNT"), Vec::new());
    if let FunctionArguments::List(list) = &mut count.args {
        let arg = distinct.map_or(FunctionArgExpr::Wildcard, FunctionArgExpr::Expr);
        (list.duplicate_treatment, list.args) = (treatment, vec![FunctionArg::Unnamed(arg)]);
    }
    Expr::Function(count)
}

/// A call of a function whose name is written so.
pub(crate) fn function_named(name: Ident, args: Vec<Expr>) -> Function {
    let args = args.into_iter().map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)));
    Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: args.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}
