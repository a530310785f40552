//! One followed table.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use remora_engine::Schema;

use super::{
    positions::Progress,
    status::{TableState, copying},
    uncertainty::Uncertainty,
    whole_copies::WholeCopy,
};
use crate::mysql::{
    coordinates::Coordinates,
    copy::{CopyTask, Windows},
    inbox::{Chunk, WindowRequest},
    quote::quoted,
    schema::{SourceTable, Words},
    settings::MysqlSettings,
    table_name::TableName,
};

/// The prefix of hidden tables' names.
const HIDDEN_PREFIX: &str = "#copy:";

/// A table of the source and its local rows.
pub(super) struct FollowedTable {
    /// The source's definition at this position of the stream, unless that is uncertain.
    pub source: Arc<SourceTable>,
    /// Its local name.
    pub name: Arc<str>,
    /// What readers see.
    pub visible: Visible,
    /// The running copy.
    pub copy: Option<Copy>,
    /// Why it is neither fed nor copied.
    pub stopped: Option<String>,
    /// Set while the source's definition at this position is unknown.
    pub uncertainty: Option<Uncertainty>,
    /// The source has another definition, which the stream must explain before this position.
    pub explained_before: Option<Coordinates>,
}

/// What readers see of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// Nothing.
    Absent,
    /// Its rows at the applied position.
    Current,
    /// Its last good state.
    Frozen,
}

/// A running copy of a table.
pub(super) struct Copy {
    /// Unique in a session.
    pub number: u64,
    /// The hidden table that it fills.
    pub hidden: Arc<str>,
    /// Whether a worker has the task.
    pub is_started: bool,
    /// What the hidden table has.
    pub progress: Progress,
    pub windows: Windows,
    /// Chunks that wait for their position in the stream, in order.
    pub chunks: VecDeque<Chunk>,
    /// Requested windows.
    pub requests: VecDeque<WindowRequest>,
    /// The state of a copy that is read whole.
    pub whole: WholeCopy,
    /// Whether everything was read.
    pub all_read: bool,
    pub estimated_rows: u64,
    pub row_bytes: u64,
    pub since: Instant,
    pub resumed_rows: u64,
}

impl FollowedTable {
    /// A table of which nothing is known here yet.
    pub fn unknown(table: &TableName, name: String) -> Self {
        let (database, table) = (table.database.clone(), table.table.clone());
        let (columns, key, words) = (Vec::new(), Vec::new(), Words::default());
        let source = SourceTable {
            database,
            name: table,
            columns,
            key,
            image_columns: 0,
            unique_keys: Vec::new(),
            period_end: None,
            words,
        };
        Self {
            source: Arc::new(source),
            name: name.into(),
            visible: Visible::Absent,
            copy: None,
            stopped: None,
            uncertainty: Some(Uncertainty::default()),
            explained_before: None,
        }
    }

    /// The state to show.
    pub fn state(&self) -> TableState {
        if self.uncertainty.is_some() && self.copy.is_none() {
            return TableState::CatchingUp;
        }
        match (&self.copy, &self.stopped) {
            (Some(copy), _) if copy.all_read => TableState::CatchingUp,
            (Some(copy), _) => {
                let Copy { progress, resumed_rows, estimated_rows, since, .. } = copy;
                copying(progress.rows, *resumed_rows, *estimated_rows, *since)
            }
            (None, Some(reason)) => TableState::Stopped(reason.clone()),
            (None, None) => TableState::Live,
        }
    }

    /// The targets of its changes: the visible and the hidden table.
    pub fn targets(&self) -> (Option<Arc<str>>, Option<Arc<str>>) {
        if self.uncertainty.is_some() {
            return (None, None);
        }
        let visible = (self.visible == Visible::Current).then(|| Arc::clone(&self.name));
        (visible, self.copy.as_ref().map(|copy| Arc::clone(&copy.hidden)))
    }

    /// Whether it was created in the stream and has no rows yet.
    pub fn is_new(&self) -> bool {
        let missed = self.uncertainty.as_ref().is_some_and(|uncertainty| uncertainty.missed);
        self.visible == Visible::Absent && self.copy.is_none() && !missed
    }
}

impl Copy {
    /// A copy that continues after `progress`.
    pub fn new(number: u64, name: &str, progress: Progress, estimate: (u64, u64)) -> Self {
        Self {
            number,
            hidden: hidden_name(name).into(),
            is_started: false,
            windows: Windows::default(),
            chunks: VecDeque::new(),
            requests: VecDeque::new(),
            whole: WholeCopy::default(),
            all_read: false,
            estimated_rows: estimate.0,
            row_bytes: estimate.1,
            since: Instant::now(),
            resumed_rows: progress.rows,
            progress,
        }
    }

    /// The task for a worker.
    pub fn task(&self, source: &Arc<SourceTable>) -> CopyTask {
        CopyTask {
            copy: self.number,
            source: Arc::clone(source),
            after: self.progress.after.clone(),
            row_bytes: self.row_bytes,
        }
    }

    /// Discards what was read but not applied; it is read again under another number.
    pub fn renumber(&mut self, number: u64) {
        (self.number, self.is_started) = (number, false);
        self.resumed_rows = self.progress.rows;
        self.windows = Windows::default();
        self.chunks.clear();
        self.requests.clear();
        self.all_read = false;
    }
}

/// The name of the hidden table for another table's copy.
pub(super) fn hidden_name(name: &str) -> String {
    format!("{HIDDEN_PREFIX}{name}")
}

/// The name of the table whose copy has this name, or the name itself.
pub(super) fn copied_name(name: &str) -> &str {
    name.strip_prefix(HIDDEN_PREFIX).unwrap_or(name)
}

/// The configured definition of a table.
pub(super) fn definition<'s>(settings: &'s MysqlSettings, table: &TableName) -> Option<&'s Schema> {
    settings.definitions.iter().find(|definition| match definition.name.split_once('.') {
        Some((database, name)) => database == table.database && name == table.table,
        None => {
            let of_database =
                settings.database.as_ref().is_none_or(|database| *database == table.database);
            of_database && definition.name == table.table
        }
    })
}

/// The local name of a source's table.
pub(super) fn local_name(settings: &MysqlSettings, table: &TableName) -> String {
    match definition(settings, table) {
        Some(definition) => definition.name.clone(),
        None => format!("{}.{}", table.database, table.table),
    }
}

/// The definition with the key's column types as at the source.
fn with_types_of(definition: &Schema, source: &SourceTable) -> Schema {
    let mut schema = definition.clone();
    for &place in &definition.primary_key {
        if let (Some(column), Some(there)) =
            (schema.columns.get_mut(place), source.columns.get(place))
        {
            column.kind = there.kind.engine_type();
        }
    }
    schema
}

/// The qualified name of a source's table, for messages.
pub(super) fn source_name(table: &TableName) -> String {
    format!("{}.{}", quoted(&table.database), quoted(&table.table))
}

/// Why a table cannot have its local name: another table of the source has it (`a.b` in `c`, and `b` in `c.a`), or it
/// has the prefix of copies.
pub(super) fn name_conflict<'t>(
    settings: &MysqlSettings,
    table: &TableName,
    mut others: impl Iterator<Item = (&'t TableName, &'t FollowedTable)>,
) -> Option<String> {
    let name = local_name(settings, table);
    if name.starts_with(HIDDEN_PREFIX) {
        return Some(format!(
            "names here do not begin with {HIDDEN_PREFIX:?}: rename its database"
        ));
    }
    let (other, _) = others.find(|(other, followed)| *followed.name == *name && *other != table)?;
    Some(format!("its name here, {name:?}, is that of {}: rename one of them", source_name(other)))
}

/// The engine's definition of a source's table under another name. Columns of the previous definition keep their
/// numbers; new ones get higher numbers.
pub(super) fn schema(
    settings: &MysqlSettings,
    source: &SourceTable,
    name: &str,
    previous: Option<(&Schema, u32)>,
) -> Schema {
    let table = TableName { database: source.database.clone(), table: source.name.clone() };
    let schema = match (definition(settings, &table), previous) {
        (Some(definition), _) if settings.source_types_keys => with_types_of(definition, source),
        (Some(definition), _) => definition.clone(),
        (None, Some((previous, highest))) => source.to_schema_after(previous, highest),
        (None, None) => source.to_schema(),
    };
    Schema { name: name.to_owned(), ..schema }
}
