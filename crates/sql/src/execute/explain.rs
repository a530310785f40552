//! EXPLAIN: which index answers, in plain words.
//!
//! ```text
//! explain := ("EXPLAIN" | "DESCRIBE" | "DESC") "EXTENDED"? ("FORMAT" "=" format)? select
//! format  := "TRADITIONAL" | "TREE" | "JSON"
//! ```

use remora_mysql::Collation;

use super::{
    explained,
    shapes::{self, Access},
};
use crate::{
    Cell, Column, Error, Outcome, Reply, Result,
    meaning::types::ExprType,
    parse::{Statement, split},
    scan::SCAN_OF,
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
    if source.is_word(from, "ANALYZE") {
        return Err(Error::unsupported("EXPLAIN ANALYZE"));
    }
    from += usize::from(source.is_word(from, "EXTENDED"));
    let mut format = Format::Traditional;
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
    let text = source.text.get(start..).unwrap_or_default();
    let (accesses, tree) = match shapes::explain(session, text, statement.parameters) {
        Some(accesses) => {
            let line = |access: &Access| format!("-> {} on {}", access.extra, access.table);
            let tree = accesses.iter().map(line).collect();
            (accesses, tree)
        }
        None => planned(session, statement, text).await?,
    };
    match format {
        Format::Traditional => traditional(reply, &accesses)?,
        Format::Tree => single(reply, &tree.join("\n"))?,
        Format::Json => single(reply, &json(&accesses, &tree))?,
    }
    Ok(Outcome::default())
}

/// What the planner makes of it.
async fn planned(
    session: &mut SessionState,
    statement: &Statement<'_>,
    text: &[u8],
) -> Result<(Vec<Access>, Vec<String>)> {
    let mut sources = split(text, false, statement.source.mode)?;
    let source = sources.pop().ok_or_else(|| Error::unsupported("EXPLAIN"))?;
    let inner = Statement { source: source.into(), ..statement.clone() };
    let lines = explained(session, &inner).await?;
    let scan = |line: &String| {
        let (table, extra) = line.trim().strip_prefix(SCAN_OF)?.split_once(": ")?;
        let by_text = extra.contains("the text index");
        let every = extra.contains("every row");
        let kind = match (by_text, every) {
            (true, _) => "fulltext",
            (_, true) => "ALL",
            _ => "range",
        };
        let (table, extra) = (table.to_owned(), extra.to_owned());
        Some(Access { table, kind, key: None, rows: 0, extra })
    };
    Ok((lines.iter().filter_map(scan).collect(), lines))
}

/// MySQL's table of twelve columns.
fn traditional<R: Reply>(reply: &mut R, accesses: &[Access]) -> Result<()> {
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
    for access in accesses {
        let key = access.key.as_deref().map_or(Cell::Null, Cell::Text);
        reply.row(&[
            Cell::Int(1),
            Cell::Text("SIMPLE"),
            Cell::Text(&access.table),
            Cell::Null,
            Cell::Text(access.kind),
            key,
            key,
            Cell::Null,
            Cell::Null,
            Cell::Int(i64::try_from(access.rows).unwrap_or(i64::MAX)),
            Cell::Double(100.0),
            Cell::Text(&access.extra),
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
            serde_json::json!({
                "table_name": access.table,
                "access_type": access.kind,
                "key": access.key,
                "rows_examined_per_scan": access.rows,
                "message": access.extra,
            })
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
