//! Real, unmodified clients against `remora serve`: drivers in six languages, an ORM, clients of SphinxAPI and SphinxQL,
//! and dumps that are loaded again.
//!
//! `tests/clients/fetch` installs them; a missing client fails its test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod suites;

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

/// A server for one test, on a free port.
struct Serving {
    child: Child,
    port: String,
    /// The port of SphinxAPI, if the settings enable it.
    sphinx_port: Option<String>,
    _data: tempfile::TempDir,
}

impl Serving {
    fn start() -> Self {
        Self::with(None)
    }

    /// Starts a server with a settings file.
    fn with(settings: Option<&Path>) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_remora"))
            .args([
                "serve",
                "--line",
                "127.0.0.1:0",
                "--http",
                "",
                "--sql",
                "127.0.0.1:0",
                "--data",
            ])
            .arg(data.path())
            .args(settings.iter().flat_map(|file| [Path::new("--config"), *file]))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut port_of = |head: &str| loop {
            let line = lines.next().expect("the server ended").unwrap();
            if let Some(address) = line.strip_prefix(head) {
                break address.rsplit_once(':').unwrap().1.to_owned();
            }
        };
        let port = port_of("MySQL protocol: ");
        let listens = |file: &Path| std::fs::read_to_string(file).unwrap().contains("sphinx_api");
        let sphinx_port = settings.filter(|file| listens(file)).map(|_| port_of("SphinxAPI: "));
        Self { child, port, sphinx_port, _data: data }
    }

    /// Runs a client with the port as its last but one argument; the client must report success.
    fn passes(&self, command: &mut Command) {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        assert_eq!(printed(&output).trim_end().lines().last(), Some("ok"), "{command:?}");
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn printed(output: &Output) -> String {
    let (out, error) = (&output.stdout, &output.stderr);
    let (out, error) = (String::from_utf8_lossy(out), String::from_utf8_lossy(error));
    assert!(output.status.success(), "{out}\n{error}");
    out.into_owned()
}

/// A path in what `tests/clients/fetch` unpacked.
fn fetched(path: &str) -> PathBuf {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache =
        cache.unwrap_or_else(|| Path::new(&std::env::var_os("HOME").unwrap()).join(".cache"));
    let found = cache.join("remora-bench").join(path);
    assert!(found.exists(), "{} is missing: run tests/clients/fetch", found.display());
    found
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(path)
}

fn python(script: &str, port: &str) -> Command {
    let mut command = Command::new(fetched("clients/python/bin/python"));
    command.arg(source("python").join(script)).arg(port);
    command
}

/// A client program of MySQL 9.7, run by the dynamic loader that came with it.
fn mysql97(program: &str) -> Command {
    let root = fetched("mysqlclient97/root/usr");
    let libraries = root.join("lib/x86_64-linux-gnu");
    let mut command = Command::new(libraries.join("ld-linux-x86-64.so.2"));
    command.arg("--library-path").arg(&libraries).arg(root.join("bin").join(program));
    command.arg("--no-defaults");
    command
}

/// Runs statements with a command-line client, which separates values by tabs.
fn rows(mut client: Command, port: &str, statements: impl AsRef<[u8]>) -> String {
    client.args(["-h127.0.0.1", "-uroot", "-N", "-B", "-P", port]);
    let mut child =
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(statements.as_ref()).unwrap();
    printed(&child.wait_with_output().unwrap())
}

const TABLES: &str = "
CREATE DATABASE shop;
USE shop;
CREATE TABLE makers (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE) COMMENT='who';
CREATE TABLE things (
  id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(30) COLLATE utf8mb4_bin DEFAULT 'x' COMMENT 'it''s',
  body TEXT, price DECIMAL(8,2) UNSIGNED, kind ENUM('a','b'), raw VARBINARY(9), at DATETIME(3),
  extra JSON, maker INT,
  KEY by_price (price DESC), UNIQUE KEY once (name, maker), FULLTEXT KEY words (body),
  CONSTRAINT made_by FOREIGN KEY (maker) REFERENCES makers (id) ON DELETE CASCADE
);
INSERT INTO makers VALUES (1, 'one'), (2, NULL);
INSERT INTO things (name, body, price, kind, raw, at, extra, maker) VALUES
  ('lamp', 'a lamp''s \\\\ light ☃ 😀', 1.50, 'a', x'00ff27', '2024-02-29 01:02:03.456', '{\"a\": 1}', 1),
  (NULL, '', NULL, NULL, NULL, NULL, NULL, NULL);
";
const ALL: &str = "SELECT *, HEX(raw) FROM shop.things; SELECT * FROM shop.makers; \
                   SHOW CREATE TABLE shop.things; SHOW CREATE TABLE shop.makers";

/// Creates tables with a client, dumps them and loads the dump into a second server.
fn dumps(client: impl Fn() -> Command, mut dump: Command) {
    let (from, into) = (Serving::start(), Serving::start());
    rows(client(), &from.port, TABLES);
    let written = rows(client(), &from.port, ALL);
    assert!(written.contains("00FF27") && written.contains("made_by"), "{written}");
    dump.args(["-h127.0.0.1", "-uroot", "-P", &from.port, "--databases", "shop"]);
    let dumped = dump.output().unwrap();
    printed(&dumped);
    // Passed as bytes, because binary values are not text.
    rows(client(), &into.port, &dumped.stdout);
    assert_eq!(rows(client(), &into.port, ALL), written);
}

#[test]
fn mysql_and_its_dump() {
    dumps(|| mysql97("mysql"), mysql97("mysqldump"));
}

#[test]
fn mariadb() {
    let serving = Serving::start();
    let client = || Command::new("mariadb");
    rows(client(), &serving.port, TABLES);
    let names = rows(client(), &serving.port, "SHOW TABLES FROM shop; SELECT VERSION() <> ''");
    assert_eq!(names, "makers\nthings\n1\n");
}

#[test]
fn pymysql() {
    let serving = Serving::start();
    serving.passes(&mut python("pymysql_client.py", &serving.port));
}

#[test]
fn mysql_connector_python() {
    let serving = Serving::start();
    serving.passes(&mut python("connector_client.py", &serving.port));
}

#[test]
fn sqlalchemy() {
    let serving = Serving::start();
    for driver in ["pymysql", "mysqlconnector"] {
        serving.passes(python("sqlalchemy_client.py", &serving.port).arg(driver));
    }
}

fn node(script: &str, port: &str) -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", fetched("clients/node/node_modules"));
    command.arg(source("node").join(script)).arg(port);
    command
}

#[test]
fn mysql2_of_node() {
    let serving = Serving::start();
    serving.passes(&mut node("client.js", &serving.port));
}

#[test]
fn knex_and_sequelize() {
    let serving = Serving::start();
    serving.passes(&mut node("orms.js", &serving.port));
}

#[test]
fn go_sql_driver() {
    let serving = Serving::start();
    serving.passes(Command::new(fetched("clients/go/client")).arg(&serving.port));
}

#[test]
fn jdbc() {
    let serving = Serving::start();
    let classes = fetched("clients/java");
    let path = format!("{0}:{0}/*", classes.display());
    for (driver, options) in [
        ("mysql", "useServerPrepStmts=false"),
        ("mysql", "useServerPrepStmts=true&rewriteBatchedStatements=true"),
        ("mariadb", "useServerPrepStmts=true"),
    ] {
        let address = format!("jdbc:{driver}://127.0.0.1:{}", serving.port);
        let mut command = Command::new("java");
        serving.passes(command.args(["-cp", &path, "Client", &address, options]));
    }
}

/// A server with SphinxAPI and a table of words.
fn press() -> Serving {
    let directory = tempfile::tempdir().unwrap();
    let settings = directory.path().join("remora.toml");
    std::fs::write(&settings, "[listen]\nsphinx_api = \"127.0.0.1:0\"\n").unwrap();
    let serving = Serving::with(Some(&settings));
    rows(
        Command::new("mariadb"),
        &serving.port,
        "CREATE DATABASE press; USE press;
         CREATE TABLE articles (id BIGINT UNSIGNED PRIMARY KEY, title TEXT, body TEXT, year INT UNSIGNED,
             price FLOAT, author VARCHAR(20), tags MULTI) words='title,body';
         INSERT INTO articles VALUES
             (1, 'red fox', 'the quick brown fox', 2001, 1.5, 'ann', (1, 2)),
             (2, 'blue fox', 'a lazy dog and a fox', 2002, 2.5, 'bob', (2, 3)),
             (3, 'green dog', 'the dog sleeps', 2002, 3.5, 'ann', (3));",
    );
    serving
}

#[test]
fn sphinx_search_of_perl() {
    let serving = press();
    let mut client = Command::new("perl");
    serving.passes(client.arg(source("perl/sphinx.pl")).arg(serving.sphinx_port.as_ref().unwrap()));
}

#[test]
fn sphinxapi_of_python() {
    let serving = press();
    serving.passes(&mut python("sphinxapi_client.py", serving.sphinx_port.as_ref().unwrap()));
}

#[test]
fn sphinxql_by_pymysql() {
    let serving = press();
    serving.passes(&mut python("sphinxql_client.py", &serving.port));
}

#[test]
fn sphinxql_by_php() {
    let serving = press();
    let root = fetched("clients/php");
    let mut client = Command::new(root.join("usr/bin/php8.2"));
    let extensions = std::fs::read_dir(root.join("usr/lib/php")).unwrap().flatten();
    let mut folders = extensions.map(|it| it.path()).filter(|it| it.join("mysqli.so").exists());
    client.env("LD_LIBRARY_PATH", root.join("usr/lib/x86_64-linux-gnu"));
    client.arg("-n").arg("-d").arg(format!("extension_dir={}", folders.next().unwrap().display()));
    for extension in ["mysqlnd", "mysqli", "pdo", "pdo_mysql"] {
        client.arg("-d").arg(format!("extension={extension}"));
    }
    serving.passes(client.arg(source("php/sphinxql.php")).arg(&serving.port));
}

/// The command-line clients of MySQL and MariaDB.
#[test]
fn sphinxql_by_mysql() {
    let serving = press();
    for client in [|| mysql97("mysql"), || Command::new("mariadb")] {
        let told = rows(
            client(),
            &serving.port,
            "USE press; SET sql_dialect = 'sphinx';
             SELECT id, WEIGHT() FROM articles WHERE MATCH('\"brown fox\" | @title dog') OPTION ranker=proximity;
             SHOW META LIKE 'total_found'; SHOW TABLES; SHOW WARNINGS;
             SELECT id FROM articles WHERE MATCH('fox') LIMIT 1 FACET author ORDER BY author ASC;
             CALL KEYWORDS('the Fox', 'articles', 1);",
        );
        assert_eq!(
            told,
            "1\t2\n3\t1\ntotal_found\t2\narticles\trt\n1\nann\t1\nbob\t1\n1\tthe\tthe\t2\t2\n2\tfox\tfox\t2\t4\n"
        );
    }
}
