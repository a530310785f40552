//! How many rows a SELECT finds without its LIMIT, for SHOW META.

use datafusion::sql::sqlparser::ast::{Query, SelectItem, SetExpr, TableWithJoins};
use remora_engine::Value;

use super::run;
use crate::{
    Result,
    parse::{
        Statement, count_of,
        write::{derived_table, query_from, table_alias},
    },
    resolve::is_grouped,
    state::SessionState,
};

/// Counts the rows of a statement without its LIMIT; `None` if it is not one SELECT from tables.
pub(crate) async fn counted_rows(
    session: &SessionState,
    statement: &Statement<'_>,
) -> Result<Option<u64>> {
    let Some(query) = counting(run::parsed(statement)?) else { return Ok(None) };
    let mut query = run::ResolvedQuery::new(session, query, &statement.source).await?;
    Ok(match query.collect(session).await?.value(0, 0) {
        Value::Int(count) => u64::try_from(count).ok(),
        Value::Uint(count) => Some(count),
        _ => None,
    })
}

/// The query of COUNT(*) for the rows of a query.
fn counting(mut query: Query) -> Option<Query> {
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if select.from.is_empty() || query.with.is_some() {
        return None;
    }
    (query.order_by, query.limit_clause) = (None, None);
    query.locks.clear();
    select.select_modifiers = None;
    if !is_grouped(select) && select.having.is_none() && select.distinct.is_none() {
        select.projection = vec![SelectItem::UnnamedExpr(count_of(None))];
        return Some(query);
    }
    let options = query.settings.take();
    let relation = derived_table(query, table_alias("found"));
    let from = vec![TableWithJoins { relation, joins: Vec::new() }];
    Some(Query { settings: options, ..query_from(vec![count_of(None)], from) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use remora_mysql::LexMode;

    use super::*;
    use crate::parse::split;

    #[test]
    fn what_is_counted_is_what_is_found() {
        let counted = |text: &str| {
            let source = split(text.as_bytes(), false, LexMode::default()).unwrap().remove(0);
            let values = [Value::Int(1), Value::Text("q".into()), Value::Int(3)];
            let statement = Statement { source: Arc::new(source), parameters: &values };
            counting(run::parsed(&statement).unwrap()).map(|query| query.to_string())
        };
        assert_eq!(
            counted("SELECT ?, b FROM t WHERE MATCH(?) ORDER BY ? LIMIT 5").unwrap(),
            "SELECT COUNT(*) FROM t WHERE match_keywords('q', '')"
        );
        assert_eq!(
            counted("SELECT DISTINCT a FROM t WHERE b = ? ORDER BY a LIMIT 5").unwrap(),
            "SELECT COUNT(*) FROM (SELECT DISTINCT a FROM t WHERE b = 1) AS `found`"
        );
        let found =
            counted("SELECT g FROM t GROUP 2 BY g WITHIN GROUP ORDER BY a LIMIT 3").unwrap();
        assert!(found.starts_with("SELECT COUNT(*) FROM (SELECT g FROM t GROUP BY "), "{found}");
        assert!(found.ends_with(") AS `found`") && !found.contains("LIMIT"), "{found}");
        let found = counted("SELECT MAX(a) FROM t WHERE b = ? OPTION max_matches = 5").unwrap();
        assert_eq!(
            found,
            "SELECT COUNT(*) FROM (SELECT MAX(a) FROM t WHERE b = 1) AS `found` SETTINGS max_matches = '5'"
        );
        assert_eq!(counted("SELECT a FROM t UNION SELECT b FROM t"), None);
    }
}
