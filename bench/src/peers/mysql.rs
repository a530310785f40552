//! MySQL 9.7 over a Unix socket: FULLTEXT with the ngram parser and its default stop words, and LIKE on the same table.

use std::{path::Path, rc::Rc};

use anyhow::{Context, Result};
use mysql::{Conn, Params, params, prelude::Queryable};
use remora_engine::{Piece, TextQuery};
use remora_peers::{Kind, Server};

use super::{Load, Peer, Syntax, cached, terms};
use crate::{
    corpus::Corpus,
    measure::{MeasuredProcess, Once, once},
    oracle::NEWEST,
};

/// Rows of one INSERT.
const ROWS_PER_INSERT: usize = 500;
/// Settings of a server that only runs searches.
const OPTIONS: [&str; 10] = [
    "--skip-networking",
    "--disable-log-bin",
    "--gtid-mode=OFF",
    "--enforce-gtid-consistency=OFF",
    "--performance-schema=OFF",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-buffer-pool-size=4G",
    "--innodb-redo-log-capacity=1G",
    "--innodb-sort-buffer-size=64M",
    "--max-allowed-packet=64M",
];

/// Starts MySQL over this corpus: two peers on one server.
pub fn open(corpus: &Corpus) -> Result<(Load, Vec<Box<dyn Peer>>)> {
    Kind::MySql97.fetch()?;
    let (directory, load) = cached(corpus, "mysql", |directory| fill(directory, corpus))?;
    let server = Rc::new(start(&directory)?);
    let peers = [Access::FullText, Access::Like].map(|access| {
        let mut connection = server.connect()?;
        let version: String =
            connection.query_first("SELECT version()")?.context("MySQL: no version")?;
        let name = match access {
            Access::FullText => format!("MySQL {version} FULLTEXT ngram"),
            Access::Like => format!("MySQL {version} LIKE"),
        };
        Ok(Box::new(Mysql { server: Rc::clone(&server), connection, access, name })
            as Box<dyn Peer>)
    });
    Ok((load, peers.into_iter().collect::<Result<_>>()?))
}

/// How the table is searched.
#[derive(Clone, Copy)]
enum Access {
    FullText,
    Like,
}

/// One connection and one kind of search.
struct Mysql {
    server: Rc<Server>,
    connection: Conn,
    access: Access,
    name: String,
}

impl Mysql {
    fn run(&mut self, query: &TextQuery, select: &str, order: &str) -> Result<Vec<u64>> {
        let (condition, arguments) = match self.access {
            Access::FullText => (
                "MATCH(body) AGAINST(? IN BOOLEAN MODE)".to_owned(),
                vec![boolean_expression(query)],
            ),
            Access::Like => like_condition(query),
        };
        let sql = format!("SELECT {select} FROM bench.docs WHERE {condition} {order}");
        let arguments = arguments.into_iter().map(mysql::Value::from).collect();
        Ok(self.connection.exec(sql, Params::Positional(arguments))?)
    }
}

impl Peer for Mysql {
    fn name(&self) -> &str {
        &self.name
    }

    fn in_process(&self) -> bool {
        false
    }

    fn processor(&self) -> MeasuredProcess {
        processor(&self.server)
    }

    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>> {
        self.run(query, "id", &format!("ORDER BY id DESC LIMIT {NEWEST}"))
    }

    fn count(&mut self, query: &TextQuery) -> Result<u64> {
        self.run(query, "COUNT(*)", "")?.first().copied().context("MySQL: no count")
    }
}

fn start(directory: &Path) -> Result<Server> {
    Server::start_in(Kind::MySql97, directory, &OPTIONS)
}

fn processor(server: &Server) -> MeasuredProcess {
    server.process_id().map_or(MeasuredProcess::Unknown, MeasuredProcess::Of)
}

fn fill(directory: &Path, corpus: &Corpus) -> Result<Once> {
    let server = start(directory)?;
    let mut connection = server.connect()?;
    connection.query_drop("CREATE DATABASE bench")?;
    connection.query_drop(
        "CREATE TABLE bench.docs (id BIGINT UNSIGNED PRIMARY KEY, body MEDIUMTEXT NOT NULL)
         ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_as_cs",
    )?;
    let (_, once) = once(processor(&server), || {
        for (rows, texts) in
            corpus.documents.chunks(ROWS_PER_INSERT).zip(corpus.texts.chunks(ROWS_PER_INSERT))
        {
            let mut transaction = connection.start_transaction(mysql::TxOpts::default())?;
            let rows = rows.iter().zip(texts);
            transaction.exec_batch(
                "INSERT INTO bench.docs (id, body) VALUES (:id, :body)",
                rows.map(|(row, text)| params! { "id" => row.id, "body" => text }),
            )?;
            transaction.commit()?;
        }
        connection.query_drop(
            "ALTER TABLE bench.docs ADD FULLTEXT INDEX body_ngrams (body) WITH PARSER ngram",
        )?;
        Ok(connection.query_drop("ANALYZE TABLE bench.docs")?)
    })?;
    Ok(once)
}

/// An expression in the boolean mode of MATCH … AGAINST, in which quotes cannot be escaped.
fn boolean_expression(query: &TextQuery) -> String {
    match query {
        TextQuery::Term(text) | TextQuery::Piece(Piece { text, .. }) => {
            format!("\"{}\"", text.replace('"', " "))
        }
        TextQuery::Keywords(query) => query.text.clone(),
        TextQuery::Or(parts) => {
            format!("({})", parts.iter().map(boolean_expression).collect::<Vec<_>>().join(" "))
        }
        TextQuery::And(parts) => {
            let parts = parts.iter().map(|part| match part {
                TextQuery::Not(_) => boolean_expression(part),
                part => format!("+{}", boolean_expression(part)),
            });
            format!("({})", parts.collect::<Vec<_>>().join(" "))
        }
        TextQuery::Not(part) => format!("-{}", boolean_expression(part)),
    }
}

fn like_condition(query: &TextQuery) -> (String, Vec<String>) {
    let syntax = Syntax { term: &|_| "body LIKE ?".into(), and: " AND ", or: " OR ", not: "NOT " };
    let pattern = |term: &str| {
        format!("%{}%", term.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_"))
    };
    (syntax.render(query), terms(query).into_iter().map(pattern).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_boolean_mode_and_like() {
        let term = |text: &str| TextQuery::Term(text.into());
        let either = TextQuery::Or(vec![term("a b"), term("c")]);
        let query = TextQuery::And(vec![either, TextQuery::Not(Box::new(term("50%")))]);
        assert_eq!(boolean_expression(&query), "(+(\"a b\" \"c\") -\"50%\")");
        let (condition, arguments) = like_condition(&query);
        assert_eq!(condition, "((body LIKE ? OR body LIKE ?) AND NOT body LIKE ?)");
        assert_eq!(arguments, ["%a b%", "%c%", "%50\\%%"]);
    }
}
