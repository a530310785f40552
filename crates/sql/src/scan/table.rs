//! A table of a snapshot as DataFusion sees it.

use std::{collections::HashMap, fmt, sync::Arc};

use datafusion::{
    arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef},
    common::{Constraint, Constraints},
};
use jiff::tz::TimeZone;
use remora_engine::{AllowedIndexes, TextQuery, united_names};
use remora_mysql::Collation;

use crate::{
    catalog::{ColumnSpec, ExpressionKey, Origin, Reader, SqlTable, TableName},
    error::from_engine,
    meaning::{
        expr_type,
        types::{ExprType, UNBOUNDED},
    },
    search,
    transaction::{Overlay, OwnChanges, TemporaryTable},
};

/// The prefix of score columns; a number follows.
const SCORE: &str = "#score";

/// The prefix of hidden columns that a statement reads; the position follows.
const HIDDEN: &str = "#key";

/// A table, as one statement reads it.
#[derive(Clone)]
pub(crate) struct EngineTable {
    pub(super) reader: Reader,
    /// The engine's name; empty for a temporary table, whose rows are all in the overlay.
    pub(super) engine_name: String,
    /// The session's uncommitted rows.
    pub(super) overlay: Option<Arc<Overlay>>,
    /// The changes of the session's transaction, if this table has some.
    pub(super) own: Option<Arc<OwnChanges>>,
    pub(super) table: Arc<SqlTable>,
    /// For each column of the schema, its position in the engine.
    pub(super) positions: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) zone: TimeZone,
    /// The queries of the score columns, which follow the engine's columns.
    pub(super) scores: Vec<TextQuery>,
    pub(super) constraints: Constraints,
    /// Whether the text index is used.
    pub(super) by_text_index: bool,
    /// The table's name in the plan, if it is needed.
    pub(super) relation: Option<Arc<str>>,
    /// Whether the plan is cached, so that row counts are unknown.
    pub(super) is_kept: bool,
    /// The indexes that the statement permits.
    pub(super) indexes: AllowedIndexes,
    pub(super) name: String,
    pub(super) rows: usize,
}

impl EngineTable {
    /// The table of this name in a snapshot, with the session's uncommitted changes. Moments become local times in
    /// `zone`.
    pub(crate) fn new(
        reader: Reader,
        name: &TableName,
        engine_name: String,
        (overlay, own): (Option<Arc<Overlay>>, Option<Arc<OwnChanges>>),
        zone: TimeZone,
    ) -> remora_engine::Result<Self> {
        let table = SqlTable::of(&reader.schema(&engine_name)?);
        let rows = usize::try_from(reader.row_count(&engine_name)?).unwrap_or(usize::MAX);
        let own_rows = overlay.as_ref().map_or(0, |overlay| overlay.row_count());
        let rows = rows.saturating_add(own_rows);
        let made = Self::of(reader, name, table, zone);
        Ok(Self { engine_name, overlay, own, rows, ..made })
    }

    /// A session's temporary table.
    pub(crate) fn temporary(
        reader: Reader,
        name: &TableName,
        table: &TemporaryTable,
        zone: TimeZone,
    ) -> Self {
        let made = Self::of(reader, name, SqlTable::of(&table.schema), zone);
        let rows = table.rows.row_count();
        Self { overlay: Some(Arc::clone(&table.rows)), rows, ..made }
    }

    fn of(reader: Reader, name: &TableName, table: Arc<SqlTable>, zone: TimeZone) -> Self {
        let positions: Vec<usize> = table.nameable().map(|(position, ..)| position).collect();
        let fields = table.nameable().map(|(position, column, spec)| {
            let origin = Origin {
                database: name.database.clone(),
                table: name.shown(),
                column: column.name.clone(),
                primary_key: table.schema.primary_key.contains(&position),
                auto_increment: spec.auto_increment,
                invisible: spec.invisible,
                keys: table.column_keys.get(position).copied().unwrap_or_default(),
            };
            field(&column.name, spec, &origin)
        });
        let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<Field>>()));
        let constraints = constraints(&table, &positions);
        Self {
            reader,
            engine_name: String::new(),
            overlay: None,
            own: None,
            table,
            positions,
            schema,
            zone,
            scores: Vec::new(),
            constraints,
            by_text_index: true,
            relation: None,
            is_kept: false,
            indexes: AllowedIndexes::default(),
            name: name.shown(),
            rows: 0,
        }
    }

    /// The number of rows that plans may rely on.
    pub(crate) fn rows(&self) -> usize {
        if self.is_kept { usize::MAX } else { self.rows }
    }

    /// The positions of all paths in its definition.
    pub(super) fn paths(&self) -> Vec<usize> {
        (0..self.table.schema.paths.len()).collect()
    }

    /// The positions of the paths that all segments have indexed.
    pub(super) fn ready_paths(&self) -> Vec<usize> {
        match self.table.schema.paths.is_empty() {
            true => Vec::new(),
            false => self.reader.ready_paths(&self.engine_name).unwrap_or_default(),
        }
    }

    /// The approximate number of rows.
    pub(super) fn rows_now(&self) -> usize {
        self.rows
    }

    /// Its name in EXPLAIN.
    pub(super) fn called(&self) -> String {
        match self.engine_name.is_empty() {
            true => self.name.clone(),
            false => united_names(&self.engine_name).collect::<Vec<_>>().join(","),
        }
    }

    /// Its engine name, if it has ranked search.
    pub(crate) fn name_of_words(&self) -> Option<String> {
        let has_words = self.table.schema.words.is_some();
        (has_words && !self.engine_name.is_empty()).then(|| self.engine_name.clone())
    }

    /// The columns of ranked search, in the order of fields.
    pub(crate) fn fields(&self) -> Vec<String> {
        let schema = &self.table.schema;
        let columns = schema.words.iter().flat_map(|words| &words.columns);
        let name = |&place: &usize| schema.columns.get(place).map(|column| column.name.clone());
        columns.filter_map(name).collect()
    }

    /// The expressions of its functional keys.
    pub(crate) fn expressions(&self) -> &[ExpressionKey] {
        &self.table.expressions
    }

    /// The table with a hidden column made visible, and that column's name; `None` if it has score columns.
    pub(crate) fn showing(&self, position: usize) -> Option<(String, Self)> {
        let name = format!("{HIDDEN}{position}");
        if self.schema.index_of(&name).is_ok() {
            return Some((name, self.clone()));
        }
        let spec = self.table.columns.get(position).filter(|_| self.scores.is_empty())?;
        let mut made = self.clone();
        let mut fields: Vec<Arc<Field>> = made.schema.fields().iter().cloned().collect();
        fields.push(Arc::new(expr_type(spec).field(&name)));
        made.schema = Arc::new(ArrowSchema::new(fields));
        made.positions.push(position);
        Some((name, made))
    }

    /// The names of its key's columns in plans; empty if SQL cannot name one of them.
    pub(crate) fn key_names(&self) -> Vec<String> {
        let name = |key: &usize| {
            let index = self.positions.iter().position(|position| position == key)?;
            Some(self.schema.fields().get(index)?.name().clone())
        };
        let names: Option<Vec<String>> = self.table.schema.primary_key.iter().map(name).collect();
        names.unwrap_or_default()
    }

    /// The keyword queries of its score columns.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = (String, TextQuery)> + '_ {
        let is_scored =
            |it: &&TextQuery| matches!(it, TextQuery::Keywords(_)) && !tells_factors(it);
        let queries = self.scores.iter().filter(is_scored);
        queries.map(|query| (self.engine_name.clone(), query.clone()))
    }

    /// The number of its score columns.
    pub(crate) fn score_count(&self) -> usize {
        self.scores.len()
    }

    /// The table with a column for the score of a MATCH on these columns, and that column's name; `None` if the table
    /// is not in the engine. Error 1191 if no text index has these columns.
    pub(crate) fn scoring(
        &self,
        columns: &[String],
        text: &str,
        mode: &str,
    ) -> crate::Result<Option<(String, Self)>> {
        if self.engine_name.is_empty() {
            return Ok(None);
        }
        let position = |name: &String| {
            let index = self.schema.index_of(name).ok()?;
            self.positions.get(index).copied()
        };
        let columns: Option<Vec<usize>> = columns.iter().map(position).collect();
        let Some(columns) = columns else { return Ok(None) };
        let query = search::matching(&self.table, &columns, text, mode)?;
        let known = self.scores.iter().position(|known| *known == query);
        let name = |index: usize| format!("{SCORE}{index}");
        if let Some(known) = known {
            return Ok(Some((name(known), self.clone())));
        }
        let mut made = self.with_own_rows()?.unwrap_or_else(|| self.clone());
        let name = name(made.scores.len());
        let mut fields: Vec<Arc<Field>> = made.schema.fields().iter().cloned().collect();
        let kind = match tells_factors(&query) {
            true => ExprType::text(UNBOUNDED, Collation::UTF8MB4_0900_AI_CI),
            false => ExprType::double(),
        };
        fields.push(Arc::new(kind.not_null().field(&name)));
        made.schema = Arc::new(ArrowSchema::new(fields));
        made.scores.push(query);
        Ok(Some((name, made)))
    }
}

/// Whether a query returns factors, which are a text.
fn tells_factors(query: &TextQuery) -> bool {
    matches!(query, TextQuery::Keywords(asked) if asked.factors.is_some())
}

impl EngineTable {
    /// The table with the session's changes as rows like all others, which a text search needs: scores depend on the
    /// words of all rows. `None` if the session has not changed it.
    pub(crate) fn with_own_rows(&self) -> crate::Result<Option<Self>> {
        let Some(own) = &self.own else { return Ok(None) };
        let reader = own.seen_by(&self.reader)?;
        let rows = reader.row_count(&self.engine_name).map_err(|error| from_engine(&error))?;
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        Ok(Some(Self { reader, overlay: None, own: None, rows, ..self.clone() }))
    }

    /// The table without its key. Above a join DataFusion would take columns that depend on the key of one side as
    /// determined for the joined rows, and drop sort keys and groups.
    pub(crate) fn without_key(&self) -> Self {
        Self { constraints: Constraints::default(), ..self.clone() }
    }

    /// The table for a cached plan, which identifies its scan by the name of the relation. The number of rows is
    /// unknown. Text conditions are tested row by row, which is faster for few rows.
    pub(crate) fn kept(&self, relation: &str) -> Self {
        Self { by_text_index: false, is_kept: true, ..self.in_plan(relation) }
    }

    /// The table with a scan that is identified by the name of the relation.
    pub(crate) fn in_plan(&self, relation: &str) -> Self {
        Self { relation: Some(relation.into()), ..self.clone() }
    }

    /// The table with these permitted indexes.
    pub(crate) fn with_indexes(&self, indexes: AllowedIndexes) -> Self {
        Self { indexes, ..self.clone() }
    }

    /// The table's declaration in SQL.
    pub(crate) fn sql(&self) -> &SqlTable {
        &self.table
    }
}

/// The primary key, so that columns that depend on it need not be in GROUP BY.
fn constraints(table: &SqlTable, positions: &[usize]) -> Constraints {
    let key: Option<Vec<usize>> = table
        .schema
        .primary_key
        .iter()
        .map(|part| positions.iter().position(|position| position == part))
        .collect();
    Constraints::new_unverified(key.map(Constraint::PrimaryKey).into_iter().collect())
}

/// The field of a column. Plans have all column names in lower case.
fn field(name: &str, spec: &ColumnSpec, origin: &Origin) -> Field {
    let kind = expr_type(spec);
    let mut metadata: HashMap<String, String> = kind.field("").metadata().clone();
    origin.write(&mut metadata);
    kind.field(&name.to_lowercase()).with_metadata(metadata)
}

impl fmt::Debug for EngineTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EngineTable").field("name", &self.engine_name).finish()
    }
}
