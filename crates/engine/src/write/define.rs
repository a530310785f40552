//! Making and dropping tables: between two groups, by the writer thread.

use std::sync::Arc;

use super::{prepare::no_table, required::RequiredRows, writer::Writer};
use crate::{
    Error, Position, Result, Schema, catalog,
    snapshot::{Snapshot, TableView},
    store::{StoreBatch, StoredRows},
};

impl Writer<'_> {
    /// Makes a table, or finds it made with the same definition.
    pub(super) fn create(&mut self, schema: Schema) -> Result<Position> {
        if let Some(view) = self.shared.published.load().tables.get(schema.name.as_str()) {
            let message = format!(
                "there is a table {:?} of another definition: drop it or choose another name",
                schema.name
            );
            let same = *view.schema == schema;
            return if same { Ok(self.position) } else { Err(Error::Conflict(message)) };
        }
        schema.validate()?;
        RequiredRows::of(&schema)?;
        let mut commit = StoreBatch::new();
        let number = catalog::put_table(&*self.store.snapshot(), &mut commit, &schema)?;
        // A definition is durable at once whatever the rows are: it is rare and all rows need it.
        self.commit_to_store(commit, true)?;
        self.publish_table(number, Arc::new(schema));
        Ok(self.position)
    }

    /// Drops a table: first its definition, so that a crash leaves no table without its rows.
    pub(super) fn drop_table(&mut self, name: &str) -> Result<Position> {
        let view = self.shared.published.load().tables.get(name).cloned();
        let view = view.ok_or_else(|| no_table(name))?;
        let mut commit = StoreBatch::new();
        catalog::delete_table(&mut commit, view.number);
        self.commit_to_store(commit, true)?;
        self.shared.published.update(|current| {
            let mut tables = current.tables.clone();
            tables.remove(name);
            Some(Snapshot { position: current.position, tables })
        });
        let dropped = self.store.drop_rows(view.number);
        dropped.map_err(|error| self.shared.poison(&error))?;
        Ok(self.position)
    }

    fn publish_table(&self, number: u32, schema: Arc<Schema>) {
        let rows = StoredRows::new(self.store.snapshot(), number, Arc::clone(&schema));
        let name = Arc::from(schema.name.as_str());
        let view = TableView { number, schema, segments: Vec::new(), rows: Arc::new(rows) };
        self.shared.published.update(|current| {
            let mut tables = current.tables.clone();
            tables.insert(name, Arc::new(view));
            Some(Snapshot { position: current.position, tables })
        });
    }
}
