//! Queries of a mysql source besides `sql_query`: each returns pairs of a document id and a value, all at once or in
//! ranges of ids.

use super::range::{Pace, of_stretch, ranged};
use crate::{Error, Result, mysql::connection::Connection};

/// A query of pairs, with its names for errors.
pub(super) struct Pairs<'q> {
    /// The source.
    pub source: &'q str,
    /// The key of the section that has the query.
    pub key: &'static str,
    /// The column that the query fills.
    pub column: &'q str,
    /// The description of the query's second column.
    pub value: &'static str,
    /// The query.
    pub query: &'q str,
    /// The query for the range of ids, if it is run in ranges.
    pub ends: Option<&'q str>,
}

impl Pairs<'_> {
    /// Runs the query and passes its rows to `take` one by one.
    ///
    /// # Errors
    /// Those of the connection, an error for a query that does not return two columns, and any error of `take`, which
    /// ends the query.
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
