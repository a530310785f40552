//! Import into a running server and export from it, beside the same into and from a data directory.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Output, Stdio},
};

use remora::Database;

use super::{Serving, printed, refused, remora, run, write};

const TABLES: [&str; 5] = [
    "CREATE TABLE birds (
        id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(8) NOT NULL, ring VARCHAR(20) UNIQUE,
        weight DECIMAL(6,2) DEFAULT 1.5, seen DATE, kind ENUM('song', 'prey') NOT NULL DEFAULT 'song', tags JSON,
        at TIMESTAMP(3) NULL, day DATETIME, took TIME, tame TINYINT(1) DEFAULT 0, blob_of VARBINARY(10), many BIGINT UNSIGNED,
        f DOUBLE, flags SET('a', 'b'), made INT DEFAULT (7 * 6), grams INT AS (weight * 1000) STORED, CHECK (weight > 0),
        KEY ((UPPER(name))), KEY (kind, weight))",
    "CREATE TABLE pairs (a INT, b VARCHAR(10), n FLOAT, PRIMARY KEY (a, b))",
    "CREATE TABLE log (n INT, said TEXT, FULLTEXT KEY (said))",
    "CREATE TABLE `my notes` (id BIGINT PRIMARY KEY, doc JSON NOT NULL)",
    "CREATE UNIQUE INDEX u ON `my notes` ((CAST(doc->>'$.u' AS SIGNED)))",
];

const BIRDS: &str = r#"{"id": 7, "name": "Heron", "ring": 12, "weight": "2.345", "seen": "2024-1-5", "kind": 2, "tags": ["a", {"b": 1.50}]}
{"NAME": "Kite", "weight": null, "tame": true, "at": "2024-01-02T03:04:05.678Z", "blob_of": "00ff", "grams": 3}
{"name": "Owl \"\u00e9", "ring": "x1", "seen": 20240106, "day": "2024-01-02 03:04:05", "took": "-01:02:03", "made": null}
{"name": "\\N", "many": 18446744073709551615, "flags": "a,b", "day": "2024-01-02T03:04:05+02:00", "f": -1.5e-300}
{"id": 7, "name": "Egret", "ring": "12", "f": 1e2, "seen": "0000-00-00", "took": "838:59:59"}
"#;

/// A data directory with all kinds of tables, and another one beside it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        for name in ["data", "other"] {
            let db = Database::open(Path::new(&folder.path(name))).unwrap();
            for definition in TABLES {
                db.execute(definition, []).unwrap();
            }
        }
        folder
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        write(&self.0.path().join(name), text)
    }

    fn serve(&self) -> Serving {
        Serving::start(&["--data", &self.path("data"), "--line", "127.0.0.1:0"])
    }

    /// Imports the same into a server over one directory, and into the other directory.
    fn import_twice(&self, server: &Serving, arguments: &[&str]) -> [String; 2] {
        let there = printed(&[&["import", "--to", &server.address], arguments].concat());
        let here = printed(&[&["import", "--data", &self.path("other")], arguments].concat());
        [there, here]
    }

    /// Exports from the server and from the other directory.
    fn export_twice(&self, server: &Serving, arguments: &[&str]) -> [String; 2] {
        let there = printed(&[&["export", "--from", &server.address], arguments].concat());
        let here = printed(&[&["export", "--data", &self.path("other")], arguments].concat());
        [there, here]
    }
}

#[test]
fn every_kind_of_table_of_a_server_takes_rows_and_gives_them() {
    let folder = Folder::new();
    let server = folder.serve();
    let csv = "name,weight,seen,tags,kind,ring\nWren,10,,\"[1,\n 2]\",prey,\\N\nLark,0.5,2024-02-29,\\N,song,\n";
    let log: String =
        (0..2500).map(|n| format!("{{\"n\":{n},\"said\":\"words of {n}\"}}\n")).collect();
    let trips = r#"[{"_id": {"$oid": "65a0000000000000000000aa"}, "a": {"$numberInt": "1"}, "b": "x", "n": {"$numberDouble": "1.5"}},
                    {"_id": {"$oid": "65a0000000000000000000ab"}, "a": 1, "b": "y"}]"#;
    for (table, name, text) in [
        ("birds", "birds.jsonl", BIRDS),
        ("birds", "birds.csv", csv),
        ("pairs", "trips.json", trips),
        ("pairs", "pairs.tsv", "a\tb\tn\n1\tx\t\\N\n-3\tq z\t0.25\n"),
        ("log", "log.jsonl", &log),
        (
            "made",
            "made.jsonl",
            "{\"id\":1,\"a\":{\"b\":[1]},\"t\":\"two words\"}\n{\"id\":2,\"at\":\"2024-01-02\"}\n",
        ),
    ] {
        let file = folder.file(name, text);
        let [there, here] = folder.import_twice(&server, &["--table", table, &file]);
        assert_eq!(there, here, "{name}");
        let [there, here] = folder.import_twice(&server, &["--table", table, &file]);
        assert!(there.contains("0 rows into table") && there == here, "read before: {there}");
        for format in ["csv", "tsv", "json", "jsonl", "mongo"] {
            let [there, here] =
                folder.export_twice(&server, &["--table", table, "--format", format]);
            assert_eq!(there, here, "{table} {format}");
            assert!(there.lines().count() > 1 && !there.contains("#row"), "{there}");
        }
    }
    let chosen = ["--columns", "NAME,id", "--where", "weight >= 0.5 AND kind = 'song'", "--pretty"];
    let [there, here] =
        folder.export_twice(&server, &[&["--table", "birds"], &chosen[..]].concat());
    assert!(there == here && there.starts_with("[\n{\n  \"name\": \"Egret\","), "{there}");
    server.stop();
    assert!(printed(&["check", &folder.path("data")]).contains("Everything is as it was written."));
    // What was exported makes an equal table, in either way.
    let exported = folder.path("birds.again.csv");
    printed(&["export", "--data", &folder.path("data"), "--table", "birds", "-o", &exported]);
    let before = std::fs::read_to_string(&exported).unwrap();
    for name in ["data", "other"] {
        let db = Database::open(Path::new(&folder.path(name))).unwrap();
        db.execute("TRUNCATE TABLE birds", []).unwrap();
    }
    let server = folder.serve();
    folder.import_twice(&server, &["--table", "birds", &exported]);
    let [there, here] = folder.export_twice(&server, &["--table", "birds", "--format", "csv"]);
    assert_eq!((&there, &here), (&before, &before));
}

#[test]
fn collections_of_a_server_take_documents_and_give_them() {
    let folder = Folder::new();
    let server = folder.serve();
    let lines = "{\"isbn\":5,\"a\":{\"id\":9},\"n\":1.10, \"u\":1}\n{\"isbn\":3,\"n\":12345678901234567890}\n";
    let file = folder.file("books.jsonl", lines);
    let texts =
        folder.file("texts.jsonl", "{\"isbn\":\"b\\n\u{e9}\",\"n\":1.10}\n{\"isbn\":\"a\"}\n");
    for (name, arguments) in [
        ("books", &["--key", "isbn", &file][..]),
        ("my books", &["--key", "isbn", &file]),
        ("texts", &["--key", "isbn", "--text-ids", &texts]),
        ("texts", &["--key", "isbn", &texts]),
        ("my notes", &["--key", "isbn", &file]),
    ] {
        let [there, here] =
            folder.import_twice(&server, &[&["--collection", name], arguments].concat());
        assert_eq!(there, here, "{name}");
        for more in
            [&["--with-ids"][..], &["--format", "json"], &["--where", "n > 1.05", "--with-ids"]]
        {
            let [there, here] =
                folder.export_twice(&server, &[&["--collection", name], more].concat());
            assert!(there == here && there.contains("1.10"), "{name}: {there}");
        }
    }
    // Made ids come from the server, where nobody else gets them.
    let many: String = (0..2500).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    let many = folder.file("many.jsonl", &many);
    let to = ["import", "--to", &server.address, "--collection", "made"];
    assert!(printed(&[&to[..], &[&many]].concat()).contains("2,500 documents into collection"));
    printed(&[&to[..], &[&texts]].concat());
    let from = ["export", "--from", &server.address, "--collection", "made"];
    let found = printed(&[&from[..], &["--with-ids", "--where", "n >= 0"]].concat());
    let id =
        |line: &str| line["{\"id\":".len()..].split(',').next().unwrap().parse::<i64>().unwrap();
    let ids: Vec<i64> = found.lines().map(id).collect();
    assert!(ids.len() == 2501 && ids.is_sorted_by(|a, b| a < b), "{}", ids.len());
    assert_eq!(printed(&from).lines().count(), 2502);
    let with_ids = folder.file("with.jsonl", &printed(&[&from[..], &["--with-ids"]].concat()));
    let to = ["import", "--to", &server.address, "--collection", "again", "--with-ids", &with_ids];
    printed(&to);
    let again = ["export", "--from", &server.address, "--collection", "again"];
    assert_eq!(printed(&again), printed(&from));
    // Keys that SQL declared of a collection hold.
    let twice = folder.file("twice.jsonl", "{\"isbn\":8,\"u\":2}\n{\"isbn\":9,\"u\":1}\n");
    let to =
        ["import", "--to", &server.address, "--collection", "my notes", "--key", "isbn", &twice];
    let error = refused(&to);
    assert!(error.contains("twice.jsonl:2:") && error.contains("Duplicate entry '1'"), "{error}");
    for (arguments, message) in [
        (&["--collection", "birds", "--key", "isbn", &file][..], "is no collection"),
        (&["--collection", "texts", &file], "are texts, which are not made"),
        (&["--collection", "made", "--text-ids", "--key", "isbn", &file], "are numbers"),
        (&["--collection", "texts", "--key", "isbn", &file], "the key isbn: 5 is no text"),
    ] {
        let error = refused(&[&["import", "--to", &server.address], arguments].concat());
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn a_row_that_a_server_refuses_is_named() {
    let folder = Folder::new();
    let server = folder.serve();
    let rows: String =
        (1..=300).map(|id| format!("{{\"id\":{id},\"name\":\"b{id}\"}}\n")).collect();
    for (row, words) in [
        (r#"{"id": 301, "name": "Heron and more"}"#, "Data too long for column 'name'"),
        (r#"{"id": 301, "name": null}"#, "Column 'name' cannot be null"),
        (r#"{"id": 301}"#, "Field 'name' doesn't have a default value"),
        (r#"{"id": 301, "name": "a", "weight": -1}"#, "is violated"),
        (r#"{"id": 301, "name": "a", "seen": "2023-02-29"}"#, "for column 'seen'"),
    ] {
        let file =
            folder.file("rows.jsonl", &format!("{rows}{row}\n{{\"id\":999,\"name\":\"z\"}}\n"));
        let import = ["import", "--to", &server.address, "--table", "birds", &file];
        let error = refused(&import);
        assert!(error.contains("rows.jsonl:301:") && error.contains(words), "{error}");
        assert_eq!(server.ask("COUNT birds FILTER id > 0"), "OK COUNT 0\r\n");
    }
    let bad = "{\"id\":301,\"name\":\"a\",\"ring\":\"r\"}\n{\"id\":302,\"name\":\"b\",\"ring\":\"r\"}\n{\"name\":3,\"weight\":0}\n";
    let file = folder.file("rows.jsonl", &format!("{rows}{bad}"));
    let import = ["import", "--to", &server.address, "--table", "birds", &file];
    let output = run(&[&import[..], &["--on-error", "skip"]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("301 rows into table 'birds', 2 skipped"), "{said}{told}");
    assert!(told.contains("rows.jsonl:302:") && told.contains("Duplicate entry 'r'"), "{told}");
    assert_eq!(server.ask("COUNT birds FILTER id > 0"), "OK COUNT 301\r\n");
    // A row of a table that SQL did not define is named, too, and other writes of SQL's tables are left to SQL.
    assert!(server.ask("DELETE birds 1").starts_with("ERROR 7 "));
    assert!(server.ask("PUT birds {\"id\":1,\"colour\":2}").contains("has no column 'colour'"));
}

#[test]
fn a_server_takes_and_refuses_what_a_directory_does() {
    let folder = Folder::new();
    let server = folder.serve();
    let texts = [
        r#""abc""#,
        r#""1.5""#,
        r#""""#,
        "1.5",
        "15",
        "-7",
        "true",
        "[1]",
        r#"{"a":1}"#,
        "1e30",
        "null",
    ];
    let columns = [
        "name", "ring", "weight", "seen", "kind", "tags", "at", "day", "took", "tame", "blob_of",
        "many", "f", "flags", "made",
    ];
    let mut both = Vec::new();
    for column in columns {
        for text in texts {
            let row = format!("{{\"id\":1,\"name\":\"a\",\"{column}\":{text}}}")
                .replace("\"name\":\"a\",\"name\"", "\"name\"");
            both.push(("jsonl", format!("{{\"id\":2,\"name\":\"b\"}}\n{row}\n")));
        }
        for cell in ["abc", "1.5", "15", "[1", "{}", "0x", "true", "\"\"\"a\"\"\"", "\\N", ""] {
            let (head, row) = match column {
                "name" => ("id,name".to_owned(), format!("1,{cell}")),
                _ => (format!("id,name,{column}"), format!("1,a,{cell}")),
            };
            let more = if column == "name" { "" } else { "," };
            both.push(("csv", format!("{head}\n2,b{more}\n{row}\n")));
        }
    }
    let (mut taken, mut denied) = (0, 0);
    for (number, (form, text)) in both.iter().enumerate() {
        let file = folder.file(&format!("{number}.{form}"), text);
        let into = |to: &[&str]| {
            let output = run(&[&["import"], to, &["--table", "birds", &file]].concat());
            let told = String::from_utf8(output.stderr).unwrap();
            let line = told.lines().find(|line| line.starts_with("remora: ")).map(str::to_owned);
            (output.status.success(), line)
        };
        let there = into(&["--to", &server.address]);
        let here = into(&["--data", &folder.path("other")]);
        assert_eq!(there, here, "{text}");
        match here {
            (true, _) => taken += 1,
            (false, line) => {
                // The empty cell in line 2 of a CSV file is no value of an ENUM.
                let lines: &[u8] = if *form == "csv" { &[2, 3] } else { &[2] };
                let is_told = |told: &str| {
                    lines.iter().any(|it| told.contains(&format!("{number}.{form}:{it}:")))
                };
                assert!(line.as_deref().is_some_and(is_told), "{line:?} {text}");
                denied += 1;
            }
        }
        let [there, here] = folder.export_twice(&server, &["--table", "birds", "--format", "csv"]);
        assert_eq!(there, here, "{text}");
    }
    assert!(taken > 80 && denied > 80, "{taken} {denied}");
}

/// A server that sends these bytes behind the first request, and closes the connection.
fn answering(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
        stream.write_all(bytes).unwrap();
    });
    address
}

#[test]
fn an_export_that_is_not_whole_is_an_error_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (bytes, message) in [
        (&b""[..], "connection to the server was lost"),
        (b"OK EXPORT\r\n", "the export is not whole"),
        (b"OK EXPORT\r\n8\r\n{\"a\":1}\n\r\n", "the export is not whole"),
        (b"OK EXPORT\r\n80\r\n{\"a\":1}\n\r\nEND 1\r\n", "the export is not whole"),
        (b"OK EXPORT\r\n8\r\n{\"a\":1}\nxxEND 1\r\n", "its reply is none of an export"),
        (b"OK EXPORT\r\n8\r\n{\"a\":1}\n\r\nwhat\r\n", "its reply is none of an export"),
        (
            b"OK EXPORT\r\n8\r\n{\"a\":1}\n\r\nERROR 6027 The server is stopping\r\n",
            "6027 The server is stopping",
        ),
        (b"ERROR 4007 Table not found: t\r\n", "Table not found: t"),
        (b"OK COUNT 1\r\n", "the server exports nothing: OK COUNT 1"),
    ] {
        for name in ["new.jsonl", "new.jsonl.gz"] {
            let from = ["export", "--from", &answering(bytes), "--table", "t", "-o", &path(name)];
            let error = refused(&from);
            assert!(error.contains(message), "{error}");
        }
        let kept = write(Path::new(&path("kept.csv")), "kept");
        refused(&["export", "--from", &answering(bytes), "--table", "t", "-o", &kept]);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{message}");
    }
    let whole = answering(b"OK EXPORT\r\n8\r\n{\"a\":1}\n\r\nEND 1\r\n");
    printed(&["export", "--from", &whole, "--table", "t", "-o", &path("whole.jsonl")]);
    assert_eq!(std::fs::read_to_string(path("whole.jsonl")).unwrap(), "{\"a\":1}\n");
    let error = refused(&["export", "--from", "127.0.0.1:1", "--table", "t"]);
    assert!(error.contains("cannot reach a server at 127.0.0.1:1"), "{error}");
    let both = ["export", "--from", "127.0.0.1:1", "--data", "x", "--table", "t"];
    assert!(refused(&both).contains("cannot be used with"));
    assert!(refused(&["export", "--table", "t"]).contains("--data <DIR>|--from <HOST:PORT>"));
}

#[test]
fn a_server_that_is_killed_ends_its_exports() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let text = "x".repeat(1_000);
    let rows: String =
        (0..20_000).map(|id| format!("{{\"id\":{id},\"text\":\"{text}\"}}\n")).collect();
    let file = write(&folder.path().join("rows.jsonl"), &rows);
    printed(&["import", "--data", &data, "--table", "rows", &file]);
    let part = |signal: &str| -> Output {
        let server = Serving::start(&["--data", &data, "--line", "127.0.0.1:0"]);
        let mut child = remora()
            .args(["export", "--from", &server.address, "--table", "rows"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The rest does not fit into pipes and sockets.
        child.stdout.as_mut().unwrap().read_exact(&mut [0; 4096]).unwrap();
        server.signal(signal);
        let output = child.wait_with_output().unwrap();
        drop(server);
        output
    };
    for signal in ["KILL", "TERM"] {
        let output = part(signal);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains("the export is not whole"), "{error}");
        assert!(output.stdout.len() < rows.len());
    }
}

#[test]
fn an_export_is_of_one_moment_whatever_is_written_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").display().to_string();
    let text = "x".repeat(1_000);
    let rows: String =
        (0..20_000).map(|id| format!("{{\"id\":{id},\"text\":\"{text}\"}}\n")).collect();
    let file = write(&folder.path().join("rows.jsonl"), &rows);
    printed(&["import", "--data", &data, "--table", "my rows", &file]);
    let server = Serving::start(&["--data", &data, "--line", "127.0.0.1:0"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.write_all(b"EXPORT 'my rows'\r\nCOUNT 'my rows' FILTER id < 0\r\n").unwrap();
    let mut reply = vec![0; 4096];
    stream.read_exact(&mut reply).unwrap();
    assert!(reply.starts_with(b"OK EXPORT\r\n26"));
    let put = server.ask("PUT 'my rows' [{\"id\":19999,\"text\":\"new\"},{\"id\":20000}]");
    assert!(put.starts_with("OK PUT 2 "), "{put}");
    assert!(server.ask("DELETE 'my rows' 19998").starts_with("OK DELETE 1 "));
    // What was asked behind it is answered behind it.
    while !reply.ends_with(b"\r\nEND 20000\r\nOK COUNT 0\r\n") {
        let mut chunk = [0; 65_536];
        let bytes = stream.read(&mut chunk).unwrap();
        assert!(bytes > 0, "{}", String::from_utf8_lossy(&reply[reply.len() - 100..]));
        reply.extend_from_slice(&chunk[..bytes]);
    }
    let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines(&reply) > 20_000);
    let now = printed(&["export", "--from", &server.address, "--table", "my rows"]);
    assert_eq!(now.lines().count(), 20_000);
    let wrong = [
        ("EXPORT none", "ERROR 4007 "),
        (
            "EXPORT 'my rows' {\"format\":\"xml\"}",
            "ERROR 3000 the options of EXPORT: unknown variant",
        ),
        ("EXPORT 'my rows' {\"colour\":1}", "ERROR 3000 the options of EXPORT: unknown field"),
        ("EXPORT 'my rows' {\"format\":\"cirrus\"}", "ERROR 2 "),
        ("EXPORT 'my rows' {\"documents\":true}", "ERROR 2 there is no collection \"my rows\""),
        ("IDS 'my rows' 5", "ERROR 2 Table 'my rows' is no collection"),
        ("IDS none 5", "ERROR 4007 "),
    ];
    for (request, reply) in wrong {
        let found = server.ask(request);
        assert!(found.starts_with(reply), "{request}: {found}");
    }
    let shown =
        printed(&["shell", &server.address, "-e", "EXPORT 'my rows' {\"where\":\"id = 7\"}"]);
    assert!(shown.contains("{\"id\":7,\"text\"") && shown.contains("END 1"), "{shown}");
}

#[test]
fn a_server_exports_to_who_may_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let file = write(Path::new(&path("rows.jsonl")), "{\"id\":1,\"text\":\"a\"}\n");
    printed(&["import", "--data", &path("data"), "--table", "rows", &file]);
    let toml = "[auth]\nadmin_token = \"secret\"\n[[users]]\nname = \"anna\"\npassword = \"word\"\n\
                read = [\"remora.other\"]\n";
    let toml = write(Path::new(&path("remora.toml")), toml);
    let server = Serving::start(&["-c", &toml, "--data", &path("data"), "--line", "127.0.0.1:0"]);
    let from = ["export", "--from", &server.address, "--table", "rows"];
    assert!(refused(&from).contains("asks for a login first"));
    assert!(
        refused(&[&from[..], &["--token", "wrong"]].concat()).contains("Authentication failed")
    );
    assert_eq!(
        printed(&[&from[..], &["--token", "secret"]].concat()),
        "{\"id\":1,\"text\":\"a\"}\n"
    );
    let as_anna = |password: &str| {
        let mut command = remora();
        command.env("REMORA_PASSWORD", password).args(from).args(["--user", "anna"]);
        let output = command.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(as_anna("wrong").contains("Authentication failed"));
    assert!(as_anna("word").contains("Reading is denied"));
    let missing = ["export", "--from", &server.address, "--token", "secret", "--table", "none"];
    assert!(refused(&missing).contains("Table not found: none"));
}
