//! The invariants of ARCHITECTURE.md that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Which of our crates each crate may depend on.
const ALLOWED: [(&str, &[&str]); 9] = [
    ("words", &[]),
    ("index", &["words"]),
    ("mysql", &[]),
    ("engine", &["index", "words"]),
    ("sql", &["engine", "mysql", "words"]),
    ("protocol", &["engine", "mysql", "sql"]),
    ("source", &["engine", "mysql", "words"]),
    ("remora", &["engine", "mysql", "source", "sql"]),
    ("server", &["remora", "engine", "mysql", "protocol", "source", "sql"]),
];

/// Most lines of a file.
const MAX_FILE_LINES: usize = 800;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below the folder.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn all_files() -> Vec<PathBuf> {
    let folders =
        ["src", "crates", "peers", "bench", "tests", "fuzz/fuzz_targets", "bindings/python/src"];
    folders.iter().flat_map(|folder| rust_files(&root().join(folder))).collect()
}

#[test]
fn dependencies_point_one_way() {
    let crates = fs::read_dir(root().join("crates")).unwrap().count();
    assert_eq!(crates, ALLOWED.len(), "a crate without a rule");
    for (name, allowed) in ALLOWED {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        let normal = manifest.split("[dev-dependencies]").next().unwrap();
        let library = |line: &'_ str| line.starts_with("remora.") || line.starts_with("remora ");
        let used = normal.lines().filter_map(|line| match library(line) {
            true => Some(line),
            false => line.strip_prefix("remora-"),
        });
        for dependency in used.filter_map(|rest| rest.split(['.', ' ', '=']).next()) {
            assert!(allowed.contains(&dependency), "{name} must not depend on {dependency}");
        }
    }
}

#[test]
fn only_the_protocol_knows_wire_codes_and_only_the_source_knows_files() {
    for (folder, word) in [("engine", "ERROR "), ("index", "TcpStream"), ("engine", "TcpStream")] {
        for file in rust_files(&root().join("crates").join(folder).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(!text.contains(word), "{} mentions {word:?}", file.display());
        }
    }
}

#[test]
fn tables_and_their_index_know_nothing_of_mysql() {
    for name in ["engine", "index"] {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        assert!(!manifest.contains("remora-mysql"), "{name} must not depend on mysql");
    }
}

/// The numbers of `ErrorCode`, which stand in lines such as `    DuplicateKey = 1062 "23000",`.
fn error_numbers() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("crates/mysql/src/error.rs")).unwrap();
    let number = |line: &str| Some(line.split_once(" = ")?.1.split_once(" \"")?.0.to_owned());
    // 1000 is the code of all of Sphinx's warnings, but elsewhere an ordinary number.
    text.lines().filter_map(number).filter(|number| number != "1000").collect()
}

/// Those of the wanted numbers that a file contains outside of comments, strings and the tests at its end.
fn numbers_in(text: &str, wanted: &BTreeSet<String>) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    let pieces = lines.flat_map(|line| line.split('"').step_by(2));
    let words = pieces.flat_map(|piece| piece.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.filter(|word| wanted.contains(*word)).map(str::to_owned).collect()
}

#[test]
fn errors_of_mysql_have_their_numbers_in_one_place() {
    let known = error_numbers();
    assert!(known.len() > 100 && known.contains("1064"), "ErrorCode is not read");
    let crates = ["protocol", "server", "source", "sql"].map(|name| format!("crates/{name}/src"));
    let mut files: Vec<PathBuf> =
        crates.iter().flat_map(|folder| rust_files(&root().join(folder))).collect();
    files.extend(rust_files(&root().join("bindings/python/src")));
    let package = fs::read_dir(root().join("bindings/python/python/remora")).unwrap();
    let package = package.map(|entry| entry.unwrap().path());
    files.extend(package.filter(|path| path.extension().is_some_and(|end| end == "py")));
    for file in files {
        if file.iter().any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let mut text = fs::read_to_string(&file).unwrap();
        if file.extension().is_some_and(|end| end == "py") {
            text = text.replace('#', "//");
        }
        let found = numbers_in(&text, &known);
        assert!(found.is_empty(), "{}: {found:?} is an ErrorCode", file.display());
    }
}

#[test]
fn numbers_are_found_where_they_are_code() {
    let known = BTreeSet::from(["1062".to_owned(), "1064".to_owned()]);
    let text =
        "// 1062\nf(1064); g(10_64, x1062, \"1062\"); // 1064\n#[cfg(test)]\nmod tests {\n1062";
    assert_eq!(numbers_in(text, &known), ["1064"]);
}

/// Where statements of MySQL are read, and may be tokenized by nobody but `LEXER`.
const READERS_OF_SQL: [&str; 8] = [
    "crates/mysql/src",
    "crates/sql/src",
    "crates/protocol/src",
    "crates/source/src",
    "crates/remora/src",
    "crates/server/src",
    "bindings/python/src",
    "src",
];

const LEXER: &str = "crates/mysql/src/lex.rs";

/// Files that pass over comments and make no tokens of MySQL: this one looks for Python's `:name` and `%(name)s`.
const NO_LEXERS: [&str; 1] = ["bindings/python/src/parameters.rs"];

/// The first sign that a file's code tokenizes SQL: whoever does must pass over comments, or hand text to the parser's
/// own tokenizer. Comments, and the tests at the end, do not count.
fn sign_of_a_lexer(text: &str) -> Option<&'static str> {
    const SIGNS: [&str; 6] =
        ["'/','*'", "\"/*\"", "Tokenizer::", "try_with_sql(", "Parser::parse_sql(", "DFParser"];
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    let plain: String = lines.flat_map(str::split_whitespace).collect();
    let plain = plain.replace("Some(", "").replace(')', "").replace("b'", "'");
    SIGNS.into_iter().find(|sign| plain.contains(sign))
}

#[test]
fn one_lexer_reads_the_statements_of_mysql() {
    let lexer = fs::read_to_string(root().join(LEXER)).unwrap();
    assert!(sign_of_a_lexer(&lexer).is_some(), "the lexer itself is not noticed");
    for file in READERS_OF_SQL.iter().flat_map(|folder| rust_files(&root().join(folder))) {
        let name = file.strip_prefix(root()).unwrap().to_str().unwrap();
        let is_test = file.iter().any(|part| part == "tests" || part == "tests.rs");
        if is_test || name == LEXER || NO_LEXERS.contains(&name) {
            continue;
        }
        let sign = sign_of_a_lexer(&fs::read_to_string(&file).unwrap());
        assert_eq!(sign, None, "{name} tokenizes SQL, which {LEXER} does");
    }
}

#[test]
fn lexers_are_noticed_by_their_comments_and_by_the_parser_they_call() {
    let comment = "match (self.peek(0), self.peek(1)) {\n(Some(b'/'), Some(b'*')) => self.pass(),";
    assert_eq!(sign_of_a_lexer(comment), Some("'/','*'"));
    assert_eq!(sign_of_a_lexer("[b'/', b'*', ..] => until(b\"*/\")"), Some("'/','*'"));
    assert_eq!(sign_of_a_lexer("text.find(\"/*\")"), Some("\"/*\""));
    assert_eq!(sign_of_a_lexer("Parser::parse_sql(&dialect, text)"), Some("Parser::parse_sql("));
    let harmless = "// \"/*\"\n\"/*+\"; '*' | '/' => f()\n#[cfg(test)]\nmod tests {\n\"/*\"";
    assert_eq!(sign_of_a_lexer(harmless), None);
}

#[test]
fn files_stay_readable() {
    for file in all_files() {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().count();
        assert!(lines <= MAX_FILE_LINES, "{} has {lines} lines", file.display());
    }
}

#[test]
fn every_file_says_what_it_is() {
    for file in all_files() {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("//!"), "{} has no module doc", file.display());
    }
}
