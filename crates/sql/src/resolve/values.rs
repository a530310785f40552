//! VALUES and TABLE as queries.

use datafusion::sql::sqlparser::ast::{
    Expr, SelectItem, SetExpr, SetOperator, SetQuantifier, Table, WildcardAdditionalOptions,
};
use remora_mysql::ErrorCode;

use super::{ClientColumn, Env, Output, Resolver, expr::ClauseContext, scope::Clause};
use crate::{
    Error, Result,
    parse::write::{select_from, table_named},
    resolve::{
        scope::Scope,
        select::{empty_select, item},
    },
};

/// The most rows of a VALUES: each is planned as a SELECT.
const MAX_ROWS: usize = 1_536;

impl Resolver<'_> {
    /// Resolves VALUES. Its columns are called `column_0` and so on.
    pub(super) fn values(
        &mut self,
        body: &mut SetExpr,
        env: Env<'_>,
        names: Option<&[String]>,
    ) -> Result<Vec<Output>> {
        let SetExpr::Values(values) = body else { return Ok(Vec::new()) };
        if values.rows.len() > MAX_ROWS {
            let message = format!(
                "VALUES has more than {MAX_ROWS} rows: insert them into a temporary table first"
            );
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
        let scope = Scope::new(env.scope);
        let mut count = 0;
        for row in &mut values.rows {
            count = row.len();
            for each in row.iter_mut() {
                self.expr(each, &scope, env, ClauseContext::plain(Clause::Fields))?;
            }
        }
        let outputs: Vec<Output> = (0..count)
            .map(|index| {
                let given = names.and_then(|names| names.get(index)).cloned();
                let name = given.unwrap_or_else(|| format!("column_{index}"));
                let shown = ClientColumn { name: name.clone(), ..ClientColumn::default() };
                Output { planned: name.to_lowercase(), shown }
            })
            .collect();
        let rows = std::mem::take(&mut values.rows).into_iter();
        let mut selects: Vec<SetExpr> = rows.map(|row| selected(row.content, &outputs)).collect();
        *body = union(&mut selects).ok_or_else(|| Error::unsupported("VALUES without rows"))?;
        Ok(outputs)
    }
}

/// One row as a SELECT.
fn selected(row: Vec<Expr>, outputs: &[Output]) -> SetExpr {
    let mut select = empty_select();
    let pairs = row.into_iter().zip(outputs);
    select.projection = pairs.map(|(expr, output)| item(expr, &output.planned)).collect();
    SetExpr::Select(Box::new(select))
}

/// UNION ALL of some SELECTs, as a balanced tree.
fn union(selects: &mut Vec<SetExpr>) -> Option<SetExpr> {
    if selects.len() < 2 {
        return selects.pop();
    }
    let mut rest = selects.split_off(selects.len() / 2);
    Some(SetExpr::SetOperation {
        left: Box::new(union(selects)?),
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        right: Box::new(union(&mut rest)?),
    })
}

/// `TABLE t` as `SELECT * FROM t`.
pub(super) fn select_all(table: &Table) -> Result<datafusion::sql::sqlparser::ast::Select> {
    let name = table.table_name.clone().ok_or_else(|| Error::unsupported("TABLE"))?;
    let parts: Vec<&str> = table.schema_name.iter().chain([&name]).map(String::as_str).collect();
    let mut select = select_from(Vec::new(), vec![table_named(&parts, None)]);
    select.projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
    Ok(select)
}
