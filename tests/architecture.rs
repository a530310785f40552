//! The invariants of ARCHITECTURE.md that a compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Which of our crates each crate may depend on.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("index", &[]),
    ("mysql", &[]),
    ("engine", &["index"]),
    ("sql", &["engine", "mysql"]),
    ("protocol", &["engine", "mysql", "sql"]),
    ("source", &["engine", "mysql"]),
    ("server", &["engine", "mysql", "protocol", "source", "sql"]),
];

/// No file is one concept and longer than this.
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
    let folders = ["src", "crates", "peers", "bench", "tests", "fuzz/fuzz_targets"];
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
        let used = normal.lines().filter_map(|line| line.strip_prefix("remora-"));
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
