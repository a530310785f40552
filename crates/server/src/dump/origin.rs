//! Checks that a dump belongs to the followed source. Rows of another server, or with other columns, would replace
//! correct ones, and the stream after the dump's position would never correct them.

use std::path::Path;

use remora_engine::{
    Row, Schema,
    dump::{DumpInfo, DumpVisitor, read},
};
use remora_protocol::line::{LineError, code};
use remora_source::mysql::followed_server;

use crate::shared::ServerState;

/// Reads a whole dump, verifies its checksums, and checks that its tables may replace the existing ones. Returns their
/// number.
pub(super) fn verify(shared: &ServerState, path: &Path) -> Result<u64, LineError> {
    let mut definitions = Definitions::default();
    let info = read(path, &mut definitions)?;
    check_servers(shared, &info)?;
    check_definitions(shared, &definitions.0)?;
    Ok(info.tables.len() as u64)
}

/// The definitions of a dump's tables.
#[derive(Default)]
struct Definitions(Vec<Schema>);

impl DumpVisitor for Definitions {
    fn table(&mut self, schema: Schema) -> remora_engine::Result<()> {
        self.0.push(schema);
        Ok(())
    }

    fn row(&mut self, _row: Row, _bytes: usize) -> remora_engine::Result<()> {
        Ok(())
    }
}

/// Each followed server must be the one that the dump's rows came from.
fn check_servers(shared: &ServerState, info: &DumpInfo) -> Result<(), LineError> {
    let stored = shared.database.source_positions();
    for one in shared.sources.all() {
        let (name, dumped) = (one.name.as_str(), &info.meta.sources);
        let theirs = followed_server(name, |key| dumped.get(key).map(String::as_str));
        let Some(theirs) = theirs else {
            return Err(refused(format!(
                "it was not saved by a server that follows the source '{name}'; SYNC copies \
                 tables again"
            )));
        };
        let ours = followed_server(name, |key| stored.get(key));
        if let Some(ours) = ours.filter(|ours| *ours != theirs) {
            return Err(refused(format!(
                "its rows are of the server {theirs}, and {ours} is followed here; SYNC copies \
                 tables again"
            )));
        }
    }
    Ok(())
}

/// The dump must have the configured definitions of followed tables.
fn check_definitions(shared: &ServerState, dumped: &[Schema]) -> Result<(), LineError> {
    let settings = shared.settings.load();
    for schema in dumped.iter().filter(|schema| settings.is_followed(&schema.name)) {
        let here = shared.database.schema(&schema.name);
        if here.is_ok_and(|here| *here != *schema) {
            return Err(refused(format!(
                "its table '{}' has another definition than the settings give it now; SYNC \
                 copies it again",
                schema.name
            )));
        }
    }
    Ok(())
}

fn refused(why: String) -> LineError {
    LineError::new(code::INVALID_ARGUMENT, format!("The dump cannot be loaded: {why}"))
}
