//! Queries of a mysql source besides `sql_query`: each gives pairs of a document's number and one of its values, all at
//! once or in stretches of documents.

use super::range::{Pace, of_stretch, ranged};
use crate::{Error, Result, mysql::connection::Connection};

/// A query of pairs, with the words by which errors name it.
pub(super) struct Pairs<'q> {
    /// The source that errors name.
    pub source: &'q str,
    /// The key of the section that has the query.
    pub key: &'static str,
    /// The column that the query fills.
    pub column: &'q str,
    /// What the second column of the query is to be.
    pub value: &'static str,
    /// The query.
    pub query: &'q str,
    /// The query that gives the ends of all stretches, if there are stretches.
    pub ends: Option<&'q str>,
}

impl Pairs<'_> {
    /// Runs the query and hands its rows over one after the other.
    ///
    /// # Errors
    /// Those of the connection, one for a query of more or fewer than two columns, and what `take` returns, which ends
    /// the query.
    pub fn each(
        &self,
        pace: Pace,
        connection: &mut Connection,
        take: &mut dyn FnMut(&[Vec<u8>]) -> Result<()>,
    ) -> Result<()> {
        let mut read = |connection: &mut Connection, query: &str| {
            connection.each_row(query, &mut |names, cells| match cells {
                Some(cells) => take(&cells),
                None => self.check_columns(names),
            })
        };
        match self.ends {
            None => read(connection, self.query),
            Some(ends) => ranged(connection, ends, pace, |connection, part| match part {
                Some((start, end)) => read(connection, &of_stretch(self.query, start, end)),
                None => Ok(()),
            }),
        }
    }

    fn check_columns(&self, names: &[String]) -> Result<()> {
        let Self { source, key, column, value, .. } = self;
        match names.len() {
            2 => Ok(()),
            count => Err(Error::format(
                source,
                format!(
                    "{key}: the query of '{column}' selects {count} columns: it is to select a document's number \
                     and {value}"
                ),
            )),
        }
    }
}
