//! EXPLAIN and EXPLAIN ANALYZE: how the tables of a statement would be read now.
//!
//! ```text
//! explain := ("EXPLAIN" | "DESCRIBE" | "DESC") ("EXTENDED" | "ANALYZE")? ("FORMAT" "=" format)? select
//! format  := "TRADITIONAL" | "TREE" | "JSON"
//! ```

use std::sync::Arc;

use remora_mysql::Collation;

use super::{access::Access, analyzed, explained, shapes};
use crate::{
    Cell, Column, Error, Outcome, Reply, Result,
    meaning::types::ExprType,
    parse::{Source, Statement, split},
    state::SessionState,
};

/// In which form it is asked for.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Traditional,
    Tree,
    Json,
}

/// Runs EXPLAIN of a statement.
pub(crate) async fn explain<R: Reply>(
    session: &mut SessionState,
    statement: &Statement<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let source = &statement.source;
    let mut from = 1;
    let is_analysis = source.is_word(from, "ANALYZE");
    from += usize::from(is_analysis || source.is_word(from, "EXTENDED"));
    let mut format = if is_analysis { Format::Tree } else { Format::Traditional };
    if source.is_word(from, "FORMAT") {
        format = match source.plain(from + 2).unwrap_or_default().to_uppercase().as_str() {
            "TRADITIONAL" | "DEFAULT" => Format::Traditional,
            "TREE" => Format::Tree,
            "JSON" => Format::Json,
            other => return Err(Error::unsupported(format!("EXPLAIN FORMAT={other}"))),
        };
        from += 3;
    }
    let start = source.tokens.get(from).ok_or_else(|| source.syntax_error(from))?.start;
    let inner = inner(statement, start)?;
    if is_analysis {
        if format != Format::Tree {
            return Err(Error::unsupported("EXPLAIN ANALYZE of another FORMAT than TREE"));
        }
        let answered = shapes::analyze(session, &inner.source, inner.parameters).await?;
        let lines = match answered {
            Some(lines) => lines,
            None => analyzed(session, &inner).await?,
        };
        session.warnings.clear();
        single(reply, &lines.join("\n"))?;
        return Ok(Outcome::default());
    }
    let answered = shapes::explain(session, &inner.source, inner.parameters).await?;
    let (accesses, tree, selects) = match answered {
        Some(shapes::Explained { accesses, selects }) => {
            let lines = accesses.iter().map(|access| format!("-> {}", access.estimated_line()));
            let tree = lines.collect();
            (accesses, tree, selects)
        }
        None => {
            let (lines, accesses, selects) = explained(session, &inner).await?;
            (accesses, lines, selects)
        }
    };
    session.warnings.clear();
    match format {
        Format::Traditional => traditional(reply, &accesses, selects)?,
        Format::Tree => single(reply, &tree.join("\n"))?,
        Format::Json => single(reply, &json(&accesses, &tree))?,
    }
    Ok(Outcome::default())
}

/// The statement that stands from a place of the text on.
fn inner<'a>(statement: &Statement<'a>, start: usize) -> Result<Statement<'a>> {
    let source = &statement.source;
    let text = source.text.get(start..).unwrap_or_default();
    let made = split(text, false, source.mode)?.pop();
    let made = made.ok_or_else(|| Error::unsupported("EXPLAIN"))?;
    let made = Source { interrupted: Arc::clone(&source.interrupted), ..made };
    Ok(Statement { source: Arc::new(made), ..statement.clone() })
}

/// A text, or NULL.
fn shown(text: &Option<String>) -> Cell<'_> {
    text.as_deref().map_or(Cell::Null, Cell::Text)
}

/// MySQL's table of twelve columns.
fn traditional<R: Reply>(reply: &mut R, accesses: &[Access], selects: usize) -> Result<()> {
    const NAMES: [&str; 12] = [
        "id",
        "select_type",
        "table",
        "partitions",
        "type",
        "possible_keys",
        "key",
        "key_len",
        "ref",
        "rows",
        "filtered",
        "Extra",
    ];
    let columns: Vec<Column> = NAMES
        .iter()
        .map(|name| match *name {
            "id" | "rows" => ExprType::int(20).column_named(name),
            "filtered" => ExprType::double().column_named(name),
            name => text_type().column_named(name),
        })
        .collect();
    reply.columns(&columns)?;
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    for access in accesses {
        let (table, key) = (text(&access.table), text(&access.key));
        let (length, compared) = (text(&access.key_len), text(&access.compared));
        let possible = text(&Some(access.possible.join(",")));
        let extra = text(&Some(access.extra.join("; ")));
        let whole = |number: u64| Cell::Int(i64::try_from(number).unwrap_or(i64::MAX));
        reply.row(&[
            whole(access.select as u64),
            Cell::Text(access.select_type(selects)),
            shown(&table),
            shown(&access.parts),
            access.kind.map_or(Cell::Null, Cell::Text),
            shown(&possible),
            shown(&key),
            shown(&length),
            shown(&compared),
            access.rows.map_or(Cell::Null, whole),
            access.rows.map_or(Cell::Null, |_| Cell::Double(access.filtered)),
            shown(&extra),
        ])?;
    }
    Ok(())
}

fn single<R: Reply>(reply: &mut R, text: &str) -> Result<()> {
    reply.columns(&[text_type().column_named("EXPLAIN")])?;
    reply.row(&[Cell::Text(text)])
}

fn json(accesses: &[Access], tree: &[String]) -> String {
    let tables: Vec<serde_json::Value> = accesses
        .iter()
        .map(|access| {
            let mut table = serde_json::json!({
                "table_name": access.table,
                "access_type": access.kind,
                "possible_keys": access.possible,
                "key": access.key,
                "key_length": access.key_len,
                "ref": access.compared,
                "rows_examined_per_scan": access.rows,
                "filtered": access.filtered,
                "message": access.extra.join("; "),
            });
            if let (Some(parts), Some(said)) = (&access.parts, table.as_object_mut()) {
                let parts: Vec<&str> = parts.split(',').collect();
                said.insert("partitions".to_owned(), parts.into());
            }
            table
        })
        .collect();
    let block = match tables.as_slice() {
        [table] => serde_json::json!({ "select_id": 1, "table": table }),
        tables => serde_json::json!({ "select_id": 1, "nested_loop": tables, "plan": tree }),
    };
    let whole = serde_json::json!({ "query_block": block });
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn text_type() -> ExprType {
    ExprType::text(1_024, Collation::UTF8MB4_0900_AI_CI)
}
