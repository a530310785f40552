//! Which modules of a crate import which: no folder is part of a cycle of imports.
//!
//! In each folder of each crate, the children are its files and its folders; a child imports another one if a path in
//! its files names something in it. Paths are read from whole `use` trees and from the code, and followed through
//! re-exports. Files that import each other are a cycle too, except in the folders of [`TANGLED`]. Unit tests may
//! import anything.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

/// Crates besides those below `crates/`.
const OTHER_CRATES: [&str; 3] = ["bench", "bindings/python", "peers"];

/// Folders whose files may import each other in a cycle, as long as no folder among them is part of it. Whoever ends the
/// last cycle of a folder takes it from this list.
const TANGLED: [&str; 4] =
    ["bench/src/tpcc", "crates/source/src/mysql/follow", "crates/sql/src/resolve", "peers/src"];

/// The folders of a crate as ARCHITECTURE.md lists them, with files among them: each imports only those before it.
const ORDERS: [(&str, &str); 2] = [
    (
        "engine",
        "value schema encode indexing storage snapshot shared unique merge recovery check read write uncommitted \
         transaction watch database dump",
    ),
    (
        "sql",
        "error parse variables shared catalog transaction agents state meaning search scan show resolve plan execute \
         write session instance",
    ),
];

/// The names of a path, such as `crate`, `a` and `b`.
type Names = Vec<String>;

/// A path that a file names.
#[derive(Debug, PartialEq)]
struct Import {
    path: Names,
    /// The name that a `use` gives it.
    called: Option<String>,
    line: usize,
}

/// A crate's modules, by path from its root.
#[derive(Default)]
struct Modules {
    files: BTreeMap<Names, PathBuf>,
    /// What the `use` statements of a module name, by the name they give it: the module's children see it too.
    used: BTreeMap<Names, BTreeMap<String, Names>>,
}

/// What each child of a folder imports: each other child, with the first place that names it.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

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
fn module_of(root: &Path, file: &Path) -> Names {
    let inside = file.strip_prefix(root).unwrap().with_extension("");
    let parts = inside.iter().map(|part| part.to_str().unwrap().to_owned());
    parts.filter(|part| !matches!(part.as_str(), "mod" | "lib" | "main")).collect()
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

/// Reads the paths of a file.
struct Paths<'t> {
    text: &'t str,
    at: usize,
    found: Vec<Import>,
}

impl Paths<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn skip(&mut self, mark: &str) -> bool {
        self.skip_spaces();
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len() } else { 0 };
        is_next
    }

    fn name(&mut self) -> Option<String> {
        self.skip_spaces();
        let end = self.rest().find(|character| !is_name(character)).unwrap_or(self.rest().len());
        let name = self.rest()[..end].to_owned();
        self.at += end;
        (!name.is_empty()).then_some(name)
    }

    /// Reads a path or a use tree from here: `a::{b, c::d as e}` are two paths behind `before`.
    fn tree(&mut self, before: &[String], is_use: bool) {
        let (mut path, line) = (before.to_vec(), self.text[..self.at].matches('\n').count() + 1);
        while let Some(name) = self.name() {
            path.push(name);
            if !self.skip("::") {
                break;
            }
            if is_use && self.skip("{") {
                while !self.skip("}") {
                    let start = self.at;
                    self.tree(&path, is_use);
                    if !self.skip(",") && self.at == start {
                        break;
                    }
                }
                return;
            }
        }
        let mut called = path.last().cloned().filter(|_| is_use);
        if is_use && self.skip("as ") {
            called = self.name();
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
            called = path.last().cloned();
        }
        if is_use && self.skip("*") {
            called = None;
        }
        self.found.push(Import { path, called, line });
    }
}

/// The paths that a file names: those of `use`, and those that begin with `crate`, `super` or `self`.
fn imports(text: &str) -> Vec<Import> {
    let mut paths = Paths { text, at: 0, found: Vec::new() };
    while let Some(begin) = paths.rest().find(is_name) {
        let before = text[..paths.at + begin].chars().next_back();
        paths.at += begin;
        let start = paths.at;
        let Some(word) = paths.name() else { break };
        match word.as_str() {
            _ if matches!(before, Some(':' | '\'')) => {}
            "use" if paths.rest().starts_with(' ') => paths.tree(&[], true),
            "crate" | "super" | "self" if paths.rest().starts_with("::") => {
                paths.at = start;
                paths.tree(&[], false);
            }
            _ => {}
        }
    }
    paths.found
}

impl Modules {
    /// The modules below a crate's `src`, and what they name.
    fn read(root: &Path) -> (Self, Vec<(Names, Import)>) {
        let (mut modules, mut all) = (Self::default(), Vec::new());
        for file in rust_files(root) {
            modules.files.insert(module_of(root, &file), file);
        }
        for (module, file) in &modules.files {
            all.extend(imports(&read(file)).into_iter().map(|each| (module.clone(), each)));
        }
        for (module, import) in &all {
            let target = modules.absolute(module, &import.path);
            if let (Some(target), Some(called)) = (target, &import.called) {
                let used = modules.used.entry(module.clone()).or_default();
                used.insert(called.clone(), target);
            }
        }
        (modules, all)
    }

    fn has(&self, module: &[String]) -> bool {
        self.files.keys().any(|each| each.starts_with(module))
    }

    /// A path from the crate's root; `None` if it begins with the name of another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Names> {
        let mut from = module.to_vec();
        let rest = match path.first()?.as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" => &path[1..],
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                from.truncate(module.len().checked_sub(up)?);
                &path[up..]
            }
            first => {
                from.push(first.to_owned());
                if !self.has(&from) {
                    return None;
                }
                &path[1..]
            }
        };
        from.extend_from_slice(rest);
        Some(from)
    }

    /// What a path means where it names a re-export.
    fn followed(&self, path: &[String]) -> Option<Names> {
        (1..=path.len()).find_map(|end| {
            let (module, name) = (&path[..end - 1], &path[end - 1]);
            let target = self.used.get(module)?.get(name)?;
            let is_other = !self.has(&path[..end]) && target.as_slice() != &path[..end];
            is_other.then(|| [target, &path[end..]].concat())
        })
    }

    /// The imports among the children of each folder.
    fn graphs(&self, all: &[(Names, Import)]) -> BTreeMap<Names, Graph> {
        let mut graphs = BTreeMap::<Names, Graph>::new();
        for (module, import) in all {
            let mut target = self.absolute(module, &import.path);
            // A re-export of a re-export and so on.
            for _ in 0..8 {
                let Some(path) = target else { break };
                let common = module.iter().zip(&path).take_while(|(a, b)| a == b).count();
                if common < module.len() && common < path.len() && self.has(&path[..=common]) {
                    let place = format!("{}:{}", self.files[module].display(), import.line);
                    let graph = graphs.entry(path[..common].to_vec()).or_default();
                    let arrows = graph.entry(module[common].clone()).or_default();
                    arrows.entry(path[common].clone()).or_insert(place);
                }
                target = self.followed(&path);
            }
        }
        graphs
    }

    /// Whether a module has files of its own.
    fn is_folder(&self, module: &[String]) -> bool {
        self.files.keys().any(|each| each.len() > module.len() && each.starts_with(module))
    }
}

/// The shortest way from a child back to itself.
fn cycle(graph: &Graph, child: &str) -> Option<Vec<String>> {
    let mut ways = VecDeque::from([vec![child.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in graph.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == child {
                return Some(longer);
            }
            if seen.insert(next.clone()) {
                ways.push_back(longer);
            }
        }
    }
    None
}

/// The steps of a cycle, with their places.
fn described(graph: &Graph, way: &[String]) -> String {
    let steps = way.windows(2).map(|pair| {
        format!("  {} imports {} in {}\n", pair[0], pair[1], graph[&pair[0]][&pair[1]])
    });
    steps.collect()
}

#[test]
fn folders_of_a_crate_have_no_cycle() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let own = fs::read_dir(repository.join("crates")).unwrap().map(|each| each.unwrap().path());
    let mut crates: Vec<PathBuf> = own.collect();
    crates.extend(OTHER_CRATES.iter().map(|name| repository.join(name)));
    crates.sort();
    let (mut faults, mut tangled) = (String::new(), BTreeSet::new());
    for path in crates {
        let (modules, all) = Modules::read(&path.join("src"));
        for (folder, graph) in modules.graphs(&all) {
            let name = path.strip_prefix(repository).unwrap().join("src");
            let name = folder.iter().fold(name, |name, part| name.join(part));
            let name = name.to_str().unwrap().to_owned();
            let mut reported = BTreeSet::new();
            for child in graph.keys() {
                let Some(way) = cycle(&graph, child) else { continue };
                let is_folder =
                    modules.is_folder(&[folder.as_slice(), std::slice::from_ref(child)].concat());
                if !is_folder && TANGLED.contains(&name.as_str()) {
                    tangled.insert(name.clone());
                } else if reported.insert(way.iter().cloned().collect::<BTreeSet<_>>()) {
                    faults.push_str(&format!("{name} has a cycle:\n{}", described(&graph, &way)));
                }
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    let untangled: Vec<_> = TANGLED.iter().filter(|name| !tangled.contains(**name)).collect();
    assert!(untangled.is_empty(), "no cycle any more, so not TANGLED: {untangled:?}");
}

#[test]
fn folders_import_those_that_are_listed_before_them() {
    for (name, order) in ORDERS {
        let order: Vec<&str> = order.split_whitespace().collect();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates").join(name).join("src");
        let (modules, all) = Modules::read(&root);
        let graphs = modules.graphs(&all);
        let place = |child: &str| order.iter().position(|each| *each == child);
        for (child, arrows) in &graphs[&Vec::new()] {
            let is_folder = modules.is_folder(std::slice::from_ref(child));
            assert!(place(child).is_some() || !is_folder, "{name}: {child} is not listed");
            for (other, at) in arrows {
                if let (Some(from), Some(to)) = (place(child), place(other)) {
                    assert!(
                        to < from,
                        "{name}: {child} imports {other}, which is listed after it, in {at}"
                    );
                }
            }
        }
    }
}

#[test]
fn paths_are_read_as_they_are_written() {
    let text = "pub use crate::{a::b, c::{self, d::{e, f as g}}, super_g::*};\nfn x() { super::super::h::<u8>() }\n\
                use super::{super::{i::j}, k};\nlet user = crate_x::y; m::self::n; other::crate::o";
    let paths: Vec<String> = imports(text)
        .into_iter()
        .map(|it| format!("{}={}", it.path.join("::"), it.called.unwrap_or_default()))
        .collect();
    let expected = [
        "crate::a::b=b",
        "crate::c=c",
        "crate::c::d::e=e",
        "crate::c::d::f=g",
        "crate::super_g=",
        "super::super::h=",
        "super::super::i::j=j",
        "super::k=k",
    ];
    assert_eq!(paths, expected);
}

/// A crate of some modules, each with its source.
fn graphs_of(sources: &[(&str, &str)]) -> BTreeMap<Names, Graph> {
    let folder = tempfile::tempdir().unwrap();
    for (name, source) in sources {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, source).unwrap();
    }
    let (modules, all) = Modules::read(folder.path());
    modules.graphs(&all)
}

#[test]
fn cycles_are_found_in_every_folder_and_through_re_exports() {
    let graphs = graphs_of(&[
        ("lib.rs", "mod a; mod b; use a::inner::X;"),
        ("a/mod.rs", "mod inner; mod other; pub(crate) use inner::X;"),
        ("a/inner.rs", "use super::{other::{Y}};"),
        ("a/other/mod.rs", "mod deep;"),
        ("a/other/deep.rs", "use super::{super::{super::{X}}};"),
        ("b.rs", "fn f() { crate::X }"),
    ]);
    let root = &graphs[&Vec::new()];
    assert_eq!(root.keys().collect::<Vec<_>>(), ["b"]);
    assert!(root["b"].contains_key("a") && cycle(root, "b").is_none());
    let inner = &graphs[&vec!["a".to_owned()]];
    assert_eq!(cycle(inner, "other").unwrap(), ["other", "inner", "other"]);
    assert!(described(inner, &cycle(inner, "other").unwrap()).contains("deep.rs:1"));
}
