//! CALL PQ, as in Manticore: finds the rules of a percolate table that match documents.
//!
//! ```text
//! call      := "CALL" "PQ" "(" table "," documents ("," value ["AS"] name)* ")"
//! documents := text | "(" text ("," text)* ")"
//! ```
//! The documents become an index in memory. Only rules whose required keyword occurs in it are
//! evaluated. The filters of the rules that matched are then evaluated by SELECTs.

use std::{sync::Arc, time::Instant};

use remora_engine::{ColumnType, DocumentBatch, Reader, Row, StoredQuery, Value};
use remora_mysql::{Collation, ErrorCode};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value as Json;

use super::arguments::{Argument, Arguments};
use crate::{
    Cell, Column, Error, Reply, Result,
    catalog::{SqlTable, TableName, Verb},
    error::from_engine,
    meaning::types::ExprType,
    shared::{MAX_RULES_BYTES, Rule, Rules, VisibleRules, rule_bytes},
    state::{Meta, SessionState},
    transaction::ParsedRules,
    write::{FILTERS, ID, PercolateDocuments, QUERY, TAGS, check_filters, refused, text_of},
};

/// The most documents of a call, and their most bytes. Their index takes several times as much
/// memory.
const MAX_DOCUMENTS: usize = 10_000;
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;
/// The approximate most bytes of memory per byte of a document: as JSON, as text and in the index.
const INDEX_BYTES: u64 = 40;
/// The most rule-document pairs whose results are held at a time.
const ANSWERS_AT_ONCE: usize = 4 << 20;
/// How many rules are read at a time.
const RULES_AT_ONCE: usize = 1_024;

/// How many rules are evaluated before other tasks get the thread.
const RULES_BETWEEN_YIELDS: usize = 64;

/// Runs CALL PQ. The tokens are after the opening parenthesis.
pub(super) async fn call<R: Reply>(
    session: &mut SessionState,
    arguments: &mut Arguments<'_>,
    reply: &mut R,
) -> Result<()> {
    let since = Instant::now();
    let name = table_of(session, &arguments.text()?)?;
    arguments.tokens.need(",")?;
    let texts = arguments.texts()?;
    let options = Options::read(arguments)?;
    let engine_name = name.engine_name(&session.shared);
    let reader = session.reading();
    let schema = reader.schema(&engine_name).map_err(|_| name.missing())?;
    let documents = PercolateDocuments::of(&name, &schema).ok_or_else(|| no_rules(&name))?;
    if schema.is_distributed() {
        return Err(Error::unsupported("CALL PQ of a distributed table: call it for each part"));
    }
    let rules = rules_of(session, &reader, &name, &engine_name, &documents).await?;
    let given = CallDocuments::read(session, texts, &options, documents.table())?;
    let rows = documents.rows(session, given.values).await?;
    let schema = &documents.table().schema;
    let batch = DocumentBatch::new(schema, &rows, reader.ending());
    let batch = batch.map_err(|error| from_engine(&error))?;
    let setup = since.elapsed();
    let candidates = rules.candidates(&batch);
    let rejected = rules.len() - candidates.len();
    reply.columns(&options.columns())?;
    let (mut matched, mut answered) = (Vec::new(), ReplyCounts::new(rows.len()));
    for (nth, rule) in candidates.into_iter().enumerate() {
        if nth % RULES_BETWEEN_YIELDS == 0 {
            session.check_interrupted()?;
            tokio::task::yield_now().await;
        }
        let found = batch.find(&rule.stored, reader.ending());
        let found = found.map_err(|error| from_engine(&error))?;
        if !found.is_empty() {
            matched.push((Arc::clone(rule), found));
        }
        if matched.len().saturating_mul(rows.len()) >= ANSWERS_AT_ONCE {
            answered.failed += filter(session, &documents, &rows, &mut matched).await?;
            send(&matched, &given.labels, &options, reply).await?;
            answered.take(&mut matched);
        }
    }
    answered.failed += filter(session, &documents, &rows, &mut matched).await?;
    send(&matched, &given.labels, &options, reply).await?;
    answered.take(&mut matched);
    let seconds = |time: std::time::Duration| format!("{:.3} sec", time.as_secs_f64());
    let mut figures = vec![
        ("Total", seconds(since.elapsed())),
        ("Queries matched", answered.queries.to_string()),
        ("Queries failed", answered.failed.to_string()),
        ("Document matched", answered.documents().to_string()),
        ("Total queries stored", rules.len().to_string()),
        ("Term only queries", rules.by_keyword_count().to_string()),
    ];
    if options.verbose {
        figures.push(("Setup", seconds(setup)));
        figures.push(("Fast rejected queries", rejected.to_string()));
    }
    let figures = figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    session.meta = Some(Box::new(Meta { figures, ..Meta::default() }));
    Ok(())
}

/// Counts of the results sent.
struct ReplyCounts {
    queries: usize,
    /// Rules whose filters failed for a document that matched their query.
    failed: usize,
    /// For each document, whether any rule matched it.
    matched: Vec<bool>,
}

impl ReplyCounts {
    fn new(documents: usize) -> Self {
        Self { queries: 0, failed: 0, matched: vec![false; documents] }
    }

    /// Counts results that were sent, and clears the list.
    fn take(&mut self, sent: &mut Vec<Matched>) {
        self.queries += sent.len();
        for document in sent.drain(..).flat_map(|(_, found)| found) {
            if let Some(is_matched) = self.matched.get_mut(document as usize) {
                *is_matched = true;
            }
        }
    }

    fn documents(&self) -> usize {
        self.matched.iter().filter(|is_matched| **is_matched).count()
    }
}

/// The table of this name, which the user must be allowed to read.
fn table_of(session: &SessionState, named: &str) -> Result<TableName> {
    let name = match named.split_once('.') {
        Some((database, table)) => TableName::new(database, table),
        None => TableName::new(session.current_database()?, named),
    };
    name.check(&session.identity, Verb::Select)?;
    Ok(name)
}

fn no_rules(name: &TableName) -> Error {
    let message =
        format!("Table '{name}' is no percolate table: CREATE TABLE … type='pq' makes one");
    Error::new(ErrorCode::ParseError, message)
}

/// The options after the documents.
struct Options {
    is_json: bool,
    documents: bool,
    id_field: Option<String>,
    query: bool,
    verbose: bool,
    skips_bad: bool,
    skips_empty: bool,
    shift: i64,
}

impl Options {
    fn read(arguments: &mut Arguments<'_>) -> Result<Self> {
        let mut options = Self {
            is_json: true,
            documents: false,
            id_field: None,
            query: false,
            verbose: false,
            skips_bad: false,
            skips_empty: false,
            shift: 0,
        };
        arguments.options(|name, value| options.set(&name.to_lowercase(), value))?;
        Ok(options)
    }

    /// The columns of the result.
    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![ExprType::uint(20).not_null().column_named("id")];
        if self.documents {
            columns.push(text_column("documents"));
        }
        if self.query {
            columns.extend(["query", "tags", "filters"].map(text_column));
        }
        columns
    }

    fn set(&mut self, name: &str, value: Argument) -> Result<()> {
        let unknown = || {
            let message = format!("unknown option '{name}' (or bad argument type)");
            Err(Error::new(ErrorCode::ParseError, message))
        };
        match (name, value) {
            ("docs_json", Argument::Number(is)) => self.is_json = is != 0,
            ("docs", Argument::Number(is)) => self.documents = is != 0,
            ("query", Argument::Number(is)) => self.query = is != 0,
            ("verbose", Argument::Number(is)) => self.verbose = is != 0,
            ("skip_bad_json", Argument::Number(is)) => self.skips_bad = is != 0,
            ("skip_empty", Argument::Number(is)) => self.skips_empty = is != 0,
            ("shift", Argument::Number(shift)) => self.shift = shift,
            ("docs_id", Argument::Text(field)) => self.id_field = Some(field),
            // Manticore's ways to distribute documents or rules to agents. The result is the same,
            // and there are no agents here.
            ("mode", Argument::Text(mode)) if mode == "sparsed" || mode == "sharded" => {}
            _ => return unknown(),
        }
        Ok(())
    }
}

/// The documents of a call.
#[derive(Default)]
struct CallDocuments {
    /// For each document, positions of columns and their values.
    values: Vec<Vec<(usize, Value)>>,
    /// The label of each document in the result.
    labels: Vec<String>,
}

impl CallDocuments {
    fn read(
        session: &SessionState,
        texts: Vec<String>,
        options: &Options,
        table: &SqlTable,
    ) -> Result<Self> {
        let bytes: u64 = texts.iter().map(|text| text.len() as u64).sum();
        let most = session.shared.settings.max_query_memory_bytes / INDEX_BYTES;
        let most = most.min(MAX_DOCUMENT_BYTES);
        if bytes > most {
            let message = format!(
                "the documents of CALL PQ take {bytes} bytes, and {most} at most: make several calls"
            );
            return Err(Error::new(ErrorCode::OutOfMemory, message));
        }
        let mut given = Self::default();
        let mut number = 0_i64;
        for text in texts {
            session.check_interrupted()?;
            for document in split(text, options) {
                number += 1;
                if number > MAX_DOCUMENTS as i64 {
                    let message =
                        format!("CALL PQ takes {MAX_DOCUMENTS} documents: make several calls");
                    return Err(Error::new(ErrorCode::ParseError, message));
                }
                given.add(session, document, number, options, table)?;
            }
        }
        Ok(given)
    }

    /// Adds a document. A bad one is an error, or a warning if bad documents may be skipped.
    fn add(
        &mut self,
        session: &SessionState,
        document: Document,
        number: i64,
        options: &Options,
        table: &SqlTable,
    ) -> Result<()> {
        let warned = |skips: bool, message: String| match skips {
            true => {
                session.warn(ErrorCode::SearchWarning, message);
                Ok(())
            }
            false => Err(Error::new(ErrorCode::ParseError, message)),
        };
        let fields = match document {
            Document::Text(text) if text.is_empty() => {
                return warned(options.skips_empty, format!("document {number} is empty"));
            }
            Document::Text(text) => {
                let first = table.schema.words.as_ref().and_then(|words| words.columns.first());
                let values = first.map(|&field| (field, Value::Text(text.into())));
                self.values.push(values.into_iter().collect());
                self.labels.push(number.saturating_add(options.shift).to_string());
                return Ok(());
            }
            Document::Bad(why) => {
                let message = format!("document {number} is no JSON object: {why}");
                return warned(options.skips_bad, message);
            }
            Document::Fields(fields) if fields.is_empty() => {
                return warned(options.skips_empty, format!("document {number} is empty"));
            }
            Document::Fields(fields) => fields,
        };
        let label = match options.id_field.as_ref().map(|field| (field, find(&fields, field))) {
            None => number.saturating_add(options.shift).to_string(),
            Some((_, Some(Json::Number(id)))) if id.is_i64() || id.is_u64() => id.to_string(),
            Some((_, Some(Json::String(id)))) if id.parse::<i64>().is_ok() => id.clone(),
            Some((field, _)) => {
                let message =
                    format!("document {number} has no integer '{field}', which is docs_id");
                return warned(options.skips_bad, message);
            }
        };
        let mut values = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            // No rule can refer to a field that is not a column of the table.
            let Some(column) = table.column(&name).filter(|_| !value.is_null()) else { continue };
            match value_of(table, column, value) {
                Some(value) => values.push((column, value)),
                None => {
                    let message = format!(
                        "document {number}: '{name}' is an array or an object, and its column is neither JSON nor MULTI"
                    );
                    return warned(options.skips_bad, message);
                }
            }
        }
        self.values.push(values);
        self.labels.push(label);
        Ok(())
    }
}

/// A document of the call, before conversion.
enum Document {
    Text(String),
    Fields(serde_json::Map<String, Json>),
    /// Not a document, for this reason.
    Bad(String),
}

/// The documents in a text: the text itself, a JSON object, or several in an array.
fn split(text: String, options: &Options) -> Vec<Document> {
    if !options.is_json {
        return vec![Document::Text(text)];
    }
    if text.trim().is_empty() {
        return vec![Document::Fields(serde_json::Map::new())];
    }
    let of = |value: Json| match value {
        Json::Object(fields) => Document::Fields(fields),
        other => Document::Bad(format!("it is {}", kind_of(&other))),
    };
    match serde_json::from_str(&text) {
        Ok(Json::Array(values)) => values.into_iter().map(of).collect(),
        Ok(value) => vec![of(value)],
        Err(error) => vec![Document::Bad(error.to_string())],
    }
}

fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    }
}

/// The field of this name, ignoring case.
fn find<'f>(fields: &'f serde_json::Map<String, Json>, name: &str) -> Option<&'f Json> {
    let is_it = |(other, _): &(&String, &Json)| other.eq_ignore_ascii_case(name);
    fields.get(name).or_else(|| fields.iter().find(is_it).map(|(_, value)| value))
}

/// The value for a column; `None` if the JSON value cannot be one.
fn value_of(table: &SqlTable, column: usize, value: Json) -> Option<Value> {
    let kind = &table.columns.get(column)?.kind;
    let takes_json = kind.engine_type() == ColumnType::Json;
    match value {
        Json::String(text) if !takes_json || kind.multi().is_some() => {
            Some(Value::Text(text.into()))
        }
        Json::Array(_) | Json::Object(_) if !takes_json => None,
        value if takes_json => Some(Value::Json(value.to_string().into())),
        Json::Bool(is) => Some(Value::Int(is.into())),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Some(Value::Int(number)),
            (None, Some(number)) => Some(Value::Uint(number)),
            (None, None) => number.as_f64().map(Value::Float),
        },
        _ => None,
    }
}

/// The rules of a table as the session sees them: those of the reader's snapshot, and its own uncommitted changes. Of
/// these only the ones that are new since the last call are parsed.
async fn rules_of(
    session: &mut SessionState,
    reader: &Reader,
    name: &TableName,
    engine_name: &str,
    documents: &PercolateDocuments,
) -> Result<VisibleRules> {
    let committed = committed_rules(session, reader, name, engine_name, documents).await?;
    let Some(overlay) = session.transaction.overlay(engine_name) else {
        return Ok(VisibleRules::committed(committed));
    };
    let known = session.transaction.take_parsed_rules(engine_name);
    let (mut parsed, mut changed) = (ParsedRules::default(), FxHashSet::default());
    let (mut rules, mut room) = (Vec::new(), MAX_RULES_BYTES.saturating_sub(committed.bytes()));
    for (nth, (key, row)) in overlay.all().enumerate() {
        if nth % RULES_AT_ONCE == 0 {
            reader.ending().check().map_err(|error| from_engine(&error))?;
            tokio::task::yield_now().await;
        }
        let Some(Value::Uint(id)) = key.0.first() else { continue };
        changed.insert(*id);
        room += committed.get(*id).map_or(0, |rule| rule.bytes());
        let Some(row) = row else { continue };
        let (query, tags, filters) =
            (text_of(row, QUERY), text_of(row, TAGS), text_of(row, FILTERS).trim());
        let bytes = rule_bytes(query, tags, filters);
        room = room.checked_sub(bytes).ok_or_else(|| too_many_rules(name))?;
        let same = known.get(id).filter(|(of, _)| Arc::ptr_eq(of, row));
        let made = match same {
            Some((_, rule)) => Arc::clone(rule),
            None => Arc::new(rule(name, documents, *id, [query, tags, filters])?),
        };
        parsed.insert(*id, (Arc::clone(row), Arc::clone(&made)));
        rules.push(made);
    }
    session.transaction.keep_parsed_rules(engine_name, parsed);
    let own = Rules::new(committed.version, rules);
    Ok(VisibleRules::new(committed, own, changed))
}

/// The rules of a table in the reader's snapshot: cached, or read again.
async fn committed_rules(
    session: &SessionState,
    reader: &Reader,
    name: &TableName,
    engine_name: &str,
    documents: &PercolateDocuments,
) -> Result<Arc<Rules>> {
    let version = reader.version(engine_name).map_err(|error| from_engine(&error))?;
    let known = session.shared.percolators.get(engine_name);
    if let Some(known) = known.as_ref().filter(|known| known.version == version) {
        return Ok(Arc::clone(known));
    }
    // Rules of a dropped table of the same name are for other documents.
    let known = known.filter(|known| known.version.table == version.table);
    let known: FxHashMap<u64, &Arc<Rule>> =
        known.iter().flat_map(|known| &known.rules).map(|rule| (rule.id, rule)).collect();
    let (mut rules, mut bytes) = (Vec::new(), 0_usize);
    let mut after = None;
    loop {
        reader.ending().check().map_err(|error| from_engine(&error))?;
        tokio::task::yield_now().await;
        let keys = reader.keys_after(engine_name, after.as_deref(), RULES_AT_ONCE);
        let keys = keys.map_err(|error| from_engine(&error))?;
        let Some(last) = keys.last() else { break };
        let mut rows: Vec<(usize, Row)> = Vec::with_capacity(keys.len());
        let columns = [ID, QUERY, TAGS, FILTERS];
        let mut room = MAX_RULES_BYTES.saturating_sub(bytes);
        reader
            .get_many(engine_name, &keys, &columns, &mut |place, row| {
                let [query, tags, filters] = [QUERY, TAGS, FILTERS].map(|at| text_of(row, at));
                room = room.saturating_sub(rule_bytes(query, tags, filters));
                if room > 0 {
                    rows.push((place, std::mem::take(row)));
                }
                reader.ending().check()
            })
            .map_err(|error| from_engine(&error))?;
        if room == 0 {
            return Err(too_many_rules(name));
        }
        rows.sort_unstable_by_key(|(place, _)| *place);
        for (_, row) in &rows {
            let id = match row.get(ID) {
                Some(Value::Uint(id)) => *id,
                _ => continue,
            };
            let (query, tags, filters) =
                (text_of(row, QUERY), text_of(row, TAGS), text_of(row, FILTERS).trim());
            bytes += rule_bytes(query, tags, filters);
            let same = known.get(&id).filter(|known| {
                known.query == query && known.tags == tags && known.filters == filters
            });
            rules.push(match same {
                Some(known) => Arc::clone(known),
                None => Arc::new(rule(name, documents, id, [query, tags, filters])?),
            });
        }
        after = Some(last.clone());
    }
    let rules = Arc::new(Rules::new(version, rules));
    session.shared.percolators.put(engine_name, &rules);
    Ok(rules)
}

fn too_many_rules(name: &TableName) -> Error {
    let message = format!(
        "the rules of '{name}' take more than {} MiB in memory: divide them among several tables",
        MAX_RULES_BYTES >> 20
    );
    Error::new(ErrorCode::OutOfMemory, message)
}

/// Parses a rule. This can fail for rules that were not written by SQL.
fn rule(
    name: &TableName,
    documents: &PercolateDocuments,
    id: u64,
    [query, tags, filters]: [&str; 3],
) -> Result<Rule> {
    let of_rule = |error: Error| Error::new(error.code, format!("rule {id}: {}", error.message));
    let stored = StoredQuery::new(&documents.table().schema, query)
        .map_err(|error| of_rule(refused(name, &error)))?;
    if !filters.is_empty() {
        check_filters(filters).map_err(of_rule)?;
    }
    let [query, tags, filters] = [query, tags, filters].map(str::to_owned);
    Ok(Rule { id, query, tags, filters, stored })
}

/// A rule and the numbers of the documents that it matches.
type Matched = (Arc<Rule>, Vec<u32>);

/// Removes the documents that do not satisfy the rules' filters; returns how many rules failed. A
/// rule whose filters fail for a document that matched its query matches nothing and causes a
/// warning.
async fn filter(
    session: &mut SessionState,
    documents: &PercolateDocuments,
    rows: &[Row],
    matched: &mut Vec<Matched>,
) -> Result<usize> {
    let rules: Vec<Arc<Rule>> = matched.iter().map(|(rule, _)| Arc::clone(rule)).collect();
    let mut filters: Vec<&str> = rules.iter().map(|rule| rule.filters.as_str()).collect();
    filters.retain(|filter| !filter.is_empty());
    filters.sort_unstable();
    filters.dedup();
    if filters.is_empty() {
        return Ok(0);
    }
    let held = documents.conditions(session, rows, &filters).await?;
    let held: FxHashMap<&str, Result<Vec<bool>>> = filters.into_iter().zip(held).collect();
    let mut failed = 0;
    for (rule, found) in matched.iter_mut() {
        match held.get(rule.filters.as_str()) {
            None => {}
            Some(Ok(held)) => {
                found.retain(|&document| held.get(document as usize).is_some_and(|holds| *holds));
            }
            Some(Err(_)) => {
                failed += usize::from(!filter_found(session, documents, rows, rule, found).await?)
            }
        }
    }
    matched.retain(|(_, found)| !found.is_empty());
    Ok(failed)
}

/// Evaluates a rule's filters only for the documents that matched its query. Returns false, with a
/// warning, if they fail.
async fn filter_found(
    session: &mut SessionState,
    documents: &PercolateDocuments,
    rows: &[Row],
    rule: &Rule,
    found: &mut Vec<u32>,
) -> Result<bool> {
    let own: Vec<Row> = found.iter().filter_map(|&at| rows.get(at as usize)).cloned().collect();
    let held = documents.conditions(session, &own, &[&rule.filters]).await?.pop();
    match held {
        Some(Ok(held)) => {
            let mut held = held.into_iter();
            found.retain(|_| held.next().unwrap_or(false));
            Ok(true)
        }
        Some(Err(error)) => {
            let message = format!("the filters of rule {} failed: {}", rule.id, error.message);
            session.warn(ErrorCode::SearchWarning, message);
            found.clear();
            Ok(false)
        }
        None => Ok(true),
    }
}

async fn send<R: Reply>(
    matched: &[Matched],
    labels: &[String],
    options: &Options,
    reply: &mut R,
) -> Result<()> {
    for (rule, found) in matched {
        let documents = match options.documents {
            true => {
                let label = |&document: &u32| labels.get(document as usize).map(String::as_str);
                found.iter().filter_map(label).collect::<Vec<_>>().join(",")
            }
            false => String::new(),
        };
        let mut row = vec![Cell::Uint(rule.id)];
        if options.documents {
            row.push(Cell::Text(&documents));
        }
        if options.query {
            row.extend([&rule.query, &rule.tags, &rule.filters].map(|text| Cell::Text(text)));
        }
        reply.row(&row)?;
        reply.drain().await?;
    }
    Ok(())
}

fn text_column(name: &str) -> Column {
    ExprType::text(u32::MAX / 4, Collation::UTF8MB4_0900_AI_CI).not_null().column_named(name)
}
