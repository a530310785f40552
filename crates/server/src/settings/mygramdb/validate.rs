//! Validates a MygramDB file: by the table of keys, then by rules over several keys. MygramDB refuses the same files.

use std::collections::HashMap;

use serde_json::Value;

use super::{
    key_table::{self, Default, KEYS},
    node::{Node, Tree},
};
use crate::{process::MemoryFigures, settings::keys};

/// The first error, with its line.
pub(super) fn validate(root: &Node) -> Result<(), String> {
    let root = Section { rule: "", shown: "", node: root };
    root.validate()?;
    for section in ["mysql", "tables"] {
        if root.node.get(section).is_none() {
            return root.refuse(format!("'{section}' is missing; MygramDB needs it"));
        }
    }
    validate_source(root.node)?;
    validate_api(root.node)?;
    validate_cache(root.node)?;
    validate_tables(root.node)
}

/// A map of the file.
struct Section<'n> {
    /// Its path in the table of keys.
    rule: &'n str,
    /// Its path for people: `tables[0]`.
    shown: &'n str,
    node: &'n Node,
}

impl Section<'_> {
    fn validate(&self) -> Result<(), String> {
        let Tree::Map(entries) = &self.node.tree else {
            let name = if self.shown.is_empty() { "the file" } else { self.shown };
            return self
                .refuse(format!("{name} is {}; it is a section of keys", describe(self.node)));
        };
        for entry in entries {
            let (rule, path) = (join(self.rule, &entry.key), join(self.shown, &entry.key));
            let value = &entry.value;
            if let Some(key) = key_table::find(&rule) {
                if !key.kind.allows(value) {
                    let why = format!("{path} is {}; it is {}", describe(value), key.kind);
                    return refuse(entry.line.max(value.line), why);
                }
            } else if key_table::is_section(&rule) {
                Section { rule: &rule, shown: &path, node: value }.validate()?;
            } else if key_table::is_section(&format!("{rule}[]")) {
                validate_list(&format!("{rule}[]"), &path, value)?;
            } else {
                let why = keys::unknown_key(&entry.key, &key_table::below(self.rule));
                let place = if self.shown.is_empty() { "" } else { " in " };
                return refuse(entry.line, format!("{why}{place}{}", self.shown));
            }
        }
        self.validate_required()
    }

    fn validate_required(&self) -> Result<(), String> {
        for key in KEYS.iter().filter(|key| matches!(key.default, Default::Required)) {
            let name = key.path.strip_prefix(self.rule).and_then(|rest| rest.strip_prefix('.'));
            let missing = |name: &&str| !name.contains('.') && self.node.get(name).is_none();
            if let Some(name) = name.filter(missing) {
                return self
                    .refuse(format!("{}.{name} is missing; it is {}", self.shown, key.kind));
            }
        }
        Ok(())
    }

    fn refuse(&self, why: String) -> Result<(), String> {
        refuse(self.node.line, why)
    }
}

fn validate_list(rule: &str, path: &str, list: &Node) -> Result<(), String> {
    let Tree::List(items) = &list.tree else {
        return refuse(list.line, format!("{path} is {}; it is a list", describe(list)));
    };
    for (at, node) in items.iter().enumerate() {
        Section { rule, shown: &format!("{path}[{at}]"), node }.validate()?;
    }
    Ok(())
}

fn validate_source(root: &Node) -> Result<(), String> {
    if flag(root, "mysql.ssl_enable", false)
        && flag(root, "mysql.ssl_verify_server_cert", true)
        && text(root, "mysql.ssl_ca").is_empty()
    {
        return refuse(
            line(root, "mysql.ssl_enable"),
            "mysql.ssl_enable needs mysql.ssl_ca, or mysql.ssl_verify_server_cert: false to trust \
             any certificate"
                .to_owned(),
        );
    }
    let Some(replication) = root.get("replication") else { return Ok(()) };
    if flag(root, "replication.enable", true) && replication.get("server_id").is_none() {
        let why = "replication.server_id is missing; it is a number that no other replica has";
        return refuse(replication.line, why.to_owned());
    }
    let start = text(root, "replication.start_from");
    if flag(root, "replication.auto_initial_snapshot", false) && !["", "snapshot"].contains(&start)
    {
        let why = format!(
            "replication.auto_initial_snapshot needs replication.start_from: snapshot, which is \
             {start}"
        );
        return refuse(line(root, "replication.start_from"), why);
    }
    Ok(())
}

fn validate_api(root: &Node) -> Result<(), String> {
    let origin = text(root, "api.http.cors_allow_origin");
    if flag(root, "api.http.enable", false)
        && flag(root, "api.http.enable_cors", false)
        && origin.is_empty()
    {
        let why = "api.http.enable_cors needs api.http.cors_allow_origin";
        return refuse(line(root, "api.http.enable_cors"), why.to_owned());
    }
    const LONGEST: u64 = 1 << 20;
    let query = match whole(root, "api.max_query_length", 128) {
        0 => LONGEST,
        bytes => bytes.min(LONGEST),
    };
    let path = "api.tcp.max_pending_frame_bytes";
    let pending = whole(root, path, 4 << 20);
    if pending < query {
        let why = format!("{path} is {pending}; a query may have {query} bytes");
        return refuse(line(root, path), why);
    }
    Ok(())
}

/// MygramDB refuses a cache of more than half of the machine's memory.
fn validate_cache(root: &Node) -> Result<(), String> {
    let path = "cache.max_memory_mb";
    let (wanted, half) = (whole(root, path, 0), MemoryFigures::read().system_total >> 21);
    if half > 0 && wanted > half {
        let why =
            format!("{path} is {wanted}; it is at most half of this machine's memory, {half}");
        return refuse(line(root, path), why);
    }
    Ok(())
}

fn validate_tables(root: &Node) -> Result<(), String> {
    let Some(tables) = root.get("tables") else { return Ok(()) };
    if tables.items().is_empty() {
        return refuse(tables.line, "'tables' names no table; MygramDB needs one".to_owned());
    }
    let database = text(root, "mysql.database");
    let mut names = Vec::new();
    for (at, table) in tables.items().iter().enumerate() {
        validate_table(table).map_err(|(line, why)| format!("line {line}: tables[{at}]: {why}"))?;
        let own = table.get("database").and_then(Node::text);
        let name = (own.unwrap_or(database), table.get("name").and_then(Node::text));
        if names.contains(&name) {
            let why = format!("table '{}' is there twice", name.1.unwrap_or_default());
            return refuse(table.line, why);
        }
        names.push(name);
    }
    Ok(())
}

type InvalidValue = (u64, String);

fn validate_table(table: &Node) -> Result<(), InvalidValue> {
    let source = table.get("text_source");
    let Some(source) = source else {
        return Err((table.line, "text_source is missing; it is a section of keys".to_owned()));
    };
    if source.get("column").is_some() == source.get("concat").is_some() {
        let why = "text_source has either 'column' or a 'concat' of two or more columns";
        return Err((source.line, why.to_owned()));
    }
    let synonyms = table.get("synonyms");
    if let Some(synonyms) = synonyms
        && flag(synonyms, "enable", false)
        && synonyms.get("file").is_none()
    {
        return Err((synonyms.line, "synonyms.enable needs synonyms.file".to_owned()));
    }
    let mut types: HashMap<&str, &str> = HashMap::new();
    for list in ["required_filters", "filters"] {
        for filter in table.get(list).map_or(&[][..], Node::items) {
            let (name, kind) = (text(filter, "name"), text(filter, "type"));
            let other = types.entry(name).or_insert(kind);
            if *other != kind {
                let why = format!("filter '{name}' is {other} in one place and {kind} in another");
                return Err((filter.line, why));
            }
        }
    }
    table
        .get("required_filters")
        .map_or(&[][..], Node::items)
        .iter()
        .try_for_each(validate_required)
}

fn validate_required(filter: &Node) -> Result<(), InvalidValue> {
    let (name, kind, op) = (text(filter, "name"), text(filter, "type"), text(filter, "op"));
    let value = filter.get("value");
    let of_null = op.ends_with("NULL");
    let empty = value.and_then(Node::text) == Some("");
    let why = match value {
        Some(_) if of_null => format!("{op} takes no value"),
        None if !of_null => format!("'{op}' needs a value"),
        Some(_) if empty && !["string", "varchar", "text"].contains(&kind) => {
            format!("an empty value is no {kind}")
        }
        _ if kind == "boolean" && !of_null && !["=", "!="].contains(&op) => {
            format!("'{op}' compares no boolean; write = or !=")
        }
        _ => return Ok(()),
    };
    Err((filter.line, format!("required filter on '{name}': {why}")))
}

fn flag(node: &Node, path: &str, default: bool) -> bool {
    match node.at(path).map(|node| &node.tree) {
        Some(Tree::Scalar(Value::Bool(flag))) => *flag,
        _ => default,
    }
}

fn whole(node: &Node, path: &str, default: u64) -> u64 {
    match node.at(path).map(|node| &node.tree) {
        Some(Tree::Scalar(value)) => value.as_u64().unwrap_or(default),
        _ => default,
    }
}

fn text<'n>(node: &'n Node, path: &str) -> &'n str {
    node.at(path).and_then(Node::text).unwrap_or("")
}

/// The line of a value, or of the innermost existing parent.
fn line(root: &Node, path: &str) -> u64 {
    let mut node = root;
    for key in path.split('.') {
        let Some(inner) = node.get(key) else { break };
        node = inner;
    }
    node.line
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A value in a message: texts in quotes, long ones truncated.
fn describe(node: &Node) -> String {
    const LONGEST: usize = 40;
    match &node.tree {
        Tree::Map(_) => "a section".to_owned(),
        Tree::List(items) if items.is_empty() => "an empty list".to_owned(),
        Tree::List(_) => "a list".to_owned(),
        Tree::Scalar(Value::Null) => "empty".to_owned(),
        Tree::Scalar(Value::String(text)) => {
            let cut: String = text.chars().take(LONGEST).collect();
            if cut.len() < text.len() { format!("'{cut}…'") } else { format!("'{cut}'") }
        }
        Tree::Scalar(value) => value.to_string(),
    }
}

fn refuse(line: u64, why: String) -> Result<(), String> {
    Err(format!("line {line}: {why}"))
}
