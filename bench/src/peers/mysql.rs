//! MySQL 9.7 from its private directory (`bench/scripts/mysql97`), over a Unix socket: FULLTEXT
//! with the ngram parser and its default stop words, and LIKE on the same table.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    rc::Rc,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use mysql::{Conn, OptsBuilder, Params, params, prelude::Queryable};
use remora_engine::TextQuery;

use super::{Load, Peer, Syntax, cached, terms};
use crate::{
    corpus::Corpus,
    measure::{Once, Processor, once},
    oracle::NEWEST,
};

/// Rows of one INSERT.
const ROWS_PER_INSERT: usize = 500;
/// Longest wait for a server to start or to stop.
const PATIENCE: Duration = Duration::from_secs(180);

/// Starts MySQL over this corpus: two peers on one server.
pub fn open(corpus: &Corpus) -> Result<(Load, Vec<Box<dyn Peer>>)> {
    let root = unpacked_server()?;
    let (directory, load) = cached(corpus, "mysql", |directory| fill(&root, directory, corpus))?;
    let server = Rc::new(Server::start(&root, &directory)?);
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

/// How the table is asked.
#[derive(Clone, Copy)]
enum Access {
    FullText,
    Like,
}

/// One connection and one way to ask.
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

    fn processor(&self) -> Processor {
        Processor::Of(self.server.process.id())
    }

    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>> {
        self.run(query, "id", &format!("ORDER BY id DESC LIMIT {NEWEST}"))
    }

    fn count(&mut self, query: &TextQuery) -> Result<u64> {
        self.run(query, "COUNT(*)", "")?.first().copied().context("MySQL: no count")
    }
}

/// A running mysqld; stopped when dropped.
struct Server {
    process: Child,
    socket: PathBuf,
}

impl Server {
    fn start(root: &Path, directory: &Path) -> Result<Self> {
        let data = directory.join("data");
        if !data.exists() {
            let status = mysqld(root, directory)?.arg("--initialize-insecure").status()?;
            if !status.success() {
                bail!("mysqld --initialize-insecure ended with {status}: see {directory:?}");
            }
        }
        let socket = std::env::temp_dir().join(format!("bench-{}.sock", std::process::id()));
        let process = mysqld(root, directory)?
            .arg(format!("--socket={}", socket.display()))
            .args(["--skip-networking", "--mysqlx=OFF", "--disable-log-bin"])
            .args(["--performance-schema=OFF", "--innodb-flush-log-at-trx-commit=0"])
            .args(["--innodb-buffer-pool-size=4G", "--innodb-redo-log-capacity=1G"])
            .args(["--innodb-sort-buffer-size=64M", "--max-allowed-packet=64M"])
            .spawn()?;
        let mut server = Self { process, socket };
        let start = Instant::now();
        while server.connect().is_err() {
            if let Some(status) = server.process.try_wait()? {
                bail!("mysqld ended with {status}: see {}/error.log", directory.display());
            }
            if start.elapsed() > PATIENCE {
                bail!("mysqld does not answer after {} s", PATIENCE.as_secs());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn connect(&self) -> Result<Conn> {
        let options = OptsBuilder::new()
            .socket(Some(self.socket.to_string_lossy()))
            .user(Some("root"))
            .max_allowed_packet(Some(64 << 20));
        Ok(Conn::new(options)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that does not stop when asked is killed; what it holds is loaded again.
        if let Ok(mut connection) = self.connect() {
            let _ = connection.query_drop("SHUTDOWN");
        }
        let start = Instant::now();
        while matches!(self.process.try_wait(), Ok(None)) && start.elapsed() < PATIENCE {
            sleep(Duration::from_millis(50));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn unpacked_server() -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/mysql97");
    let output = Command::new(&script)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", script.display()))?;
    if !output.status.success() {
        bail!("{} ended with {}", script.display(), output.status);
    }
    Ok(String::from_utf8(output.stdout)?.trim().into())
}

/// The server under the loader and libraries it was unpacked with.
fn mysqld(root: &Path, directory: &Path) -> Result<Command> {
    let libraries = root.join("lib/x86_64-linux-gnu");
    let path = |name: &str| root.join(name).display().to_string();
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command
        .arg("--library-path")
        .arg(&libraries)
        .arg(root.join("sbin/mysqld"))
        .args(["--no-defaults", "--user=root", "--secure-file-priv=NULL"])
        .arg(format!("--basedir={}", root.display()))
        .arg(format!("--plugin-dir={}", path("lib/mysql/plugin")))
        .arg(format!("--lc-messages-dir={}", path("share/mysql")))
        .arg(format!("--character-sets-dir={}", path("share/mysql/charsets")))
        .arg(format!("--datadir={}", directory.join("data").display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(
            std::fs::File::options().create(true).append(true).open(directory.join("error.log"))?,
        );
    Ok(command)
}

fn fill(root: &Path, directory: &Path, corpus: &Corpus) -> Result<Once> {
    let server = Server::start(root, directory)?;
    let mut connection = server.connect()?;
    connection.query_drop("CREATE DATABASE bench")?;
    connection.query_drop(
        "CREATE TABLE bench.docs (id BIGINT UNSIGNED PRIMARY KEY, body MEDIUMTEXT NOT NULL)
         ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_as_cs",
    )?;
    let (_, once) = once(Processor::Of(server.process.id()), || {
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

/// An expression of MATCH … AGAINST's boolean mode. Quotes cannot be escaped in it.
fn boolean_expression(query: &TextQuery) -> String {
    match query {
        TextQuery::Term(term) => format!("\"{}\"", term.replace('"', " ")),
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
