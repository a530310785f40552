//! MERGE tables: changes through them change rows of other tables, but the binlog names only the MERGE table.
//!
//! Their member tables are not tracked. Whenever a MERGE table may have been changed, all tables of an engine that
//! members can have are copied again. A name that was once a MERGE table's counts as one for the rest of the session.

use rustc_hash::FxHashSet;

use super::{applier::Applier, statement::Statement};
use crate::{
    Result,
    mysql::{connection::Connection, schema::list_merged, table_name::TableName},
};

/// The storage engine of member tables.
const MERGED_ENGINE: &str = "MyISAM";
/// Words that only the definition of a MERGE table has.
const WORDS: [&str; 3] = ["UNION", "MERGE", "MRG_MYISAM"];

/// The names of MERGE tables, followed or not.
#[derive(Default)]
pub(super) struct Merged {
    names: FxHashSet<TableName>,
}

impl Merged {
    /// The source's current MERGE tables.
    pub fn load(source: &mut Connection) -> Result<Self> {
        let listed = list_merged(&mut source.conn)?.into_iter();
        let names = listed.map(|(database, table)| TableName { database, table }).collect();
        Ok(Self { names })
    }

    /// Whether rows of this table are rows of others.
    pub fn has(&self, table: &TableName) -> bool {
        !self.names.is_empty() && self.names.contains(table)
    }

    /// Learns from a statement which tables are MERGE tables.
    fn update(&mut self, statement: &Statement) {
        let says_so = |words: &[String]| {
            words.iter().any(|word| WORDS.iter().any(|merge| word.eq_ignore_ascii_case(merge)))
        };
        match statement {
            Statement::Create(creation) => {
                let is_like = creation.like.as_ref().is_some_and(|like| self.has(like));
                if is_like || says_so(&creation.words) {
                    self.names.extend(creation.names.iter().cloned());
                }
            }
            Statement::Alter { table, renamed, alteration, .. }
                if self.has(table) || says_so(&alteration.words) =>
            {
                self.names.extend([table].into_iter().chain(renamed).cloned());
            }
            Statement::Rename(renames) => {
                for (from, to) in renames {
                    if self.has(from) {
                        self.names.insert(to.clone());
                    }
                }
            }
            _ => {}
        }
    }
}

impl Applier {
    /// Copies all tables that may be members, because a MERGE table's rows changed.
    pub fn mark_member_rows_lost(&mut self) {
        let is_merged = |engine: String| engine.eq_ignore_ascii_case(MERGED_ENGINE);
        let tables = self.tables.iter();
        let merged = tables.filter(|(_, followed)| followed.source.engine().is_some_and(is_merged));
        let merged: Vec<_> = merged.map(|(table, _)| table.clone()).collect();
        merged.iter().for_each(|table| self.mark_rows_lost(table));
    }

    /// Handles a statement's effects on MERGE tables and through them.
    pub fn apply_to_merge_tables(&mut self, statement: &Statement) {
        self.merged.update(statement);
        if matches!(statement, Statement::Truncate(table) if self.merged.has(table)) {
            self.mark_member_rows_lost();
        }
    }
}
