//! JSON import and export of tables and collections, and tiedot databases, from the command line.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use serde_json::{Value as Json, json};

use super::{printed, refused, remora, run, write};

/// A folder, and paths within it.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn file(&self, name: &str, text: &str) -> String {
        write(&self.0.path().join(name), text)
    }

    fn import(&self, arguments: &[&str]) -> String {
        printed(&[&["import", "--data", &self.path("data")], arguments].concat())
    }

    fn export(&self, arguments: &[&str]) -> String {
        printed(&[&["export", "--data", &self.path("data")], arguments].concat())
    }

    fn refused(&self, mode: &str, arguments: &[&str]) -> String {
        refused(&[&[mode, "--data", &self.path("data")], arguments].concat())
    }
}

fn documents(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_array_goes_into_a_table_and_out_in_every_form() {
    let folder = Folder::new();
    let books = folder.file(
        "books.json",
        r#"[ {"id": 9007199254740993, "title": "Reef", "by": {"name": "Ann", "born": 1950}, "at": "2024-01-02T03:04:05Z"},
             {"id": 2, "title": "Sea", "by": {"name": "Bo"}, "tags": ["x", 1.50]} ]"#,
    );
    let said = folder.import(&["--table", "books", &books]);
    assert_eq!(said, "2 rows into table 'books'\n");
    let lines = folder.export(&["--table", "books"]);
    assert_eq!(
        lines,
        concat!(
            r#"{"id":2,"title":"Sea","by":{"name": "Bo"},"tags":["x", 1.50]}"#,
            "\n",
            r#"{"id":9007199254740993,"title":"Reef","by":{"name": "Ann", "born": 1950},"at":"2024-01-02T03:04:05Z"}"#,
            "\n"
        )
    );
    let flat = folder.import(&["--table", "flat", "--flatten", "--key", "by.name", &books]);
    assert_eq!(flat, "2 rows into table 'flat'\n");
    let chosen = ["--columns", "by.name,ID", "--where", "`by.born` IS NULL OR id = 7"];
    let chosen = folder.export(&[&["--table", "flat"], &chosen[..]].concat());
    assert_eq!(chosen, "{\"by.name\":\"Bo\",\"id\":2}\n");
    // The file's name determines the format; an exported table can be imported again unchanged.
    for name in ["a.json", "a.jsonl.gz", "a.csv", "a.tsv.zst"] {
        let (file, again) = (folder.path(name), format!("from_{}", name.replace('.', "_")));
        let definition = folder.file("flat.toml", FLAT);
        folder.export(&["--table", "flat", "-o", &file]);
        folder.import(&["--table", &again, "--schema", &definition, &file]);
        let of = |table: &str| folder.export(&["--table", table, "--format", "json", "--pretty"]);
        assert_eq!(of(&again), of("flat"), "{name}");
    }
    let whole: Json =
        serde_json::from_str(&folder.export(&["--table", "flat", "--format", "json"])).unwrap();
    assert_eq!(whole.as_array().unwrap().len(), 2);
    let mongo =
        documents(&folder.export(&["--table", "flat", "--format", "mongo", "--where", "id > 2"]));
    assert_eq!(mongo[0]["at"], json!({"$date": "2024-01-02T03:04:05Z"}));
    for (arguments, message) in [
        (
            &["--table", "flat", "--columns", "id,nothing"][..],
            "has no column \"nothing\": it has id, title",
        ),
        (
            &["--table", "flat", "--pretty", "--format", "csv"],
            "only json and mongo are written over several lines",
        ),
        (&["--table", "flat", "--where", "id >"], "number"),
        (&["--table", "flat", "--where", "nothing = 1"], "nothing"),
        (&["--collection", "flat"], "there is no collection \"flat\""),
    ] {
        let file = folder.path("kept.json");
        write(Path::new(&file), "kept");
        let error = folder.refused("export", &[arguments, &["-o", &file]].concat());
        assert!(error.contains(message), "{error}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
    }
}

const FLAT: &str = "name = 'flat'\nprimary_key = ['by.name']\n\
    columns = [{ name = 'id', type = 'int64', nullable = true }, { name = 'title', type = 'text', nullable = true },\n\
    { name = 'by.name', type = 'text' }, { name = 'by.born', type = 'int64', nullable = true },\n\
    { name = 'at', type = 'timestamp', nullable = true }, { name = 'tags', type = 'json', nullable = true }]\n";

#[test]
fn documents_go_into_a_collection_under_ids_of_their_own_or_made_ones() {
    let folder = Folder::new();
    let lines =
        "{\"isbn\":5,\"a\":{\"id\":9},\"n\":1.10}\n{\"isbn\":3,\"n\":12345678901234567890}\n";
    let file = folder.file("books.jsonl", lines);
    assert_eq!(
        folder.import(&["--collection", "made", &file]),
        "2 documents into collection 'made'\n"
    );
    assert_eq!(folder.export(&["--collection", "made"]), lines);
    assert_eq!(
        folder.import(&["--collection", "made", &file]),
        "0 documents into collection 'made'\n"
    );
    folder.import(&["--collection", "books", "--key", "isbn", &file]);
    let sorted: String = lines.lines().rev().map(|line| line.to_owned() + "\n").collect();
    assert_eq!(folder.export(&["--collection", "books"]), sorted);
    let found = folder.export(&["--collection", "books", "--where", "a.id >= 9", "--with-ids"]);
    assert_eq!(found, "{\"id\":5,\"doc\":{\"isbn\":5,\"a\":{\"id\":9},\"n\":1.10}}\n");
    for form in ["json", "jsonl", "mongo"] {
        let (file, name) = (folder.path(&format!("with.{form}")), format!("again_{form}"));
        folder.export(&["--collection", "made", "--with-ids", "--format", form, "-o", &file]);
        folder.import(&["--collection", &name, "--with-ids", "--format", form, &file]);
        let of = |name: &str| folder.export(&["--collection", name, "--with-ids"]);
        assert_eq!(of(&name), of("made"), "{form}");
    }
    for (name, text, message) in [
        ("a.jsonl", "{\"isbn\":\"x\"}\n", "the key isbn: \"x\" is not an integer of 64 bits"),
        ("b.jsonl", "{\"isbn\":1}\n{\"a\":1}\n", "b.jsonl:2: nothing stands at the key path isbn"),
        ("c.csv", "isbn\n1\n", "only documents are flattened or go into a collection"),
    ] {
        let file = folder.file(name, text);
        let error = folder.refused("import", &["--collection", "new", "--key", "isbn", &file]);
        assert!(error.contains(message), "{error}");
        // The collection created for the import is removed, with the documents before the bad one.
        assert!(folder.refused("export", &["--collection", "new"]).contains("no collection"));
    }
    let error = folder.refused("import", &["--collection", "../x", &file]);
    assert!(error.contains("a collection cannot be named \"../x\""), "{error}");
}

#[test]
fn ids_that_are_texts_come_back() {
    let folder = Folder::new();
    let lines = "{\"isbn\":\"b\\n\u{e9}\",\"n\":1.10}\n{\"isbn\":\"a\"}\n";
    let file = folder.file("books.jsonl", lines);
    let keyed = ["--collection", "books", "--key", "isbn"];
    let said = folder.import(&[&keyed[..], &["--text-ids", &file]].concat());
    assert_eq!(said, "2 documents into collection 'books'\n");
    let exported = folder.export(&["--collection", "books", "--with-ids"]);
    let expected = "{\"id\":\"a\",\"doc\":{\"isbn\":\"a\"}}\n\
                    {\"id\":\"b\\n\u{e9}\",\"doc\":{\"isbn\":\"b\\n\u{e9}\",\"n\":1.10}}\n";
    assert_eq!(exported, expected);
    let with_ids = folder.file("with.jsonl", &exported);
    folder.import(&["--collection", "again", "--with-ids", "--text-ids", &with_ids]);
    assert_eq!(folder.export(&["--collection", "again", "--with-ids"]), exported);
    // An existing collection needs no `--text-ids`.
    folder.import(&["--collection", "again", "--with-ids", &with_ids]);
    let found = folder.export(&["--collection", "books", "--where", "n > 1", "--with-ids"]);
    assert_eq!(found.lines().count(), 1);
    for (text, message) in [
        ("{\"isbn\":5}\n", "the key isbn: 5 is no text"),
        ("{\"isbn\":\"\"}\n", "has 0 bytes: an id has 1 to 512"),
        ("{\"n\":5}\n", "nothing stands at the key path isbn"),
    ] {
        let file = folder.file("bad.jsonl", text);
        let error = folder.refused("import", &[&keyed[..], &[&file]].concat());
        assert!(error.contains(message), "{error}");
    }
    let error = folder.refused("import", &["--collection", "books", &file]);
    assert!(error.contains("are texts, which are not made"), "{error}");
    folder.import(&["--collection", "numbers", &file]);
    let with = ["--collection", "numbers", "--text-ids", "--key", "isbn", &file];
    assert!(folder.refused("import", &with).contains("are numbers"));
}

#[test]
fn a_pipe_is_read_and_written() {
    let folder = Folder::new();
    let data = folder.path("data");
    let mut child = remora()
        .args(["import", "--data", &data, "--collection", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = b"{\n \"_id\": {\"$oid\": \"5d505646cf6d4fe581014ab2\"},\n \"n\": {\"$numberLong\": \"5\"}\n}\n";
    child.stdin.take().unwrap().write_all(text).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    assert_eq!(
        folder.export(&["--collection", "c", "-o", "-"]),
        "{\"_id\":\"5d505646cf6d4fe581014ab2\",\"n\":5}\n"
    );
}

#[test]
fn hostile_documents_are_one_error_and_nothing_stored() {
    let folder = Folder::new();
    let deep = format!("{{\"id\":1,\"a\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let huge = format!("{{\"id\":1,\"a\":\"{}\"}}", "x".repeat(65 << 20));
    let cases: [(&str, &str, &str); 9] = [
        ("deep.json", &deep, "deep.json:1: nests deeper than 100 levels"),
        (
            "twice.json",
            "{\"id\":1,\n\"id\":2}",
            "twice.json:1: the name \"id\" comes twice in an object: keep one at byte 4 of line 2",
        ),
        ("half.json", "[{\"id\":1,\"a\":\"\\ud83d\"}]", "half.json:1: not JSON: "),
        (
            "nan.json",
            "[{\"id\":1},\n{\"id\":2,\"a\":[NaN]}]",
            "nan.json:2: not JSON: expected value at byte 14, in a[0]",
        ),
        ("big.json", "[{\"id\":1,\"a\":1e999}]", "big.json:1: not JSON: number out of range"),
        ("huge.jsonl", &huge, "huge.jsonl:1: the record is longer than 64 MiB"),
        (
            "cut.json",
            "[{\"id\":1},{\"id\":2},{\"a",
            "cut.json:1: not JSON at byte 22 of the file: the file ends within the document",
        ),
        ("bytes.json", "{\"id\":1,\"a\":\"\u{0}\"}", "bytes.json:1: not JSON: control character"),
        (
            "open.json",
            "[{\"id\":1}",
            "open.json:1: not JSON at byte 9 of the file: the file ends before the ']' of its array",
        ),
    ];
    for (name, text, message) in cases {
        let file = folder.file(name, text);
        for into in ["--table", "--collection"] {
            let error = folder.refused("import", &[into, "t", &file]);
            // The columns are determined before the length of the record is known.
            let message = match (name, into) {
                ("huge.jsonl", "--table") => {
                    "huge.jsonl that ends within the first 16 MiB: give a file that has one, or a schema with --schema"
                }
                _ => message,
            };
            assert!(error.contains(message), "{error}");
            assert_eq!(
                error.matches("not JSON").count(),
                message.matches("not JSON").count(),
                "{error}"
            );
            let left = folder.refused("export", &["--table", "t"]);
            assert!(
                left.contains("there is no table \"t\"") || left.contains("no data directory"),
                "{left}"
            );
        }
    }
}

#[test]
fn so_many_bad_documents_are_passed_over() {
    let folder = Folder::new();
    let lines: String =
        (1..=9)
            .map(|id| {
                if id % 4 == 0 {
                    format!("{{\"id\":{id},}}\n")
                } else {
                    format!("{{\"id\":{id}}}\n")
                }
            })
            .collect();
    let file = folder.file("rows.jsonl", &lines);
    let error = folder.refused("import", &["--table", "t", "--skip-bad", "1", &file]);
    assert!(
        error.contains("rows.jsonl:8: not JSON: trailing comma") && error.contains("--skip-bad N"),
        "{error}"
    );
    let arguments =
        ["import", "--data", &folder.path("data"), "--table", "t", "--skip-bad", "2", &file];
    let output = run(&arguments);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "7 rows into table 't', 2 skipped\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("skipped "), "each is reported");
}

/// A random document, and how many random numbers it took.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn value(&mut self, depth: u64) -> Json {
        match self.below(8 - depth.min(2)) {
            0 => Json::Null,
            1 => json!(self.below(2) == 0),
            2 => json!(self.0),
            3 => json!((self.0 as i64) / (self.below(1 << 40) as i64 + 1)),
            4 => json!(f64::from_bits(self.0 & !(0x7ff << 52) | (1 + self.below(2045)) << 52)),
            5 => json!(["a", "é\n", "\"\\", "日本", "$x", ""][self.below(6) as usize]),
            6 => (0..self.below(4)).map(|_| self.value(depth + 1)).collect(),
            _ => self.object(depth + 1),
        }
    }

    fn object(&mut self, depth: u64) -> Json {
        let names = ["a", "b.c", "名", "", "\"", "d"];
        let count = self.below(5);
        let members = (0..count).map(|_| {
            let name = names[self.below(6) as usize].to_owned();
            (name, self.value(depth))
        });
        Json::Object(members.collect())
    }
}

#[test]
fn random_documents_come_back_as_they_were() {
    let seed = std::env::var("REMORA_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761 + 1);
    println!("REMORA_SEED={seed}");
    let mut random = Random(seed);
    let written: Vec<Json> = (0..300).map(|_| random.object(0)).collect();
    let folder = Folder::new();
    let array = folder.file("in.json", &serde_json::to_string_pretty(&written).unwrap());
    folder.import(&["--collection", "c", &array]);
    assert_eq!(documents(&folder.export(&["--collection", "c"])), written);
    let ids = folder.export(&["--collection", "c", "--with-ids"]);
    for (form, pretty) in [("json", true), ("json", false), ("jsonl", false)] {
        let (file, name) = (folder.path(form), format!("{form}{pretty}"));
        let export = ["--collection", "c", "--with-ids", "--format", form, "-o", &file];
        folder.export(&[&export[..], if pretty { &["--pretty"] } else { &[] }].concat());
        folder.import(&["--collection", &name, "--with-ids", "--format", form, &file]);
        assert_eq!(folder.export(&["--collection", &name, "--with-ids"]), ids, "{form} {pretty}");
    }
}

/// A tiedot database with one document in each of two partitions, and an index.
fn tiedot_database(folder: &Path, documents: &[(u64, &str)]) {
    std::fs::create_dir_all(folder.join("Feeds/Author!Name")).unwrap();
    std::fs::write(folder.join("number_of_partitions"), "2").unwrap();
    let config = r#"{"DocMaxRoom": 1000, "PerBucket": 4, "HashBits": 1}"#;
    std::fs::write(folder.join("data-config.json"), config).unwrap();
    let varint = |number: u64| {
        let mut bytes = [0_u8; 10];
        let mut left = number << 1;
        for byte in &mut bytes {
            *byte = (left & 0x7f) as u8 | u8::from(left > 0x7f) << 7;
            left >>= 7;
            if left == 0 {
                break;
            }
        }
        bytes
    };
    let mut files = [(Vec::new(), vec![0_u8; 2 * 94]), (Vec::new(), vec![0_u8; 2 * 94])];
    for &(id, text) in documents {
        let (records, table) = &mut files[(id % 2) as usize];
        let key = id as i64;
        let key = key ^ (key >> 4);
        let key = (key ^ 0xdead_beef).wrapping_add(key << 5);
        let bucket = ((key ^ (key >> 11)) & 1) as usize;
        let entry = (0..4).map(|at| bucket * 94 + 10 + at * 21).find(|&at| table[at] == 0).unwrap();
        table[entry] = 1;
        table[entry + 1..entry + 11].copy_from_slice(&varint(id));
        table[entry + 11..entry + 21].copy_from_slice(&varint(records.len() as u64));
        records.push(1);
        records.extend(varint(text.len() as u64 * 2));
        records.extend(format!("{text:0$}", text.len() * 2).into_bytes());
    }
    for (number, (records, table)) in files.iter().enumerate() {
        std::fs::write(folder.join(format!("Feeds/dat_{number}")), records).unwrap();
        std::fs::write(folder.join(format!("Feeds/id_{number}")), table).unwrap();
    }
}

#[test]
fn a_database_of_tiedot_is_taken_over() {
    let folder = Folder::new();
    let source = PathBuf::from(folder.path("tiedot"));
    let documents = [
        (8_674_665_223_082_153_551, r#"{"Author":{"Name":"Ann"},"x":"\u003c"}"#),
        (6, r#"{"Author":{"Name":"Bo"}}"#),
    ];
    tiedot_database(&source, &documents);
    let path = source.display().to_string();
    let said = folder.import(&["--tiedot", &path]);
    assert_eq!(said, "2 documents into collection 'Feeds', 1 indexed path\n");
    let exported = folder.export(&["--collection", "Feeds", "--with-ids"]);
    let expected = concat!(
        "{\"id\":6,\"doc\":{\"Author\":{\"Name\":\"Bo\"}}}\n",
        "{\"id\":8674665223082153551,\"doc\":{\"Author\":{\"Name\":\"Ann\"},\"x\":\"<\"}}\n"
    );
    assert_eq!(exported, expected);
    // A second import gives the same result, and damage is reported.
    assert_eq!(folder.import(&["--tiedot", &path, "Feeds"]), said);
    let mut records = std::fs::read(source.join("Feeds/dat_0")).unwrap();
    records[12] = b'!';
    std::fs::write(source.join("Feeds/dat_0"), records).unwrap();
    let other = ["import", "--data", &folder.path("other"), "--tiedot", &path];
    let error = refused(&other);
    assert!(
        error.contains("Feeds/dat_0, byte 0: the document 6 is half written or damaged: not JSON"),
        "{error}"
    );
    assert!(error.contains("--skip-bad N"), "{error}");
    let none = refused(&["export", "--data", &folder.path("other"), "--collection", "Feeds"]);
    assert!(none.contains("there is no collection"), "{none}");
    let output = run(&[&other[..], &["--skip-bad", "1"]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "1 document into collection 'Feeds', 1 indexed path, 1 skipped\n");
    assert!(
        folder
            .refused("import", &["--tiedot", &path, "Votes"])
            .contains("has no collection 'Votes'; it has Feeds")
    );
    std::fs::create_dir(source.join("a.b")).unwrap();
    assert!(
        folder.refused("import", &["--tiedot", &path]).contains("cannot be named \"a.b\" here")
    );
    assert!(
        folder
            .refused("import", &["--tiedot", &folder.path("data")])
            .contains("is no database of tiedot's")
    );
}
