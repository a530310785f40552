//! One connection that sends statements and measures their times.

use std::time::{Duration, Instant};

use anyhow::Result;
use mysql::{Conn, Error as ClientError, Row, prelude::Queryable};

use super::template::FilledTemplate;
use crate::{
    answer::{Answer, is_ordered},
    lookup::servers::DatabaseServer,
    measure::MeasuredProcess,
};

/// A connection to a server.
pub struct Client<'h> {
    database_server: &'h DatabaseServer,
    connection: Conn,
    limit: Duration,
    is_prepared: bool,
}

impl<'h> Client<'h> {
    /// Opens a connection for text or prepared statements; `limit` is the time an answer may take.
    pub fn new(
        database_server: &'h DatabaseServer,
        limit: Duration,
        is_prepared: bool,
    ) -> Result<Self> {
        let connection = database_server.connect_for(limit)?;
        Ok(Self { database_server, connection, limit, is_prepared })
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.database_server.name
    }

    /// The process whose CPU time is measured.
    pub fn processor(&self) -> MeasuredProcess {
        self.database_server.processor()
    }

    /// Sends the statement and reads all rows; the duration covers both. An error of the server is an answer too.
    pub fn execute(&mut self, filled: &FilledTemplate) -> Result<(Answer, Duration)> {
        let begun = Instant::now();
        match self.rows(filled) {
            Ok((rows, took)) => Ok((Answer::of(rows, is_ordered(&filled.text)), took)),
            Err(ClientError::MySqlError(error)) => {
                Ok((Answer::Error(error.code, error.message), begun.elapsed()))
            }
            Err(error) => {
                let took = begun.elapsed();
                // The server may still be running the statement, which would distort the next measurement.
                self.database_server.end(self.connection.connection_id())?;
                self.connection = self.database_server.connect_for(self.limit)?;
                let message = format!("no answer in {:.1} s: {error}", took.as_secs_f64());
                Ok((Answer::Error(0, message), took))
            }
        }
    }

    fn rows(&mut self, filled: &FilledTemplate) -> Result<(Vec<Row>, Duration), ClientError> {
        if !self.is_prepared {
            let begun = Instant::now();
            let rows = self.connection.query(&filled.text)?;
            return Ok((rows, begun.elapsed()));
        }
        // The connection caches its last prepared statements.
        let statement = self.connection.prep(&filled.prepared)?;
        let begun = Instant::now();
        let rows = self.connection.exec(&statement, filled.values.clone())?;
        Ok((rows, begun.elapsed()))
    }
}

/// Describes a statement and the answers of the servers.
pub fn difference(filled: &FilledTemplate, answers: &[(&str, &Answer)]) -> String {
    let length = filled.text.len().min(2_000);
    let mut text = filled.text.get(..length).unwrap_or_default().to_owned();
    for (name, answer) in answers {
        text += &format!("\n  {name}: {answer}");
    }
    let Some((_, Answer::Rows(first))) = answers.first() else { return text };
    for (name, answer) in answers {
        let Answer::Rows(rows) = answer else { continue };
        if let Some(at) = first.iter().zip(rows).position(|(one, other)| one != other) {
            text += &format!("\n  row {at} by {name}: {:?}, not {:?}", rows[at], first[at]);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_first_row_that_differs() {
        let filled =
            FilledTemplate { text: "SELECT 1".into(), prepared: String::new(), values: Vec::new() };
        let rows = |last: &str| Answer::Rows(vec![vec!["a".to_owned()], vec![last.to_owned()]]);
        let (one, other) = (rows("b"), rows("c"));
        let text = difference(&filled, &[("one", &one), ("same", &one), ("other", &other)]);
        assert!(text.starts_with("SELECT 1\n  one: 2 rows"), "{text}");
        assert!(text.ends_with("\n  row 1 by other: [\"c\"], not [\"b\"]"), "{text}");
    }
}
