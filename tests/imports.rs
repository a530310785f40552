//! Which modules at a crate's root import which: the imports must have no cycle.
//!
//! A room is a module at a crate's root, a folder or a file. Its imports are the paths that its files name from the
//! root: `crate::room::…`, or `super::…` up to the root, and names that the root re-exports. Unit tests may import
//! anything.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// Crates that must have no cycle: all below `crates/`.
const CRATES: [&str; 9] =
    ["engine", "index", "mysql", "protocol", "remora", "server", "source", "sql", "words"];
/// Folders whose modules must have no cycle either.
const FOLDERS: [&str; 9] = [
    "engine/src/encode",
    "engine/src/read",
    "engine/src/shared",
    "engine/src/storage",
    "engine/src/storage/store",
    "engine/src/storage/store/disk",
    "engine/src/write",
    "source/src/mysql",
    "source/src/sphinx_conf",
];

/// The imports of a room: each other room, with the first place that names it.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "tests" {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests" {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The module path of a file below the root.
fn module_of(root: &Path, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(root).unwrap().with_extension("");
    let parts = inside.iter().map(|part| part.to_str().unwrap().to_owned());
    parts.filter(|part| !matches!(part.as_str(), "mod" | "lib")).collect()
}

/// The source without comments and without the tests at its end.
fn read(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The first name of each path of a use tree: `a::b` gives `a`, `{a::b, c}` gives both.
fn first_names(tree: &str) -> Vec<String> {
    let Some(inside) = tree.strip_prefix('{') else {
        return vec![tree.chars().take_while(|character| is_name(*character)).collect()];
    };
    let (mut names, mut depth, mut starts) = (Vec::new(), 1, true);
    for (at, character) in inside.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => starts = true,
            _ if starts && is_name(character) => {
                names.extend(first_names(&inside[at..]));
                starts = false;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    names
}

/// The names that a file imports from the root, each with its line. `from` are the paths of the root.
fn names_from_root(text: &str, from: &[String]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for word in from {
        for (at, _) in text.match_indices(word.as_str()) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|character| is_name(character) || character == ':') {
                continue;
            }
            let line = text[..at].matches('\n').count() + 1;
            let names = first_names(&text[at + word.len()..]);
            found.extend(names.into_iter().map(|name| (name, line)));
        }
    }
    found
}

/// The names that the root re-exports, and the room of each.
fn handed_on(root_file: &Path) -> BTreeMap<String, String> {
    let text = read(root_file);
    let mut names = BTreeMap::new();
    for statement in text.split(';') {
        let Some((_, path)) = statement.split_once("use ") else { continue };
        let Some((room, rest)) = path.split_once("::") else { continue };
        let rest = rest.trim();
        let listed = rest.rsplit("::").next().unwrap().trim_matches(['{', '}']);
        for name in listed.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            names.insert(name.to_owned(), room.trim().to_owned());
        }
    }
    names
}

/// The rooms below `root`, whose own paths begin with `prefix`, and their imports of each other.
fn arrows(root: &Path, root_file: &Path, prefix: &str) -> Arrows {
    let files = rust_files(root);
    let rooms: BTreeSet<String> =
        files.iter().filter_map(|file| module_of(root, file).first().cloned()).collect();
    let handed_on = handed_on(root_file);
    let mut arrows = Arrows::new();
    for file in &files {
        let module = module_of(root, file);
        let Some(room) = module.first() else { continue };
        let from = [prefix.to_owned(), "super::".repeat(module.len())];
        for (name, line) in names_from_root(&read(file), &from) {
            let to = if rooms.contains(&name) { Some(&name) } else { handed_on.get(&name) };
            let Some(to) = to.filter(|to| *to != room && rooms.contains(*to)) else { continue };
            let place = format!("{}:{line}", file.display());
            arrows.entry(room.clone()).or_default().entry(to.clone()).or_insert(place);
        }
    }
    arrows
}

/// A path from a room back to itself.
fn cycle(arrows: &Arrows) -> Option<Vec<String>> {
    fn walk(arrows: &Arrows, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> Option<usize> {
        let last = way.last().unwrap().clone();
        for next in arrows.get(&last).into_iter().flat_map(BTreeMap::keys) {
            if let Some(start) = way.iter().position(|room| room == next) {
                way.push(next.clone());
                return Some(start);
            }
            if !done.contains(next) {
                way.push(next.clone());
                if let Some(start) = walk(arrows, way, done) {
                    return Some(start);
                }
                way.pop();
            }
        }
        done.insert(last);
        None
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|room| {
        let mut way = vec![room.clone()];
        let start = walk(arrows, &mut way, &mut done)?;
        Some(way.split_off(start))
    })
}

fn refuse_cycle(name: &str, arrows: &Arrows) {
    assert!(!arrows.is_empty() || name == "mysql", "{name}: no imports were found");
    let Some(way) = cycle(arrows) else { return };
    let steps = way
        .windows(2)
        .map(|pair| format!("  {} imports {} in {}", pair[0], pair[1], arrows[&pair[0]][&pair[1]]));
    panic!("{name} has a cycle:\n{}", steps.collect::<Vec<_>>().join("\n"));
}

#[test]
fn rooms_of_a_crate_have_no_cycle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    for name in CRATES {
        let root = crates.join(name).join("src");
        refuse_cycle(name, &arrows(&root, &root.join("lib.rs"), "crate::"));
    }
    for folder in FOLDERS {
        let root = crates.join(folder);
        let prefix = folder.split_once("src/").unwrap().1.replace('/', "::");
        refuse_cycle(folder, &arrows(&root, &root.join("mod.rs"), &format!("crate::{prefix}::")));
    }
}

#[test]
fn paths_are_read_as_they_are_written() {
    let text = "use crate::{a::b, c::{d, e}, F};\nuse crate::g::h;\nfn x() { crate::i::j() }\nuse other_crate::k;";
    let names = names_from_root(text, &["crate::".to_owned()]);
    let names: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "c", "F", "g", "i"]);
    let mut arrows = Arrows::new();
    for (from, to) in [("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")] {
        arrows.entry(from.to_owned()).or_default().insert(to.to_owned(), String::new());
    }
    assert_eq!(cycle(&arrows).unwrap(), ["b", "c", "d", "b"]);
}
