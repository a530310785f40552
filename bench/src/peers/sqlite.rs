//! SQLite's FTS5 with the trigram tokenizer, in this process. A term of fewer than three characters
//! has no trigram; queries with such terms are answered by LIKE on the same table.

use std::path::Path;

use anyhow::Result;
use remora_engine::{Piece, TextQuery};
use rusqlite::{Connection, params, params_from_iter, types::Value};

use super::{Load, Peer, Syntax, cached, terms};
use crate::{
    corpus::Corpus,
    measure::{MeasuredProcess, once},
    oracle::NEWEST,
};

/// The shortest term that the tokenizer can look up, in characters.
const SHORTEST_INDEXED: usize = 3;

/// An open SQLite database with the corpus.
pub struct Sqlite {
    connection: Connection,
    name: String,
}

impl Sqlite {
    /// Opens the database of this corpus.
    pub fn open(corpus: &Corpus) -> Result<(Load, Self)> {
        let (directory, load) = cached(corpus, "sqlite", |directory| {
            Ok(once(MeasuredProcess::Own, || fill(directory, corpus))?.1)
        })?;
        let connection = Connection::open(directory.join("rows.db"))?;
        // The cache covers the whole database, as the memory of the other engines covers their
        // indexes.
        connection.execute_batch("PRAGMA mmap_size=8589934592; PRAGMA cache_size=-1000000;")?;
        let name = format!("SQLite {} FTS5 trigram", rusqlite::version());
        Ok((load, Self { connection, name }))
    }

    fn run<T: Default>(
        &self,
        query: &TextQuery,
        select: &str,
        order: &str,
        mut visit: impl FnMut(&mut T, u64),
    ) -> Result<T> {
        let (condition, arguments) = condition(query);
        let sql = format!("SELECT {select} FROM rows WHERE {condition} {order}");
        let mut statement = self.connection.prepare(&sql)?;
        let mut found = statement.query(params_from_iter(arguments))?;
        let mut result = T::default();
        while let Some(row) = found.next()? {
            visit(&mut result, row.get::<_, i64>(0)?.unsigned_abs());
        }
        Ok(result)
    }
}

impl Peer for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn in_process(&self) -> bool {
        true
    }

    fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Own
    }

    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>> {
        let order = format!("ORDER BY rowid DESC LIMIT {NEWEST}");
        self.run(query, "rowid", &order, |ids: &mut Vec<u64>, id| ids.push(id))
    }

    fn count(&mut self, query: &TextQuery) -> Result<u64> {
        self.run(query, "count(*)", "", |total: &mut u64, count| *total = count)
    }

    fn note(&self, query: &TextQuery) -> Option<&'static str> {
        (!is_indexed(query)).then_some("LIKE")
    }
}

fn fill(directory: &Path, corpus: &Corpus) -> Result<()> {
    let mut connection = Connection::open(directory.join("rows.db"))?;
    connection.execute_batch(
        "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-1000000;
         CREATE VIRTUAL TABLE rows USING fts5(body, tokenize='trigram');",
    )?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare("INSERT INTO rows(rowid, body) VALUES (?, ?)")?;
        for (document, text) in corpus.documents.iter().zip(&corpus.texts) {
            insert.execute(params![document.id as i64, text])?;
        }
    }
    transaction.commit()?;
    connection.execute_batch("INSERT INTO rows(rows) VALUES ('optimize'); PRAGMA optimize;")?;
    Ok(())
}

fn is_indexed(query: &TextQuery) -> bool {
    terms(query).iter().all(|term| term.chars().count() >= SHORTEST_INDEXED)
}

/// The condition of the WHERE clause and its arguments.
fn condition(query: &TextQuery) -> (String, Vec<Value>) {
    if is_indexed(query) {
        return ("rows MATCH ?".into(), vec![Value::Text(match_expression(query))]);
    }
    let syntax = Syntax {
        term: &|_| "body LIKE ? ESCAPE '\\'".into(),
        and: " AND ",
        or: " OR ",
        not: "NOT ",
    };
    let pattern = |term: &str| {
        let escaped = term.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        Value::Text(format!("%{escaped}%"))
    };
    (syntax.render(query), terms(query).into_iter().map(pattern).collect())
}

/// The operator NOT of FTS5 is binary, so the negated operands of an AND come last.
fn match_expression(query: &TextQuery) -> String {
    match query {
        TextQuery::Term(text) | TextQuery::Piece(Piece { text, .. }) => {
            format!("\"{}\"", text.replace('"', "\"\""))
        }
        TextQuery::Keywords(query) => query.text.clone(),
        TextQuery::Or(parts) => {
            let parts: Vec<String> = parts.iter().map(match_expression).collect();
            format!("({})", parts.join(" OR "))
        }
        TextQuery::And(parts) => {
            let (negated, plain): (Vec<_>, Vec<_>) =
                parts.iter().partition(|part| matches!(part, TextQuery::Not(_)));
            let plain: Vec<String> = plain.into_iter().map(match_expression).collect();
            let negated: String = negated.into_iter().map(match_expression).collect();
            format!("(({}){negated})", plain.join(" AND "))
        }
        TextQuery::Not(part) => format!(" NOT {}", match_expression(part)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_match_expressions() {
        let term = |text: &str| TextQuery::Term(text.into());
        let not = TextQuery::Not(Box::new(term("lunar")));
        let query = TextQuery::And(vec![term("eclipse"), not, term("so\"lar")]);
        assert_eq!(match_expression(&query), "((\"eclipse\" AND \"so\"\"lar\") NOT \"lunar\")");
        assert_eq!(condition(&term("日本")).0, "body LIKE ? ESCAPE '\\'");
    }
}
