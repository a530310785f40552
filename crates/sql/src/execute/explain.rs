//! EXPLAIN and EXPLAIN ANALYZE: how the tables of a statement would be read now.
//!
//! ```text
//! explain := ("EXPLAIN" | "DESCRIBE" | "DESC") ("EXTENDED" | "ANALYZE")? ("FORMAT" "=" format)? (select | write)
//! write   := insert | replace | update | delete
//! format  := "TRADITIONAL" | "TREE" | "JSON"
//! ```

use std::sync::Arc;

use remora_mysql::Collation;

use super::{
    access::{Explained, TableAccess},
    analyzed, planned_accesses,
    run::parsed,
    shapes,
};
use crate::{
    Cell, Column, Error, Outcome, Reply, Result,
    meaning::types::ExprType,
    parse::{Statement, StatementKind, write::ChangedQuery},
    state::SessionState,
};

/// The output format.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ExplainFormat {
    Traditional,
    Tree,
    Json,
}

/// A parsed EXPLAIN.
pub(crate) struct ExplainRequest<'a> {
    /// The statement to explain.
    pub statement: Statement<'a>,
    /// The output format.
    pub format: ExplainFormat,
    /// Whether the statement is run and measured (EXPLAIN ANALYZE).
    pub is_analysis: bool,
}

/// A statement that writes, and how it finds its rows.
pub(crate) struct Writing<'w> {
    /// INSERT, REPLACE, UPDATE or DELETE.
    pub verb: &'static str,
    /// The names or aliases of the tables that it changes.
    pub targets: Vec<String>,
    /// What finds its rows; `None` if its text holds them (VALUES).
    pub rows: Option<RowsExplained<'w>>,
}

/// What finds the rows of a statement that writes.
pub(crate) enum RowsExplained<'w> {
    /// The query of an INSERT, as a statement.
    Select(Statement<'w>),
    /// A query made of parts of the statement.
    Query(&'w Statement<'w>, Box<ChangedQuery>),
}

/// The answer: steps of the plan and accesses of tables.
struct Explanation {
    accesses: Vec<TableAccess>,
    tree: Vec<String>,
    selects: usize,
}

/// Parses an EXPLAIN.
pub(crate) fn explained<'a>(statement: &Statement<'a>) -> Result<ExplainRequest<'a>> {
    let source = &statement.source;
    let mut from = 1;
    let is_analysis = source.is_word(from, "ANALYZE");
    from += usize::from(is_analysis || source.is_word(from, "EXTENDED"));
    let mut format = if is_analysis { ExplainFormat::Tree } else { ExplainFormat::Traditional };
    if source.is_word(from, "FORMAT") {
        format = match source.plain(from + 2).unwrap_or_default().to_uppercase().as_str() {
            "TRADITIONAL" | "DEFAULT" => ExplainFormat::Traditional,
            "TREE" => ExplainFormat::Tree,
            "JSON" => ExplainFormat::Json,
            other => return Err(Error::unsupported(format!("EXPLAIN FORMAT={other}"))),
        };
        from += 3;
    }
    if from >= source.tokens.len() {
        return Err(source.syntax_error(from));
    }
    let inner = Arc::new(source.within(from..source.tokens.len()));
    let inner = Statement { source: inner, ..statement.clone() };
    match inner.kind() {
        StatementKind::Select | StatementKind::Rows => {
            Ok(ExplainRequest { statement: inner, format, is_analysis })
        }
        _ if source.is_word(from, "FOR") => Err(Error::unsupported("EXPLAIN FOR CONNECTION")),
        _ => Err(source.syntax_error(from)),
    }
}

/// Runs EXPLAIN of a SELECT.
pub(crate) async fn explain<R: Reply>(
    session: &mut SessionState,
    asked: &ExplainRequest<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let statement = &asked.statement;
    if asked.is_analysis {
        if asked.format != ExplainFormat::Tree {
            return Err(Error::unsupported("EXPLAIN ANALYZE of another FORMAT than TREE"));
        }
        let answered = shapes::analyze(session, &statement.source, statement.parameters).await?;
        let lines = match answered {
            Some(lines) => lines,
            None => analyzed(session, statement).await?,
        };
        session.warnings.clear();
        single(reply, &lines.join("\n"))?;
        return Ok(Outcome::default());
    }
    let told = explain_select(session, statement, None).await?;
    session.warnings.clear();
    match asked.format {
        ExplainFormat::Traditional => traditional(reply, &told, None)?,
        ExplainFormat::Tree => single(reply, &told.tree.join("\n"))?,
        ExplainFormat::Json => single(reply, &json(&told, None))?,
    }
    Ok(Outcome::default())
}

/// Runs EXPLAIN of a statement that writes.
pub(crate) async fn explain_write<R: Reply>(
    session: &mut SessionState,
    format: ExplainFormat,
    writing: &Writing<'_>,
    reply: &mut R,
) -> Result<Outcome> {
    let mut told = match &writing.rows {
        Some(RowsExplained::Select(select)) => explain_select(session, select, None).await?,
        Some(RowsExplained::Query(statement, query)) => {
            explain_select(session, statement, Some(query)).await?
        }
        None => Explanation { accesses: Vec::new(), tree: Vec::new(), selects: 1 },
    };
    session.warnings.clear();
    if told.tree.is_empty() || writing.reads_no_table(&told) {
        told.tree = vec!["-> Rows fetched before execution".to_owned()];
    }
    let head = format!("-> {}", writing.line());
    let below = told.tree.iter().map(|line| format!("    {line}"));
    told.tree = std::iter::once(head).chain(below).collect();
    if writing.inserts() {
        // The outer SELECT of constants reads no table; only its subqueries do.
        told.accesses.retain(|access| access.select > 1 || access.table.is_some());
        told.accesses.insert(0, TableAccess::of_inserted(writing.targets.first()));
    }
    match format {
        ExplainFormat::Traditional => traditional(reply, &told, Some(writing))?,
        ExplainFormat::Tree => single(reply, &told.tree.join("\n"))?,
        ExplainFormat::Json => single(reply, &json(&told, Some(writing)))?,
    }
    Ok(Outcome::default())
}

impl Writing<'_> {
    fn inserts(&self) -> bool {
        matches!(self.verb, "INSERT" | "REPLACE")
    }

    /// The first line of a tree.
    fn line(&self) -> String {
        let targets = self.targets.join(", ");
        match self.verb {
            "INSERT" => format!("Insert into {targets}"),
            "REPLACE" => format!("Replace into {targets}"),
            // Buffered: all rows are found before the first one is changed.
            "DELETE" => format!("Delete from {} (buffered)", self.targets.join(" (buffered), ")),
            _ => format!("Update {} (buffered)", self.targets.join(" (buffered), ")),
        }
    }

    /// Whether all rows are literals of the text.
    fn reads_no_table(&self, told: &Explanation) -> bool {
        self.inserts() && told.accesses.iter().all(|access| access.table.is_none())
    }

    /// The verb, if this table is one that changes.
    fn verb_of(&self, nth: usize, access: &TableAccess) -> Option<&'static str> {
        let is_target = match &access.table {
            _ if self.inserts() => nth == 0,
            None => nth == 0,
            Some(table) => self.targets.iter().any(|target| target.eq_ignore_ascii_case(table)),
        };
        (access.select == 1 && is_target).then_some(self.verb)
    }
}

/// Finds out how a SELECT, or the query of the rows that a statement changes, would read its tables.
async fn explain_select(
    session: &mut SessionState,
    statement: &Statement<'_>,
    changed: Option<&ChangedQuery>,
) -> Result<Explanation> {
    let answered = shapes::explain(session, statement, changed).await?;
    Ok(match answered {
        Some(Explained { accesses, selects }) => {
            let lines = accesses.iter().map(|access| format!("-> {}", access.estimated_line()));
            let tree = lines.collect();
            Explanation { accesses, tree, selects }
        }
        None => {
            let query = match changed {
                Some(changed) => changed.query.clone(),
                None => parsed(statement)?,
            };
            let (tree, accesses, selects) =
                planned_accesses(session, query, &statement.source).await?;
            Explanation { accesses, tree, selects }
        }
    })
}

/// A text, or NULL.
fn shown(text: &Option<String>) -> Cell<'_> {
    text.as_deref().map_or(Cell::Null, Cell::Text)
}

/// MySQL's traditional table of twelve columns.
fn traditional<R: Reply>(
    reply: &mut R,
    told: &Explanation,
    writing: Option<&Writing<'_>>,
) -> Result<()> {
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
    for (nth, access) in told.accesses.iter().enumerate() {
        let verb = writing.and_then(|writing| writing.verb_of(nth, access));
        let (table, key) = (text(&access.table), text(&access.key));
        let (length, compared) = (text(&access.key_len), text(&access.compared));
        let possible = text(&Some(access.possible.join(",")));
        let extra = text(&Some(access.extra.join("; ")));
        let whole = |number: u64| Cell::Int(i64::try_from(number).unwrap_or(i64::MAX));
        reply.row(&[
            whole(access.select as u64),
            Cell::Text(verb.unwrap_or_else(|| access.select_type(told.selects))),
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

fn json(told: &Explanation, writing: Option<&Writing<'_>>) -> String {
    let tables: Vec<serde_json::Value> = told
        .accesses
        .iter()
        .enumerate()
        .map(|(nth, access)| {
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
            let verb = writing.and_then(|writing| writing.verb_of(nth, access));
            if let (Some(verb), Some(said)) = (verb, table.as_object_mut()) {
                said.insert(verb.to_lowercase(), true.into());
            }
            table
        })
        .collect();
    let block = match tables.as_slice() {
        [table] => serde_json::json!({ "select_id": 1, "table": table }),
        tables => serde_json::json!({ "select_id": 1, "nested_loop": tables, "plan": told.tree }),
    };
    let whole = serde_json::json!({ "query_block": block });
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}

fn text_type() -> ExprType {
    ExprType::text(1_024, Collation::UTF8MB4_0900_AI_CI)
}
