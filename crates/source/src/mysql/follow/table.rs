//! One followed table.

use std::{collections::VecDeque, sync::Arc, time::Instant};

use remora_engine::Schema;

use super::{
    doubt::Doubt,
    positions::Progress,
    status::{TableState, copying},
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

/// Names of tables that are not shown begin so.
const HIDDEN: &str = "#copy:";

/// A table of the source and its rows here.
pub(super) struct FollowedTable {
    /// The source's table at this place of the stream, unless there is doubt.
    pub source: Arc<SourceTable>,
    /// Its name here.
    pub name: Arc<str>,
    /// What can be read.
    pub visible: Visible,
    /// The copy that is being made.
    pub copy: Option<Copy>,
    /// Why it is neither fed nor copied.
    pub stopped: Option<String>,
    /// Set while it is not known what the source's table is at this place.
    pub doubt: Option<Doubt>,
    /// The source has another definition; the stream must say why before this place.
    pub unexplained: Option<Coordinates>,
}

/// What can be read of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// Nothing.
    Absent,
    /// Its rows at the applied position.
    Fed,
    /// Its last good state.
    Frozen,
}

/// A copy of a table.
pub(super) struct Copy {
    /// Unique in a session.
    pub number: u64,
    /// The hidden table it is made in.
    pub hidden: Arc<str>,
    /// Whether a worker was told of it.
    pub begun: bool,
    /// What is in the hidden table.
    pub progress: Progress,
    pub windows: Windows,
    /// Chunks that wait for the stream, in order.
    pub chunks: VecDeque<Chunk>,
    /// Windows that were asked for.
    pub requests: VecDeque<WindowRequest>,
    /// What is to be known of a copy that is read whole.
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
            doubt: Some(Doubt::default()),
            unexplained: None,
        }
    }

    /// The state as it is shown.
    pub fn state(&self) -> TableState {
        if self.doubt.is_some() && self.copy.is_none() {
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

    /// Where its changes go: the visible and the hidden table.
    pub fn targets(&self) -> (Option<Arc<str>>, Option<Arc<str>>) {
        if self.doubt.is_some() {
            return (None, None);
        }
        let visible = (self.visible == Visible::Fed).then(|| Arc::clone(&self.name));
        (visible, self.copy.as_ref().map(|copy| Arc::clone(&copy.hidden)))
    }

    /// Whether it came into being in the stream and nothing was put into it since.
    pub fn is_new(&self) -> bool {
        let missed = self.doubt.as_ref().is_some_and(|doubt| doubt.missed);
        self.visible == Visible::Absent && self.copy.is_none() && !missed
    }
}

impl Copy {
    /// A copy that goes on behind what `progress` says.
    pub fn new(number: u64, name: &str, progress: Progress, estimate: (u64, u64)) -> Self {
        Self {
            number,
            hidden: hidden_name(name).into(),
            begun: false,
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

    /// What a worker is told of it.
    pub fn task(&self, source: &Arc<SourceTable>) -> CopyTask {
        CopyTask {
            copy: self.number,
            source: Arc::clone(source),
            after: self.progress.after.clone(),
            row_bytes: self.row_bytes,
        }
    }

    /// Forgets what was read but not applied; it is read again under another number.
    pub fn renumber(&mut self, number: u64) {
        (self.number, self.begun) = (number, false);
        self.resumed_rows = self.progress.rows;
        self.windows = Windows::default();
        self.chunks.clear();
        self.requests.clear();
        self.all_read = false;
    }
}

/// The name of the table in which the copy of another is made.
pub(super) fn hidden_name(name: &str) -> String {
    format!("{HIDDEN}{name}")
}

/// The name of the table whose copy is made in a table of this name, or which has the name itself.
pub(super) fn copied_name(name: &str) -> &str {
    name.strip_prefix(HIDDEN).unwrap_or(name)
}

/// The definition that the settings give for a table.
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

/// The name of a source's table here.
pub(super) fn name_here(settings: &MysqlSettings, table: &TableName) -> String {
    match definition(settings, table) {
        Some(definition) => definition.name.clone(),
        None => format!("{}.{}", table.database, table.table),
    }
}

/// The definition with the types that the key's columns have at the source.
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

/// What a table of the source is called where its name here is another's.
pub(super) fn name_there(table: &TableName) -> String {
    format!("{}.{}", quoted(&table.database), quoted(&table.table))
}

/// Why a table cannot have its name here: another of the source has it (`a.b` in `c`, and `b` in
/// `c.a`), or names here that begin so are those of copies.
pub(super) fn namesake<'t>(
    settings: &MysqlSettings,
    table: &TableName,
    mut others: impl Iterator<Item = (&'t TableName, &'t FollowedTable)>,
) -> Option<String> {
    let name = name_here(settings, table);
    if name.starts_with(HIDDEN) {
        return Some(format!("names here do not begin with {HIDDEN:?}: rename its database"));
    }
    let (other, _) = others.find(|(other, followed)| *followed.name == *name && *other != table)?;
    Some(format!("its name here, {name:?}, is that of {}: rename one of them", name_there(other)))
}

/// The engine's definition of a source's table under another name; what the previous one has keeps
/// its numbers, and new columns get numbers above the one with it.
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
