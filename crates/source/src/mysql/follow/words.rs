//! Ranked search of followed tables ("words"): who declares it, and which of it a table has.
//!
//! Ranked search belongs to this server; the source knows nothing of it. It belongs to a table's name, not to its rows:
//! a table that is copied, recreated, or renamed to the name has it. Settings take precedence over SQL, whose
//! declaration applies again once the settings declare nothing. Columns are found by name. A column that the source
//! renames stays; one that is missing or not text is left out meanwhile.
//!
//! The declaration is stored beside the position; what a table has of it is in its definition. Every change of
//! definitions goes through [`FollowState::define`], which derives the one from the other. So no code that creates,
//! alters or renames a table needs to know about words.
//!
//! ```text
//! <name>/words/<table>         {"columns": [names], "settings": [[name, value]],   what SQL declared
//!                               "renamed": [[name in the settings, name now]]}
//! ```

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::Mutex;
use remora_engine::{Definition, PrebuiltSegments, Schema};
use serde::{Deserialize, Serialize};

use super::{
    applier::Applier,
    definition_commit::DefinitionCommit,
    positions::{Stored, copied_key, table_key, tables_with, words_key},
    shared::{FollowState, TableRequest},
    table::{copied_name, hidden_name, local_name},
};
use crate::{
    Error, Result,
    mysql::{
        connection::Connection, schema::read_table, settings::MysqlSettings, table_name::TableName,
    },
    schema_file::{DeclaredWords, FoundWords},
};

/// Settings with file names.
const FILES: [&str; 3] = ["stopwords", "wordforms", "exceptions"];
/// How often a waiting request checks whether a session still exists.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The stored declaration of a table's ranked search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct StoredDeclaration {
    /// The columns that SQL declared, by their current names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<String>,
    /// The settings that SQL declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    settings: Vec<(String, String)>,
    /// Columns in the settings that the source has renamed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    renamed: Vec<(String, String)>,
}

impl StoredDeclaration {
    fn parse(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Empty if there is nothing to store.
    fn text(&self) -> String {
        match *self == Self::default() {
            true => String::new(),
            false => serde_json::to_string(self).unwrap_or_default(),
        }
    }

    /// The declaration from SQL.
    fn declared(&self) -> Option<DeclaredWords> {
        (!self.columns.is_empty()).then(|| DeclaredWords {
            columns: self.columns.clone(),
            settings: self.settings.clone(),
            files: Vec::new(),
        })
    }

    /// The current name of a column in the settings.
    fn current_name(&self, column: &str) -> Option<&str> {
        let renamed =
            self.renamed.iter().find(|(in_settings, _)| is_same_name(in_settings, column));
        renamed.map(|(_, now)| now.as_str())
    }

    /// Applies simultaneous renames of columns. `in_settings` are the columns in the settings.
    fn rename(&mut self, pairs: &[(String, String)], in_settings: &[String]) {
        let after = |name: &str| {
            let pair = pairs.iter().find(|(from, _)| is_same_name(from, name));
            pair.map(|(_, to)| to.clone())
        };
        for column in &mut self.columns {
            if let Some(to) = after(column) {
                *column = to;
            }
        }
        for column in in_settings {
            if let Some(to) = after(self.current_name(column).unwrap_or(column)) {
                self.renamed.retain(|(known, _)| !is_same_name(known, column));
                if !is_same_name(&to, column) {
                    self.renamed.push((column.clone(), to));
                }
            }
        }
    }
}

/// Whether two names mean the same column.
fn is_same_name(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// A request to change a table's ranked search, with the channel for its result.
#[derive(Clone, Debug)]
pub(crate) struct WordsRequest {
    /// Identifies the request.
    pub number: u64,
    table: String,
    stored: String,
    /// The rows of the table, indexed by the requesting thread.
    ahead: Arc<Mutex<Vec<PrebuiltSegments>>>,
    reply: Sender<Result<()>>,
}

/// The declaration in the settings for the table of this local name.
fn in_settings(settings: &MysqlSettings, table: &str) -> Option<DeclaredWords> {
    let by_name = settings.words.iter().find(|(name, _)| name == table);
    if let Some((_, words)) = by_name {
        return Some(words.clone());
    }
    let definition = settings.definitions.iter().find(|definition| definition.name == table);
    DeclaredWords::of_schema(definition?)
}

/// Whether the settings decide a table's ranked search: they declare it, or give its whole definition.
fn is_set_by_settings(settings: &MysqlSettings, table: &str) -> bool {
    settings.words.iter().any(|(name, _)| name == table)
        || settings.definitions.iter().any(|definition| definition.name == table)
}

/// Checks that the source's tables have the columns of ranked search in the settings.
pub(super) fn check_declared(source: &mut Connection, settings: &MysqlSettings) -> Result<()> {
    for (name, words) in &settings.words {
        let Some((database, table)) = name.split_once('.') else { continue };
        // Tables that cannot be followed are reported separately.
        let Ok(Some(read)) = read_table(&mut source.conn, database, table) else { continue };
        let missing = words.on(&read.to_schema(), None).missing;
        if !missing.is_empty() {
            let message = format!("the words of table {name}: {}", missing.join("; "));
            return Err(Error::Setting(message));
        }
    }
    Ok(())
}

/// The declaration with the contents of its files taken from the table's current definition.
fn with_files(words: DeclaredWords, table: Option<&Schema>) -> DeclaredWords {
    let names_files = words.settings.iter().any(|(name, _)| FILES.contains(&name.as_str()));
    if !names_files || !words.files.is_empty() {
        return words;
    }
    let of_table = table.and_then(|schema| Some(schema.words.as_ref()?.files.clone()));
    DeclaredWords { files: of_table.unwrap_or_default(), ..words }
}

impl FollowState {
    /// Changes definitions of followed tables in one commit with positions. The tables get their declared ranked
    /// search. Only one thread at a time does this.
    pub fn define(&self, definitions: Vec<Definition>, positions: Vec<Stored>) -> Result<()> {
        self.define_indexed(definitions, positions, Vec::new())
    }

    /// Changes definitions, with tables whose rows were indexed beforehand.
    pub fn define_indexed(
        &self,
        definitions: Vec<Definition>,
        positions: Vec<Stored>,
        ahead: Vec<PrebuiltSegments>,
    ) -> Result<()> {
        let _alone = self.defining.lock();
        let declared = positions.iter().filter_map(|(key, _)| self.words_name(key));
        let definitions = self.with_words(declared.collect(), definitions, &positions);
        self.database.define_indexed(definitions, positions, ahead)?;
        Ok(())
    }

    /// Indexes the rows of a table with this declaration in the calling thread, while the stream is applied.
    fn indexed(&self, table: &str, stored: &str) -> Result<Vec<PrebuiltSegments>> {
        let positions = [(words_key(&self.settings.name, table), stored.to_owned())];
        let definitions = self.with_words(vec![table.to_owned()], Vec::new(), &positions);
        let mut ahead = Vec::new();
        for definition in &definitions {
            ahead.extend(self.database.prebuild_segments(definition)?);
        }
        Ok(ahead)
    }

    /// Gives all local tables their currently declared ranked search, because the settings may have changed.
    pub fn apply_declared_words(&self) -> Result<()> {
        let _alone = self.defining.lock();
        let name = &self.settings.name;
        let mut tables = tables_with(&self.database, &|table| table_key(name, table));
        tables.extend(tables_with(&self.database, &|table| copied_key(name, table)));
        // One after the other, because each is in memory twice meanwhile.
        for definition in self.with_words(tables, Vec::new(), &[]) {
            if let Definition::Alter { schema, .. } = &definition {
                tracing::info!("{} has other words now: its rows are indexed anew", schema.name);
            }
            let ahead = self.database.prebuild_segments(&definition)?;
            let ahead = ahead.into_iter().collect();
            self.database.define_indexed(vec![definition], Vec::new(), ahead)?;
        }
        Ok(())
    }

    /// Reports declarations in the settings for tables that are not followed.
    pub fn warn_of_unfollowed_tables<'t>(&self, followed: impl Iterator<Item = &'t str> + Clone) {
        for (table, _) in &self.settings.words {
            if followed.clone().all(|name| name != table) {
                let missing = "the source has no such table that can be followed".to_owned();
                self.board.report_unavailable_words(table, missing);
            }
        }
    }

    /// Declares ranked search for a table; see [`super::Follower::declare_words`].
    pub fn declare_words(&self, table: &str, words: Option<DeclaredWords>) -> Result<()> {
        if is_set_by_settings(&self.settings, table) {
            return Err(Error::Setting(format!(
                "the words of table {table} are declared in the settings: change [tables] there"
            )));
        }
        // The copy will replace the table.
        let here = [hidden_name(table), table.to_owned()];
        let schema = here.iter().find_map(|name| self.database.schema(name).ok());
        let source = &self.settings.name;
        let keys = [table_key(source, table), copied_key(source, table)];
        let positions = self.database.source_positions();
        let schema = schema.filter(|_| keys.iter().any(|key| positions.get(key).is_some()));
        let Some(schema) = schema else {
            return Err(Error::Setting(format!("table {table} is not followed, or not here yet")));
        };
        let found = words.clone().map(|it| with_files(it, Some(&schema)).on(&schema, None));
        let missing = found.unwrap_or_default().missing;
        if !missing.is_empty() {
            let message = format!("the words of table {table}: {}", missing.join("; "));
            return Err(Error::Setting(message));
        }
        let mut stored = StoredDeclaration::parse(positions.get(&words_key(source, table)));
        let DeclaredWords { columns, settings, .. } = words.unwrap_or_default();
        (stored.columns, stored.settings) = (columns, settings);
        tracing::info!("{table} gets other words: its rows are indexed anew");
        self.request_words(table, stored.text())
    }

    /// Lets the applier change the declaration; without a running session the calling thread does it.
    fn request_words(&self, table: &str, stored: String) -> Result<()> {
        let (reply, replied) = bounded(1);
        let number = self.words_requests.fetch_add(1, Ordering::Relaxed);
        let ahead = Arc::new(Mutex::new(self.indexed(table, &stored)?));
        let request = WordsRequest { number, table: table.to_owned(), stored, ahead, reply };
        if !self.request(TableRequest::Words(request.clone())) {
            return Err(Error::Setting("too many requests wait".to_owned()));
        }
        self.wait_for_words(&request, &replied)
    }

    fn wait_for_words(&self, request: &WordsRequest, replied: &Receiver<Result<()>>) -> Result<()> {
        loop {
            if let Ok(outcome) = replied.recv_timeout(RETRY_INTERVAL) {
                return outcome;
            }
            // While it is held no session begins.
            let alone = self.defining.lock();
            if self.has_session() {
                continue;
            }
            if !self.withdraw_words(request.number) {
                // The request was executed, or the session ended with it.
                return replied.try_recv().unwrap_or(Err(Error::Cancelled));
            }
            self.check_request(request)?;
            let positions =
                vec![(words_key(&self.settings.name, &request.table), request.stored.clone())];
            let declared = vec![request.table.clone()];
            let definitions = self.with_words(declared, Vec::new(), &positions);
            let ahead = std::mem::take(&mut *request.ahead.lock());
            self.database.define_indexed(definitions, positions, ahead)?;
            drop(alone);
            return Ok(());
        }
    }

    /// Checks that the table still has the columns of a request: the stream continued while its rows were indexed.
    fn check_request(&self, request: &WordsRequest) -> Result<()> {
        let Some(words) = StoredDeclaration::parse(Some(&request.stored)).declared() else {
            return Ok(());
        };
        let here = [hidden_name(&request.table), request.table.clone()];
        let schema = here.iter().find_map(|name| self.database.schema(name).ok());
        let Some(schema) = schema else {
            return Err(Error::Setting(format!("table {} is not here any more", request.table)));
        };
        let missing = with_files(words, Some(&schema)).on(&schema, None).missing;
        match missing.is_empty() {
            true => Ok(()),
            false => {
                let message =
                    format!("the words of table {}: {}", request.table, missing.join("; "));
                Err(Error::Setting(message))
            }
        }
    }

    /// Adapts the declaration to columns that were renamed at the source.
    pub fn rename_word_columns(
        &self,
        table: &str,
        pairs: &[(String, String)],
        commit: &mut DefinitionCommit,
    ) {
        let key = words_key(&self.settings.name, table);
        let before = StoredDeclaration::parse(commit.position(&self.database, &key).as_deref());
        let mut stored = before.clone();
        let columns =
            in_settings(&self.settings, table).map(|words| words.columns).unwrap_or_default();
        stored.rename(pairs, &columns);
        if stored != before {
            commit.positions.push((key, stored.text()));
        }
    }

    /// Adapts declarations to a table renamed at the source. The old name keeps its declaration for the next table of
    /// that name. The new name gets it too, if it has none of its own.
    pub fn rename_words(&self, from: &TableName, to: &TableName, commit: &mut DefinitionCommit) {
        let settings = &self.settings;
        let (old, new) = (local_name(settings, from), local_name(settings, to));
        let key = words_key(&settings.name, &new);
        if is_set_by_settings(settings, &new)
            || !self.selection.matches(&to.database, &to.table)
            || StoredDeclaration::parse(commit.position(&self.database, &key).as_deref())
                .declared()
                .is_some()
        {
            return;
        }
        let text = commit.position(&self.database, &words_key(&settings.name, &old));
        let before = StoredDeclaration::parse(text.as_deref());
        let declared = match in_settings(settings, &old) {
            Some(mut in_settings) => {
                for column in &mut in_settings.columns {
                    if let Some(now) = before.current_name(column) {
                        *column = now.to_owned();
                    }
                }
                Some(in_settings)
            }
            None => before.declared(),
        };
        let Some(DeclaredWords { columns, settings, .. }) = declared else { return };
        tracing::info!("{new} has the words of {old}, which the source renamed");
        let stored = StoredDeclaration { columns, settings, renamed: Vec::new() };
        commit.positions.push((key, stored.text()));
    }

    /// The table of a stored declaration.
    fn words_name(&self, key: &str) -> Option<String> {
        key.strip_prefix(&words_key(&self.settings.name, "")).map(str::to_owned)
    }

    /// The definitions with the ranked search that applies after they and the positions are committed, including tables
    /// of which only that changes.
    fn with_words(
        &self,
        declared: Vec<String>,
        definitions: Vec<Definition>,
        positions: &[Stored],
    ) -> Vec<Definition> {
        let (tables, renamed, done) = (HashMap::new(), Vec::new(), Vec::new());
        let mut draft = Draft { shared: self, positions, tables, renamed, done };
        definitions.into_iter().for_each(|definition| draft.take(definition));
        for table in std::mem::take(&mut draft.renamed) {
            draft.set_words(&table);
        }
        for table in declared {
            draft.set_words(&hidden_name(&table));
            draft.set_words(&table);
        }
        draft.done
    }
}

/// Definitions in order, and the resulting tables.
struct Draft<'s> {
    shared: &'s FollowState,
    positions: &'s [Stored],
    /// Tables that differ from those in the database, or are dropped.
    tables: HashMap<String, Option<Schema>>,
    /// New names of renamed tables.
    renamed: Vec<String>,
    done: Vec<Definition>,
}

impl Draft<'_> {
    fn schema(&self, name: &str) -> Option<Schema> {
        match self.tables.get(name) {
            Some(known) => known.clone(),
            None => self.shared.database.schema(name).ok().map(|schema| (*schema).clone()),
        }
    }

    fn take(&mut self, definition: Definition) {
        let definition = match definition {
            Definition::Create(schema) => {
                // A truncated table keeps its definition.
                let before = schema.words.is_some().then_some(&schema);
                let words = self.words(&schema, before);
                Definition::Create(self.with(schema, words))
            }
            Definition::Alter { schema, fills } => {
                let before = self.schema(&schema.name);
                let words = self.words(&schema, before.as_ref());
                Definition::Alter { schema: self.with(schema, words), fills }
            }
            Definition::Rename { from, to } => {
                let moved = self.schema(&from).map(|schema| Schema { name: to.clone(), ..schema });
                self.tables.insert(from.clone(), None);
                self.tables.insert(to.clone(), moved);
                self.renamed.push(to.clone());
                Definition::Rename { from, to }
            }
            Definition::Drop(name) => {
                self.tables.insert(name.clone(), None);
                Definition::Drop(name)
            }
            Definition::Vacant(name) => Definition::Vacant(name),
        };
        self.done.push(definition);
    }

    /// Gives an existing table its ranked search.
    fn set_words(&mut self, name: &str) {
        let Some(schema) = self.schema(name) else { return };
        let found = self.words(&schema, Some(&schema));
        if self.is_replaced(name) && !found.missing.is_empty() {
            // Its copy has what is declared. Until that replaces the table, the table stays unchanged.
            return;
        }
        let before = schema.words.clone();
        let schema = self.with(schema, found);
        if schema.words != before {
            tracing::debug!("table {name} is to have other words");
            self.done.push(Definition::Alter { schema, fills: Vec::new() });
        }
    }

    /// The table with this ranked search. Unavailable parts are reported.
    fn with(&mut self, schema: Schema, found: FoundWords) -> Schema {
        if !self.is_replaced(&schema.name) {
            let table = copied_name(&schema.name);
            self.shared.board.report_unavailable_words(table, found.missing.join("; "));
        }
        let schema = Schema { words: found.words, ..schema };
        self.tables.insert(schema.name.clone(), Some(schema.clone()));
        schema
    }

    /// Whether a copy of this table exists.
    fn is_replaced(&self, name: &str) -> bool {
        copied_name(name) == name && self.schema(&hidden_name(name)).is_some()
    }

    /// The ranked search of a table with this definition. `before` is the previous definition.
    fn words(&self, schema: &Schema, before: Option<&Schema>) -> FoundWords {
        let table = copied_name(&schema.name);
        let mut missing = Vec::new();
        let declared = self.declared(table, schema, &mut missing);
        let found = declared.map(|declared| match before.filter(|before| before.words.is_some()) {
            Some(before) => with_files(declared, Some(before)).on(schema, Some(before)),
            None => with_files(declared, self.schema(table).as_ref()).on(schema, None),
        });
        let found = found.unwrap_or_default();
        missing.extend(found.missing);
        FoundWords { words: found.words, missing }
    }

    /// The declaration for a table, with the column names of this definition.
    fn declared(
        &self,
        table: &str,
        schema: &Schema,
        missing: &mut Vec<String>,
    ) -> Option<DeclaredWords> {
        let key = words_key(&self.shared.settings.name, table);
        let stored = match self.positions.iter().rev().find(|(known, _)| *known == key) {
            Some((_, text)) => StoredDeclaration::parse(Some(text)),
            None => StoredDeclaration::parse(self.shared.database.source_positions().get(&key)),
        };
        if !is_set_by_settings(&self.shared.settings, table) {
            return stored.declared();
        }
        let mut in_settings = in_settings(&self.shared.settings, table)?;
        for column in &mut in_settings.columns {
            let is_column =
                |now: &&str| schema.columns.iter().any(|it| is_same_name(&it.name, now));
            if let Some(now) = stored.current_name(column).filter(is_column) {
                missing.push(format!(
                    "column {column:?} is {now:?} at the source now: change the settings"
                ));
                *column = now.to_owned();
            }
        }
        Some(in_settings)
    }
}

impl Applier {
    /// Executes a request at this position of the stream.
    pub fn declare_words(&mut self, request: &WordsRequest) -> Result<()> {
        if let Err(error) = self.shared.check_request(request) {
            let _ = request.reply.send(Err(error));
            return Ok(());
        }
        let key = words_key(&self.shared.settings.name, &request.table);
        let ahead = std::mem::take(&mut *request.ahead.lock());
        let outcome = self.define_indexed(Vec::new(), vec![(key, request.stored.clone())], ahead);
        let (result, ended) = match outcome {
            Err(Error::Engine(refusal @ remora_engine::Error::Request { .. })) => {
                (Err(refusal.into()), Ok(()))
            }
            Err(error) => {
                let message = format!("the words were not declared: {error}");
                (Err(Error::Setting(message)), Err(error))
            }
            Ok(()) => (Ok(()), Ok(())),
        };
        // The requesting thread may have gone.
        let _ = request.reply.send(result);
        ended
    }
}

#[cfg(test)]
mod tests {
    use remora_engine::{ColumnDef, ColumnType, Database, Options};
    use tempfile::TempDir;

    use super::*;

    const COLUMNS: [(u32, &str, ColumnType); 3] = [
        (1, "id", ColumnType::Int(32)),
        (2, "title", ColumnType::Text),
        (3, "body", ColumnType::Text),
    ];

    fn schema(name: &str, columns: &[(u32, &str, ColumnType)]) -> Schema {
        let columns = columns.iter().enumerate().map(|(place, (id, name, kind))| ColumnDef {
            id: *id,
            name: (*name).to_owned(),
            kind: *kind,
            nullable: place > 0,
            indexed: place == 0,
            declared: None,
        });
        Schema::over(name, columns.collect(), vec![0])
    }

    fn of(columns: &[&str]) -> DeclaredWords {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        DeclaredWords { columns, ..DeclaredWords::default() }
    }

    /// The state of a follower over an empty database, with these declarations in its settings.
    fn state(words: Vec<(String, DeclaredWords)>) -> (FollowState, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), Options::default()).unwrap();
        let settings = MysqlSettings { words, ..MysqlSettings::default() };
        (FollowState::new(database, settings), directory)
    }

    fn fields(state: &FollowState, table: &str) -> Vec<String> {
        let schema = state.database.schema(table).unwrap();
        let places = schema.words.iter().flat_map(|words| words.columns.clone());
        places.map(|place| schema.columns[place].name.clone()).collect()
    }

    fn followed(table: &str) -> Stored {
        (table_key("mysql", table), "followed".to_owned())
    }

    fn rename(from: &str, to: &str) -> Definition {
        Definition::Rename { from: from.to_owned(), to: to.to_owned() }
    }

    fn alter(columns: &[(u32, &str, ColumnType)]) -> Definition {
        Definition::Alter { schema: schema("shop.t", columns), fills: Vec::new() }
    }

    #[test]
    fn ranked_search_belongs_to_the_table_name() {
        let (state, _directory) = state(vec![("shop.t".to_owned(), of(&["title", "body"]))]);
        let hidden = hidden_name("shop.t");
        let create = |name: &str| Definition::Create(schema(name, &COLUMNS));
        state.define(vec![create(&hidden)], Vec::new()).unwrap();
        assert_eq!(fields(&state, &hidden), ["title", "body"]);
        state.define(vec![rename(&hidden, "shop.t")], vec![followed("shop.t")]).unwrap();
        assert_eq!(fields(&state, "shop.t"), ["title", "body"]);
        state.define(vec![alter(&COLUMNS[..2])], Vec::new()).unwrap();
        assert_eq!(fields(&state, "shop.t"), ["title"]);
        let mut commit = DefinitionCommit::default();
        let pairs = pairs(&[("title", "headline")]);
        state.rename_word_columns("shop.t", &pairs, &mut commit);
        commit.definitions.push(alter(&[COLUMNS[0], (2, "headline", ColumnType::Text)]));
        state.define(commit.definitions, commit.positions).unwrap();
        assert_eq!(fields(&state, "shop.t"), ["headline"]);
        // The table is renamed, and its new name gets the declaration; a table created under the old name has it too.
        let name = |table: &str| TableName { database: "shop".to_owned(), table: table.to_owned() };
        let mut commit = DefinitionCommit::default();
        state.rename_words(&name("t"), &name("u"), &mut commit);
        commit.definitions.push(rename("shop.t", "shop.u"));
        commit.positions.push(followed("shop.u"));
        state.define(commit.definitions, commit.positions).unwrap();
        assert_eq!(fields(&state, "shop.u"), ["headline"]);
        state.define(vec![create("shop.t")], Vec::new()).unwrap();
        assert_eq!(fields(&state, "shop.t"), ["title", "body"]);
    }

    /// A readable table keeps its ranked search until a copy with another replaces it.
    #[test]
    fn table_keeps_its_ranked_search_during_a_copy() {
        let (state, _directory) = state(Vec::new());
        let create = Definition::Create(schema("shop.t", &COLUMNS));
        state.define(vec![create], vec![followed("shop.t")]).unwrap();
        state.declare_words("shop.t", Some(of(&["title"]))).unwrap();
        let mut commit = DefinitionCommit::default();
        state.rename_word_columns("shop.t", &pairs(&[("title", "headline")]), &mut commit);
        let columns = [COLUMNS[0], (2, "headline", ColumnType::Text)];
        let hidden = hidden_name("shop.t");
        commit.definitions.push(Definition::Create(schema(&hidden, &columns)));
        state.define(commit.definitions, commit.positions).unwrap();
        assert_eq!(
            (fields(&state, "shop.t"), fields(&state, &hidden)),
            (vec!["title".to_owned()], vec!["headline".to_owned()])
        );
        state.define(vec![rename(&hidden, "shop.t")], Vec::new()).unwrap();
        assert_eq!(fields(&state, "shop.t"), ["headline"]);
    }

    #[test]
    fn settings_count_before_what_was_declared() {
        let (state, _directory) = state(Vec::new());
        let create = Definition::Create(schema("shop.t", &COLUMNS));
        state.define(vec![create], vec![followed("shop.t")]).unwrap();
        for (words, part) in [(of(&["x"]), "\"x\""), (of(&["id"]), "no text")] {
            let error = state.declare_words("shop.t", Some(words)).unwrap_err().to_string();
            assert!(error.contains(part), "{error} / {part}");
        }
        assert!(state.declare_words("shop.u", Some(of(&["title"]))).is_err());
        state.declare_words("shop.t", Some(of(&["body"]))).unwrap();
        assert_eq!(fields(&state, "shop.t"), ["body"]);
        let settings = |words: Vec<(String, DeclaredWords)>| {
            let settings = MysqlSettings { words, ..MysqlSettings::default() };
            let state = FollowState::new(state.database.clone(), settings);
            state.apply_declared_words().unwrap();
            state
        };
        let in_settings = settings(vec![("shop.t".to_owned(), of(&["title"]))]);
        assert_eq!(fields(&in_settings, "shop.t"), ["title"]);
        assert!(in_settings.declare_words("shop.t", None).is_err());
        let unsaid = settings(Vec::new());
        assert_eq!(fields(&unsaid, "shop.t"), ["body"]);
        unsaid.declare_words("shop.t", None).unwrap();
        assert!(fields(&unsaid, "shop.t").is_empty());
    }

    fn pairs(names: &[(&str, &str)]) -> Vec<(String, String)> {
        names.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect()
    }

    #[test]
    fn stored_declarations_round_trip_and_empty_is_no_text() {
        let stored = StoredDeclaration {
            columns: vec!["title".to_owned()],
            settings: pairs(&[("morphology", "stem_en")]),
            renamed: pairs(&[("a", "b")]),
        };
        assert_eq!(StoredDeclaration::parse(Some(&stored.text())), stored);
        assert_eq!(StoredDeclaration::default().text(), "");
        assert_eq!(StoredDeclaration::parse(Some("")), StoredDeclaration::default());
        assert_eq!(StoredDeclaration::parse(None).declared(), None);
    }

    /// Names in the settings stay as they are written, whatever the columns are called now.
    #[test]
    fn renamed_columns_are_known_by_the_names_that_settings_have() {
        let in_settings = ["title".to_owned(), "body".to_owned()];
        let mut stored =
            StoredDeclaration { columns: vec!["Title".to_owned()], ..StoredDeclaration::default() };
        stored.rename(&pairs(&[("TITLE", "headline"), ("year", "made")]), &in_settings);
        assert_eq!(stored.columns, ["headline"]);
        assert_eq!(stored.renamed, pairs(&[("title", "headline")]));
        stored.rename(&pairs(&[("headline", "body"), ("body", "headline")]), &in_settings);
        assert_eq!(stored.columns, ["body"]);
        assert_eq!(
            (stored.current_name("title"), stored.current_name("body")),
            (Some("body"), Some("headline"))
        );
        stored.rename(&pairs(&[("body", "title"), ("headline", "body")]), &in_settings);
        assert!(stored.renamed.is_empty(), "{stored:?}");
        assert_eq!(stored.columns, ["title"]);
    }
}
