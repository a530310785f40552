//! Indexes of a sphinx.conf loaded into a database.

use std::path::Path;

use mysql::prelude::Queryable;
use remora_engine::{Database, Options, Schema, Value};
use remora_peers::{Kind, Server};
use remora_source::{Error, sphinx_conf::SphinxConf};

/// A database, and a folder for files that sources give.
struct ImportFixture {
    folder: tempfile::TempDir,
    database: Database,
}

impl ImportFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&folder.path().join("data"), Options::default()).unwrap();
        Self { folder, database }
    }

    /// Writes a file, and gives its path.
    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn load(&self, conf: &str, index: &str) -> Result<remora_source::sphinx_conf::Loaded, Error> {
        SphinxConf::parse("sphinx.conf", conf).unwrap().load(&self.database, index, &mut |_| {})
    }

    fn error(&self, conf: &str, index: &str) -> String {
        self.load(conf, index).unwrap_err().to_string()
    }

    fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        let mut rows = Vec::new();
        self.database
            .scan(table, &mut |row| {
                rows.push(row);
                Ok(())
            })
            .unwrap();
        rows
    }

    /// All tables, the hidden ones too.
    fn is_clean(&self, index: &str) -> bool {
        self.database.schema(&format!("#import.{index}")).is_err()
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn tsv(command: &str) -> String {
    format!(
        "source s {{\ntype = tsvpipe\ntsvpipe_command = {command}\ntsvpipe_field = title\n\
         tsvpipe_attr_uint = g\ntsvpipe_attr_json = j\n}}\nindex i {{\nsource = s\n}}\n"
    )
}

#[test]
fn an_index_is_loaded_whole_or_not_at_all_and_again() {
    let place = ImportFixture::new();
    let file = place.write("a.tsv", "1\tone\t5x\t{\"a\":1}\n3\tthree\t\t{bad\n3\tlast\t-1\t\n");
    let loaded = place.load(&tsv(&format!("cat {file}")), "i").unwrap();
    assert_eq!((loaded.rows, loaded.replaced), (2, 1));
    assert_eq!(loaded.warnings, ["1 texts are no JSON and count as none"]);
    let first = [
        vec![Value::Uint(1), text("one"), Value::Uint(5), Value::Json("{\"a\":1}".into())],
        vec![Value::Uint(3), text("last"), Value::Uint(u32::MAX.into()), Value::Null],
    ];
    assert_eq!(place.rows("i"), first);
    for (command, message) in [
        (
            "printf '7\\ta\\t1\\t\\n'; echo gone wrong >&2; exit 2",
            "status 2, so nothing is loaded; it said: gone wrong",
        ),
        (
            "printf '7\\ta\\t1\\t\\n8\\n'",
            "source 's': line 2 has 1 values, and the source declares 4",
        ),
        ("printf '0\\ta\\t1\\t\\n'", "source 's': line 1: the document's number is '0'"),
        ("printf '7\\t\\377\\t1\\t\\n'", "source 's': line 1: column 'title' is not UTF-8"),
        ("no-such-command-here", "status 127"),
    ] {
        let error = place.error(&tsv(command), "i");
        assert!(error.contains(message), "{error} / {message}");
        assert_eq!(place.rows("i"), first, "{command}");
        assert!(place.is_clean("i"));
    }
    let strict = tsv(&format!("cat {file}")) + "common {\non_json_attr_error = fail_index\n}\n";
    assert!(place.error(&strict, "i").contains("line 2: column 'j' is no JSON"));
    place.write("a.tsv", "9\tnew\t1\t\n");
    // Other columns and settings as well.
    let other = tsv(&format!("cut -f 1-3 {file}")).replace("tsvpipe_attr_json = j\n", "");
    let other = other.replace("source = s\n", "source = s\nmorphology = stem_en\n");
    assert_eq!(place.load(&other, "i").unwrap().rows, 1);
    assert_eq!(place.rows("i"), [[Value::Uint(9), text("new"), Value::Uint(1)]]);
    assert_eq!(place.database.tables(), ["i"]);
}

#[test]
fn rows_of_many_batches_and_sources_are_one_table() {
    let place = ImportFixture::new();
    let conf = "source a {\ntype = tsvpipe\n\
         tsvpipe_command = seq 1 40000 | sed 's/$/\\ttext\\t7/'\ntsvpipe_field = t\ntsvpipe_attr_uint = n\n}\n\
         source b {\ntype = csvpipe\ncsvpipe_command = echo '50000,8,\"a, b\"'\ncsvpipe_attr_uint = n\n\
         csvpipe_field = t\n}\nsource c : b {\ncsvpipe_attr_uint = other\n}\n\
         index i {\nsource = a\nsource = b\n}\nindex j {\nsource = a\nsource = c\n}\n";
    let mut batches = 0;
    let read = SphinxConf::parse("sphinx.conf", conf).unwrap();
    let loaded = read.load(&place.database, "i", &mut |_| batches += 1).unwrap();
    assert_eq!((loaded.rows, loaded.replaced, batches), (40_001, 0, 3));
    let rows = place.rows("i");
    assert_eq!(rows[0], [Value::Uint(1), text("text"), Value::Uint(7)]);
    assert_eq!(rows[40_000], [Value::Uint(50_000), text("a, b"), Value::Uint(8)]);
    let error = place.error(conf, "j");
    let expected = "source 'c': its columns are not those of the index's first source: t (Field), other (Uint)";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(place.database.tables(), ["i"]);
}

#[test]
fn xmlpipe2_has_its_schema_in_the_stream() {
    let place = ImportFixture::new();
    let xml = "<?xml version='1.0'?><sphinx:docset><sphinx:schema><sphinx:field name='t'/>\
         <sphinx:attr name='n' type='bigint' default='-3'/></sphinx:schema>\
         <sphinx:document id='4'><t>fish &amp; chips</t></sphinx:document></sphinx:docset>";
    let file = place.write("a.xml", xml);
    let conf = |command: &str| {
        format!(
            "source s {{\ntype = xmlpipe2\nxmlpipe_command = {command}\n}}\nindex i {{\nsource = s\n}}\n"
        )
    };
    assert_eq!(place.load(&conf(&format!("cat {file}")), "i").unwrap().rows, 1);
    assert_eq!(place.rows("i"), [[Value::Uint(4), text("fish & chips"), Value::Int(-3)]]);
    let schema = place.database.schema("i").unwrap();
    assert_eq!(schema.words.as_ref().unwrap().columns, [1]);
    // Why the stream ends is what its command says.
    let error =
        place.error(&conf(&format!("head -c 200 {file}; echo out of memory >&2; exit 1")), "i");
    assert!(error.ends_with("it said: out of memory"), "{error}");
    let error = place.error(&conf("echo '<docset>'; sleep 60"), "i");
    assert!(error.ends_with("<docset> stands where <sphinx:docset> is due"), "{error}");
    assert_eq!(place.rows("i").len(), 1);
}

#[test]
fn foreign_table_is_not_replaced() {
    let place = ImportFixture::new();
    let conf = tsv("printf '1\\ta\\t1\\t\\n'");
    let schema = SphinxConf::parse("f", "index i {\ntype = rt\nrt_field = t\n}\n").unwrap();
    let schema: Schema = schema.real_time_table("i").unwrap();
    place.database.create_table(schema).unwrap();
    assert!(place.error(&conf, "i").contains("table 'i' was not loaded from a sphinx.conf"));
    place.database.drop_table("i").unwrap();
    place.load(&conf, "i").unwrap();
    place.load(&conf, "i").unwrap();
}

#[test]
fn remains_of_a_killed_load_are_replaced() {
    let place = ImportFixture::new();
    let conf = "index i {\ntype = rt\nrt_field = other\n}\n";
    let schema = SphinxConf::parse("f", conf).unwrap().real_time_table("i").unwrap();
    let left = Schema { name: "#import.i".to_owned(), ..schema };
    place.database.create_table(left).unwrap();
    place.load(&tsv("printf '1\\ta\\t1\\t\\n'"), "i").unwrap();
    assert!(place.is_clean("i"));
}

fn mysql_conf(server: &Server, query: &str) -> String {
    format!(
        "source s {{\ntype = mysql\nsql_host = 127.0.0.1\nsql_port = {}\nsql_user = indexer\nsql_pass = p\n\
         sql_db = shop\nsql_query_pre = SET NAMES utf8\n\
         sql_query_pre = REPLACE INTO counter SELECT 1, MAX(id) FROM books\n{query}\n\
         sql_attr_uint = year\nsql_attr_timestamp = at\nsql_field_string = author\n\
         sql_query_post = DELETE FROM nowhere\nsql_query_post_index = UPDATE counter SET last = $maxid + 1000\n}}\n\
         index books {{\nsource = s\npath = x\n}}\n",
        server.port()
    )
}

/// The same rows out of compressed texts, with a field that a query of its own gives.
fn compressed_and_joined(place: &ImportFixture, server: &Server, rows: &[Vec<Value>]) {
    let packed = mysql_conf(
        server,
        "sql_query = SELECT id, COMPRESS(title) AS title, author, year, UNIX_TIMESTAMP(at) AS at FROM books\n\
         unpack_mysqlcompress = title\n\
         sql_joined_field = tags from query; SELECT id, author FROM books UNION ALL SELECT 1, 'whale' ORDER BY 1, 2",
    );
    place.load(&packed, "books").unwrap();
    let tags = ["Melville whale", "X", ""].map(text);
    let with_tags = rows.iter().zip(tags).map(|(row, tags)| [&row[..], &[tags]].concat());
    assert_eq!(place.rows("books"), with_tags.collect::<Vec<_>>());
    let fields = place.database.schema("books").unwrap().words.clone().unwrap().columns;
    assert_eq!(fields, [1, 2, 5]);
}

#[test]
fn mysql_queries_run_like_in_its_own_client() {
    let server = Server::start(Kind::MariaDb1011, &["--default-time-zone=+02:00"]).unwrap();
    let mut root = server.connect().unwrap();
    for statement in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.books (id INT PRIMARY KEY, title TEXT, author VARCHAR(50), year INT, at DATETIME) \
         DEFAULT CHARSET utf8mb4",
        "CREATE TABLE shop.counter (id INT PRIMARY KEY, last INT)",
        "INSERT INTO shop.books VALUES (1, 'Moby Dick \u{1F40B}', 'Melville', 1851, '2020-01-01 00:00:00'), \
         (5, NULL, 'X', -1, NULL), (2500, 'last', '', NULL, NULL)",
        "CREATE USER indexer@'%' IDENTIFIED BY 'p'",
        "GRANT ALL ON shop.* TO indexer@'%'",
    ] {
        root.query_drop(statement).unwrap();
    }
    let place = ImportFixture::new();
    let columns = "SELECT id, title, author, year, UNIX_TIMESTAMP(at) AS at FROM books";
    let whole = mysql_conf(&server, &format!("sql_query = {columns}"));
    let loaded = place.load(&whole, "books").unwrap();
    assert_eq!(loaded.rows, 3);
    assert!(
        loaded.warnings.len() == 1 && loaded.warnings[0].contains("nowhere"),
        "{:?}",
        loaded.warnings
    );
    let rows = place.rows("books");
    // Midnight of the server's own zone.
    let at = Value::Uint(1_577_829_600);
    assert_eq!(
        rows[0],
        [Value::Uint(1), text("Moby Dick \u{1F40B}"), text("Melville"), Value::Uint(1851), at]
    );
    assert_eq!(
        rows[1],
        [Value::Uint(5), text(""), text("X"), Value::Uint(u32::MAX.into()), Value::Uint(0)]
    );
    let schema = place.database.schema("books").unwrap();
    assert_eq!(schema.words.as_ref().unwrap().columns, [1, 2]);
    compressed_and_joined(&place, &server, &rows);
    let counter: Option<i64> = root.query_first("SELECT last FROM shop.counter").unwrap();
    assert_eq!(counter, Some(3500));
    let ranged = mysql_conf(
        &server,
        &format!(
            "sql_query = {columns} WHERE id BETWEEN $start AND $end\n\
             sql_query_range = SELECT MIN(id), MAX(id) FROM books\nsql_range_step = 2"
        ),
    );
    place.load(&ranged, "books").unwrap();
    assert_eq!(place.rows("books"), rows);
    for (from, to, message) in [
        ("sql_attr_uint = year", "sql_attr_uint = years", "selects no column 'years'"),
        ("FROM books WHERE", "FROM boks WHERE", "boks"),
        ("id, title", "id - 5, title", "document -4: the document's number is '-4'"),
        ("sql_pass = p", "sql_pass = q", "refuses indexer"),
        ("SET NAMES utf8", "SET NAMES utf16le", "SET NAMES utf16le"),
    ] {
        let error = place.error(&ranged.replacen(from, to, 1), "books");
        assert!(error.contains(message), "{error} / {message}");
    }
    assert_eq!(place.rows("books"), rows);
    root.query_drop("DELETE FROM shop.books").unwrap();
    assert_eq!(place.load(&ranged, "books").unwrap().rows, 0);
    assert!(Path::new(&place.folder.path().join("data")).exists());
}
