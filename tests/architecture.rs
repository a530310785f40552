//! The invariants of ARCHITECTURE.md that the compiler does not check.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
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

/// Every folder and file below a folder, with its path from the root.
fn paths_below(folder: &Path) -> Vec<String> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            paths.extend(paths_below(&path));
        }
        paths.push(path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned());
    }
    paths
}

/// Whether a path ends with the name of a file or a folder, which may have one `*`. `engine/read/` is short for
/// `crates/engine/src/read/`.
fn is_named(path: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    let long = name.split_once('/').map(|(first, rest)| format!("crates/{first}/src/{rest}"));
    let fits = |name: &str| match name.split_once('*') {
        Some((before, after)) => {
            let end = path.strip_suffix(after).and_then(|path| path.rsplit_once(before));
            end.is_some_and(|(start, middle)| {
                (start.is_empty() || start.ends_with('/')) && !middle.contains('/')
            })
        }
        None => {
            path.strip_suffix(name).is_some_and(|start| start.is_empty() || start.ends_with('/'))
        }
    };
    fits(name) || long.is_some_and(|name| fits(&name))
}

#[test]
fn files_that_the_documents_name_exist() {
    let paths = paths_below(&root());
    let is_path = |text: &str| {
        let ends = [".rs", ".txt", ".toml", ".md", "/"].iter().any(|end| text.ends_with(end));
        ends && text.chars().all(|c| c.is_alphanumeric() || "_-./*".contains(c)) && text.len() > 1
    };
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root().join(document)).unwrap();
        let names: Vec<&str> =
            text.split('`').skip(1).step_by(2).filter(|it| is_path(it)).collect();
        assert!(names.len() > 20, "the paths of {document} are not read");
        for name in names {
            let exists = paths.iter().any(|path| is_named(path, name));
            assert!(exists, "{document}: `{name}` is no file or folder");
        }
    }
}

#[test]
fn names_of_files_are_ends_of_their_paths() {
    let path = "crates/engine/src/read/path_order.rs";
    for name in
        ["path_order.rs", "read/path_order.rs", "engine/read/path_order.rs", "read/path_*.rs"]
    {
        assert!(is_named(path, name), "{name}");
    }
    for name in ["order.rs", "write/path_order.rs", "sql/read/path_order.rs", "path_x*.rs"] {
        assert!(!is_named(path, name), "{name}");
    }
    assert!(is_named("crates/engine/src/read", "read/"));
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

/// Crates whose folders are protocols, formats or sources that know nothing of each other: there, names may repeat
/// from folder to folder.
const OF_SEPARATE_FOLDERS: [&str; 3] = ["protocol", "server", "source"];

/// The name of the type that a line declares, and whether other files can see the type.
fn declared_type(line: &str) -> Option<(&str, bool)> {
    let (is_seen, rest) = match line.strip_prefix("pub") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let rest = if rest.starts_with('(') { rest.split_once(')')?.1 } else { rest };
    let rest = if is_seen { rest.trim_start() } else { rest };
    let (keyword, rest) = rest.split_once(' ')?;
    let is_type = matches!(keyword, "struct" | "enum" | "trait" | "type" | "union");
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    is_type.then_some((&rest[..end], is_seen))
}

#[test]
fn types_that_other_files_see_have_names_of_their_own() {
    let mut places = BTreeMap::<(String, String), Vec<(String, bool)>>::new();
    for (name, _) in ALLOWED {
        let source = root().join("crates").join(name).join("src");
        for file in rust_files(&source) {
            let inside = file.strip_prefix(&source).unwrap();
            if inside.iter().any(|part| part == "tests") || inside.ends_with("tests.rs") {
                continue;
            }
            let folder = inside.iter().next().unwrap().to_str().unwrap();
            let unit = match OF_SEPARATE_FOLDERS.contains(&name) {
                true => format!("{name}/{folder}"),
                false => name.to_owned(),
            };
            let text = fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for (declared, is_seen) in code.lines().filter_map(declared_type) {
                let place = (inside.display().to_string(), is_seen);
                places.entry((unit.clone(), declared.to_owned())).or_default().push(place);
            }
        }
    }
    assert!(places.contains_key(&("engine".to_owned(), "Database".to_owned())));
    for ((unit, declared), places) in places {
        let is_clear = places.len() == 1 || places.iter().all(|(_, is_seen)| !is_seen);
        assert!(is_clear, "{unit}: several types are called {declared}: {places:?}");
    }
}

#[test]
fn declared_types_are_read() {
    assert_eq!(declared_type("pub(crate) struct Row<'a> {"), Some(("Row", true)));
    assert_eq!(declared_type("pub type Answer = u8;"), Some(("Answer", true)));
    assert_eq!(declared_type("enum Kind {"), Some(("Kind", false)));
    assert_eq!(declared_type("pub(in crate::a) trait Walk {"), Some(("Walk", true)));
    assert_eq!(declared_type("pub fn row() {"), None);
    assert_eq!(declared_type("    type Break = ();"), None);
}

/// What a program sees of a crate: a type, a macro, a function, or a function of a type.
struct PublicItem {
    /// The type or trait, if it is a function of one.
    owner: Option<String>,
    name: String,
    signature: String,
    doc: String,
}

impl PublicItem {
    /// The examples that are compiled.
    fn example(&self) -> String {
        let blocks = self.doc.split("```").skip(1).step_by(2);
        let compiled = |block: &'_ str| {
            let (language, code) = block.split_once('\n')?;
            ["", "no_run"].contains(&language).then(|| code.to_owned())
        };
        blocks.filter_map(compiled).collect()
    }

    fn may_fail(&self) -> bool {
        self.signature.contains("Result<")
    }

    /// Whether a call in the example of its type is enough: it takes nothing and cannot fail, or it is a setting.
    fn is_small(&self) -> bool {
        let takes_nothing = self.signature.split_once('(').is_some_and(|(_, parameters)| {
            ["&self)", "self)"].iter().any(|start| parameters.starts_with(start))
        });
        let is_setting = self.signature.contains("self, ") && self.signature.contains(" -> Self");
        let is_made = self.signature.contains(": ColumnType::");
        takes_nothing && !self.may_fail() || is_setting || is_made
    }

    fn shown(&self) -> String {
        self.owner.iter().map(|owner| format!("{owner}::")).collect::<String>() + &self.name
    }
}

/// The name with which a text begins.
fn first_name(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Whether a text has this name, whole.
fn has_name(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

/// The type whose functions stand below this line, and whether they are those of a trait.
fn opened_type(line: &str) -> Option<(String, bool)> {
    if let Some(rest) = line.strip_prefix("pub trait ") {
        return Some((first_name(rest), true));
    }
    let rest = line.strip_prefix("impl").filter(|rest| !rest.contains(" for "))?;
    let rest = if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.trim_start() };
    Some((first_name(rest), false))
}

/// The name of the item that a line declares, given the type around it.
fn declared_item(line: &str, around: Option<&(String, bool)>) -> Option<String> {
    if let Some((_, is_trait)) = around
        && line.starts_with(' ')
    {
        let public = if *is_trait { "    fn " } else { "    pub fn " };
        // `column_methods!` makes a function of a line such as `int: ColumnType::Int(64), true;`.
        let made = || line.contains(": ColumnType::").then(|| line.trim_start());
        return line.strip_prefix(public).or_else(made).map(first_name);
    }
    let seen = ["pub fn ", "pub use remora_engine::", "macro_rules! "];
    let other = || seen.iter().find_map(|start| line.strip_prefix(start)).map(first_name);
    let declared = declared_type(line).filter(|_| line.starts_with("pub "));
    declared.map(|(name, _)| name.to_owned()).or_else(other)
}

/// What a file declares as public, whether or not its module is.
fn public_items(text: &str) -> Vec<PublicItem> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines: Vec<&str> = code.lines().collect();
    let (mut items, mut doc, mut around) = (Vec::new(), String::new(), None);
    for (place, line) in lines.iter().enumerate() {
        let start = line.trim_start();
        if let Some(text) = start.strip_prefix("///") {
            doc = doc + text.trim_start() + "\n";
            continue;
        }
        if start.starts_with("#[") {
            // What is hidden counts as what has no documentation: as nothing.
            doc = if start == "#[doc(hidden)]" { String::new() } else { doc };
            continue;
        }
        if *line == "}" {
            around = None;
        }
        if let Some(name) = declared_item(line, around.as_ref()).filter(|_| !doc.is_empty()) {
            let end = lines[place..].iter().position(|line| line.ends_with(['{', ';', '}']));
            let whole = lines[place..=place + end.unwrap_or(0)].iter().map(|line| line.trim());
            let owner = around.as_ref().filter(|_| line.starts_with(' '));
            let owner = owner.map(|(name, _)| name.clone());
            let signature = whole.collect::<Vec<_>>().join(" ").replace("(mut ", "(");
            items.push(PublicItem { owner, name, signature, doc: std::mem::take(&mut doc) });
        }
        around = opened_type(line).or(around);
        doc.clear();
    }
    items
}

/// The names that the crate's `lib.rs` gives to programs.
fn exported_names(library: &str) -> BTreeSet<String> {
    let uses = library.split(';').filter_map(|code| code.rsplit_once("pub use ")).map(|it| it.1);
    let names = uses.flat_map(|code| code.rsplit("::").next().unwrap_or_default().split(','));
    let names = names.map(|name| first_name(name.trim_matches(['{', '}', ' ', '\n'])));
    names.chain(["params".to_owned()]).filter(|name| !name.is_empty()).collect()
}

/// What the crate `remora` gives to programs, also of the types that the engine declares.
fn items_of_the_library() -> Vec<PublicItem> {
    let source = root().join("crates/remora/src");
    let names = exported_names(&fs::read_to_string(source.join("lib.rs")).unwrap());
    let read = |file: PathBuf| public_items(&fs::read_to_string(file).unwrap());
    let mut items: Vec<PublicItem> = rust_files(&source).into_iter().flat_map(read).collect();
    let values = rust_files(&root().join("crates/engine/src/value")).into_iter().flat_map(read);
    items.extend(values.filter(|item| item.owner.is_some()));
    items.retain(|item| names.contains(item.owner.as_ref().unwrap_or(&item.name)));
    items
}

/// Those of the items that no example shows.
fn without_example(items: &[PublicItem]) -> Vec<String> {
    let types = items.iter().filter(|item| item.owner.is_none());
    let types: BTreeMap<&str, &PublicItem> = types.map(|item| (item.name.as_str(), item)).collect();
    let is_shown = |item: &&PublicItem| {
        let of_type = item.owner.as_ref().and_then(|owner| types.get(owner.as_str()));
        let is_called = of_type.is_some_and(|owner| {
            // Whoever reads the library does not see the engine, whose types it shows in `lib.rs`.
            let is_of_engine = owner.signature.starts_with("pub use ");
            (is_of_engine || item.is_small()) && has_name(&owner.example(), &item.name)
        });
        is_called || !item.example().is_empty()
    };
    items.iter().filter(|item| !is_shown(item)).map(PublicItem::shown).collect()
}

#[test]
fn what_programs_call_has_examples_and_names_its_cost() {
    let items = items_of_the_library();
    assert!(items.len() > 300, "only {} items are read", items.len());
    let missing = without_example(&items);
    assert!(missing.is_empty(), "without an example: {missing:#?}");
    let silent = items.iter().filter(|item| item.may_fail() && item.signature.contains("fn "));
    let silent =
        silent.filter(|item| !["Cost:", "# Errors"].iter().all(|it| item.doc.contains(it)));
    let silent: Vec<String> = silent.map(PublicItem::shown).collect();
    assert!(silent.is_empty(), "without a cost or errors: {silent:#?}");
}

#[test]
fn items_without_examples_are_found() {
    let text = "/// A bird.\n///\n/// ```\n/// bird.name();\n/// ```\n#[derive(Clone)]\npub struct Bird<K> {\n\
                /// A field.\n    pub age: u8,\n}\n\nimpl<K: Key> Bird<K> {\n    /// The name.\n    pub fn name(&self) -> \
                &str {\n    }\n\n    /// Its weight in grams.\n    pub fn weight(&self) -> u32 {\n    }\n\n    /// Flies.\n    \
                ///\n    /// ```text\n    /// name\n    /// ```\n    pub fn fly(\n        &self,\n        to: Place,\n    ) -> \
                Result<()> {\n    }\n\n    /// Hidden.\n    #[doc(hidden)]\n    pub fn inside(&self) {\n    }\n}\n\
                /// Lands.\n/// ```no_run\n/// land();\n/// ```\npub fn land() {\n}\n/// Nests.\npub fn nest() {\n}\n";
    let items = public_items(text);
    let names: Vec<String> = items.iter().map(PublicItem::shown).collect();
    assert_eq!(names, ["Bird", "Bird::name", "Bird::weight", "Bird::fly", "land", "nest"]);
    assert_eq!(items[3].signature, "pub fn fly( &self, to: Place, ) -> Result<()> {");
    assert!(items[3].may_fail() && !items[3].is_small() && items[2].is_small());
    assert_eq!(without_example(&items), ["Bird::weight", "Bird::fly", "nest"]);
    let exported = exported_names(
        "mod a;\npub use a::B;\n/// Of it.\npub use a::{C,\n    d};\npub use e;\nuse f::G;",
    );
    assert_eq!(exported.into_iter().collect::<Vec<_>>(), ["B", "C", "d", "e", "params"]);
}
