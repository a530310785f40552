//! FULLTEXT keys over texts at paths of a JSON column: `((doc->>'$.title'), (doc->>'$.body'))`.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};

use super::{Key, KeyKind, KeyPart, expression_key::column_and_path};
use crate::parse::define::stored_expression;

impl Key {
    /// The document column and the paths of a text index. `None` if this is another kind of key, if
    /// a part is not `column->>'path'`, or if the parts use several columns.
    pub(crate) fn texts_at_paths(&self) -> Option<(String, Vec<String>)> {
        if self.kind != KeyKind::Fulltext {
            return None;
        }
        let parts = self.parts.iter().map(|part| text_path(KeyPart::expression(part)?));
        let parts: Vec<(String, String)> = parts.collect::<Option<_>>()?;
        let (column, _) = parts.first()?.clone();
        let is_same = |(other, _): &(String, String)| other.to_lowercase() == column.to_lowercase();
        let paths = parts.iter().all(is_same).then_some(parts)?;
        Some((column, paths.into_iter().map(|(_, path)| path).collect()))
    }
}

/// The column and the path of `column->>'path'`, in any spelling.
fn text_path(expression: &str) -> Option<(String, String)> {
    let (document, path) = match plain(stored_expression(expression)?) {
        Expr::BinaryOp { left, op: BinaryOperator::LongArrow, right } => (*left, *right),
        Expr::Function(unquote) if has_name(&unquote, "json_unquote") => {
            let [inner] = <[Expr; 1]>::try_from(arguments(unquote)?).ok()?;
            match plain(inner) {
                Expr::BinaryOp { left, op: BinaryOperator::Arrow, right } => (*left, *right),
                Expr::Function(extract) if has_name(&extract, "json_extract") => {
                    <[Expr; 2]>::try_from(arguments(extract)?).ok()?.into()
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    column_and_path(document, path)
}

/// An expression without its outer parentheses.
fn plain(mut expr: Expr) -> Expr {
    while let Expr::Nested(inner) = expr {
        expr = *inner;
    }
    expr
}

fn has_name(function: &Function, name: &str) -> bool {
    function.name.to_string().eq_ignore_ascii_case(name)
}

fn arguments(function: Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = function.args else { return None };
    let plain = |arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    };
    list.args.into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use crate::parse::define::{TableLine, stored_line};

    #[test]
    fn spellings_of_texts_at_paths_are_one() {
        let texts = |parts: &str| {
            let line = stored_line(&format!("FULLTEXT KEY ft ({parts})"))?;
            let TableLine::Key(key) = line else { return None };
            key.texts_at_paths()
        };
        let title = Some(("doc".to_owned(), vec!["$.title".to_owned()]));
        for spelling in [
            "(doc->>'$.title')",
            "((`doc` ->> '$.title'))",
            "(JSON_UNQUOTE(doc->'$.title'))",
            "(json_unquote(json_extract(`doc`,_utf8mb4'$.title')))",
        ] {
            assert_eq!(texts(spelling), title, "{spelling}");
        }
        let both = vec!["$.a".to_owned(), "$.b".to_owned()];
        assert_eq!(texts("(doc->>'$.a'), (DOC->>'$.b')"), Some(("doc".to_owned(), both)));
        for other in [
            "title",
            "(doc->'$.title')",
            "(doc->>'$.a'), title",
            "(doc->>'$.a'), (other->>'$.b')",
            "(LOWER(doc->>'$.a'))",
            "(doc->>CONCAT('$.', 'a'))",
        ] {
            assert_eq!(texts(other), None, "{other}");
        }
    }
}
