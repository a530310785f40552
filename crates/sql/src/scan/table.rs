//! One table of a snapshot.

use std::{collections::HashMap, fmt, sync::Arc};

use async_trait::async_trait;
use datafusion::{
    arrow::datatypes::{Field, Schema as ArrowSchema, SchemaRef},
    catalog::{Session, TableProvider},
    common::{Constraint, Constraints, Statistics, config::ConfigOptions, stats::Precision},
    error::Result,
    logical_expr::{Expr, TableProviderFilterPushDown, TableType},
    physical_plan::ExecutionPlan,
};
use jiff::tz::TimeZone;
use remora_engine::{AllowedIndexes, TextQuery, united_names};
use remora_mysql::Collation;

use super::{
    exec::{Batches, ScanExec, ScanShape},
    few::FewScan,
    filter,
};
use crate::{
    catalog::{ColumnSpec, ExpressionKey, Origin, Reader, SqlTable, TableName},
    meaning::{
        expr_type,
        types::{ExprType, UNBOUNDED},
    },
    search,
    state::Context,
    transaction::{Overlay, TemporaryTable},
};

/// What the columns of scores are called, with a number behind it.
const SCORE: &str = "#score";

/// What hidden columns are called that a statement reads, with their positions behind it.
const HIDDEN: &str = "#key";

/// A table, as one statement reads it.
#[derive(Clone)]
pub(crate) struct EngineTable {
    pub(super) reader: Reader,
    /// The engine's name of it; empty of a temporary table, which is all overlay.
    pub(super) engine_name: String,
    /// The session's own rows over the snapshot's.
    pub(super) overlay: Option<Arc<Overlay>>,
    pub(super) table: Arc<SqlTable>,
    /// What columns of the schema are in the engine.
    pub(super) positions: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) zone: TimeZone,
    /// What the columns behind the engine's are the scores of.
    pub(super) scores: Vec<TextQuery>,
    constraints: Constraints,
    /// Whether conditions on texts are asked of the text index.
    pub(super) by_text_index: bool,
    /// What its plan calls it, where somebody asks for that.
    pub(super) relation: Option<Arc<str>>,
    /// Whether the plan is kept, for rows that are not known yet.
    pub(super) is_kept: bool,
    /// Which indexes the statement lets be used.
    pub(super) indexes: AllowedIndexes,
    name: String,
    rows: usize,
}

impl EngineTable {
    /// The table of this name in a snapshot, under the session's own changes. Moments are shown by
    /// clocks of `zone`.
    pub(crate) fn new(
        reader: Reader,
        name: &TableName,
        engine_name: String,
        overlay: Option<Arc<Overlay>>,
        zone: TimeZone,
    ) -> remora_engine::Result<Self> {
        let table = SqlTable::of(&reader.schema(&engine_name)?);
        let rows = usize::try_from(reader.row_count(&engine_name)?).unwrap_or(usize::MAX);
        let own = overlay.as_ref().map_or(0, |overlay| overlay.row_count());
        let rows = rows.saturating_add(own);
        let made = Self::of(reader, name, table, zone);
        Ok(Self { engine_name, overlay, rows, ..made })
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
            };
            field(&column.name, spec, &origin)
        });
        let schema = Arc::new(ArrowSchema::new(fields.collect::<Vec<Field>>()));
        let constraints = constraints(&table, &positions);
        Self {
            reader,
            engine_name: String::new(),
            overlay: None,
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

    /// How many rows there are, as far as plans may rely on it.
    pub(crate) fn rows(&self) -> usize {
        if self.is_kept { usize::MAX } else { self.rows }
    }

    /// The paths of its definition, by their places.
    pub(super) fn paths(&self) -> Vec<usize> {
        (0..self.table.schema.paths.len()).collect()
    }

    /// Those that are indexed by now, in all segments.
    pub(super) fn ready_paths(&self) -> Vec<usize> {
        match self.table.schema.paths.is_empty() {
            true => Vec::new(),
            false => self.reader.ready_paths(&self.engine_name).unwrap_or_default(),
        }
    }

    /// About how many rows there are.
    pub(super) fn rows_now(&self) -> usize {
        self.rows
    }

    /// What EXPLAIN calls it.
    pub(super) fn called(&self) -> String {
        match self.engine_name.is_empty() {
            true => self.name.clone(),
            false => united_names(&self.engine_name).collect::<Vec<_>>().join(","),
        }
    }

    /// The engine's name of it, if it has words.
    pub(crate) fn name_of_words(&self) -> Option<String> {
        let has_words = self.table.schema.words.is_some();
        (has_words && !self.engine_name.is_empty()).then(|| self.engine_name.clone())
    }

    /// The columns of its words, in the order of fields.
    pub(crate) fn fields(&self) -> Vec<String> {
        let schema = &self.table.schema;
        let columns = schema.words.iter().flat_map(|words| &words.columns);
        let name = |&place: &usize| schema.columns.get(place).map(|column| column.name.clone());
        columns.filter_map(name).collect()
    }

    /// The expressions that keys of it are over.
    pub(crate) fn expressions(&self) -> &[ExpressionKey] {
        &self.table.expressions
    }

    /// The table with a hidden column, and what it is called; `None` where scores stand behind the columns.
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

    /// The queries by keywords that its rows have scores of.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = (String, TextQuery)> + '_ {
        let is_scored =
            |it: &&TextQuery| matches!(it, TextQuery::Keywords(_)) && !tells_factors(it);
        let queries = self.scores.iter().filter(is_scored);
        queries.map(|query| (self.engine_name.clone(), query.clone()))
    }

    /// How many scores its rows have.
    pub(crate) fn score_count(&self) -> usize {
        self.scores.len()
    }

    /// The table with a column for the score of MATCH of these columns, and what it is called;
    /// `None` if the engine does not have the table. 1191 if no text index holds the columns.
    pub(crate) fn scoring(
        &self,
        columns: &[String],
        text: &str,
        mode: &str,
    ) -> crate::Result<Option<(String, Self)>> {
        if self.engine_name.is_empty() {
            return Ok(None);
        }
        if self.overlay.is_some() && mode.starts_with(search::KEYWORDS_MODE) {
            let what = "MATCH('…') of a table that the transaction has changed: commit first";
            return Err(crate::Error::unsupported(what));
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
        let mut made = self.clone();
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

/// Whether a column of it is a text, of factors.
fn tells_factors(query: &TextQuery) -> bool {
    matches!(query, TextQuery::Keywords(asked) if asked.factors.is_some())
}

impl EngineTable {
    /// The same, of which plans do not know the key: behind a join they take what the key of one side
    /// decides for decided in the whole, and leave out sort keys and groups.
    pub(crate) fn without_key(&self) -> Self {
        Self { constraints: Constraints::default(), ..self.clone() }
    }

    /// The same for a plan that is kept, whose scan is known by the name of the relation. How many rows there are
    /// is unknown by then. Conditions on texts are tested row by row: of few rows that is sooner done.
    pub(crate) fn kept(&self, relation: &str) -> Self {
        Self { by_text_index: false, is_kept: true, ..self.in_plan(relation) }
    }

    /// The same, whose scan is known by the name of the relation.
    pub(crate) fn in_plan(&self, relation: &str) -> Self {
        Self { relation: Some(relation.into()), ..self.clone() }
    }

    /// The same, of which these indexes may be used.
    pub(crate) fn with_indexes(&self, indexes: AllowedIndexes) -> Self {
        Self { indexes, ..self.clone() }
    }

    /// What SQL knows of it.
    pub(crate) fn sql(&self) -> &SqlTable {
        &self.table
    }

    /// Reads these columns of the schema, of the rows that conditions let through as far as the engine
    /// answers them.
    pub(crate) fn scan_of(
        &self,
        projection: Vec<usize>,
        conditions: &[Expr],
        limit: Option<usize>,
        options: &ConfigOptions,
    ) -> Result<ScanExec> {
        let translated = filter::translate_all(self, conditions);
        let shape = ScanShape {
            // What the engine cannot answer exactly is filtered behind it, so no row may be cut.
            limit: limit.filter(|_| translated.exact && self.overlay.is_none()),
            filter: translated.filter,
            text: translated.text,
            projection,
        };
        let execution = &options.execution;
        let batches = Batches {
            rows: execution.batch_size.get(),
            // Several threads mix the rows anyway.
            in_key_order: execution.target_partitions == 1,
        };
        // It ends with the statement, whose time is up where nobody waits for it any more.
        let reader = self.reader.clone();
        let reader = match Context::of_options(options) {
            Some(context) => reader.unless(context.interrupt()),
            None => reader,
        };
        ScanExec::new(&Self { reader, ..self.clone() }, shape, batches)
    }

    /// Reads these columns of the table, where few rows are looked at.
    pub(crate) fn few_of(&self, positions: &[usize]) -> Option<FewScan> {
        let place = |position: &usize| self.positions.iter().position(|other| other == position);
        let projection = positions.iter().map(place).collect::<Option<Vec<usize>>>()?;
        if self.reader.is_elsewhere(&self.engine_name) {
            return None;
        }
        self.scan_of(projection, &[], None, &ConfigOptions::new()).ok()?.few()
    }
}

/// The primary key, so that what depends on it need not be grouped.
fn constraints(table: &SqlTable, positions: &[usize]) -> Constraints {
    let key: Option<Vec<usize>> = table
        .schema
        .primary_key
        .iter()
        .map(|part| positions.iter().position(|position| position == part))
        .collect();
    Constraints::new_unverified(key.map(Constraint::PrimaryKey).into_iter().collect())
}

/// The field of a column. Names of columns are in lower case wherever plans are made.
fn field(name: &str, spec: &ColumnSpec, origin: &Origin) -> Field {
    let kind = expr_type(spec);
    let mut metadata: HashMap<String, String> = kind.field("").metadata().clone();
    origin.write(&mut metadata);
    kind.field(&name.to_lowercase()).with_metadata(metadata)
}

#[async_trait]
impl TableProvider for EngineTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection = match projection {
            Some(projection) => projection.clone(),
            None => (0..self.schema.fields().len()).collect(),
        };
        Ok(Arc::new(self.scan_of(projection, filters, limit, session.config_options())?))
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters.iter().map(|filter| filter::support(self, filter)).collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let unknown = Statistics::new_unknown(&self.schema);
        let rows = match self.overlay.is_some() || self.is_kept {
            false => Precision::Exact(self.rows),
            true => Precision::Inexact(self.rows),
        };
        Some(unknown.with_num_rows(rows))
    }
}

impl fmt::Debug for EngineTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EngineTable").field("name", &self.engine_name).finish()
    }
}
