//! An active MygramDB file: completed with defaults, and shown by CONFIG and SHOW VARIABLES.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{
    key_table::{self, Default, KEYS, Key, SECTIONS},
    kind::Kind,
};

/// A file's values, with MygramDB's defaults for missing keys.
#[derive(Clone, Debug, PartialEq)]
pub struct MygramFile {
    values: Value,
}

impl MygramFile {
    /// A valid file, completed.
    pub(super) fn new(mut values: Value) -> Self {
        apply_old_keys(&mut values);
        for key in KEYS {
            if let Some(default) = key.default.value() {
                let path: Vec<&str> = key.path.split('.').collect();
                fill_in(&mut values, &path, &default);
            }
        }
        fill_tables(&mut values);
        Self { values }
    }

    /// All values.
    pub(super) fn values(&self) -> &Value {
        &self.values
    }

    /// The text of a key; empty for other types.
    pub(crate) fn text(&self, path: &str) -> &str {
        self.at(path).and_then(Value::as_str).unwrap_or("")
    }

    /// Sets a key from SET or the environment. A name that is not a key is ignored.
    pub(crate) fn set(&mut self, path: &str, text: &str) -> Result<(), String> {
        let Some(key) = key_table::find(path) else { return Ok(()) };
        if let (Some(section), Some((host, port))) =
            (path.strip_suffix(".bind"), text.rsplit_once(':'))
        {
            // Remora has one address where a MygramDB file has a host and a port.
            self.put(path, host.trim_matches(['[', ']']).into());
            self.put(&format!("{section}.port"), value_of(Kind::Whole(0, 65_535), port));
            return Ok(());
        }
        if let Kind::Networks | Kind::Addresses = key.kind {
            let list = text.split([',', ' ']).filter(|item| !item.is_empty());
            self.put(path, list.map(Value::from).collect());
            return Ok(());
        }
        let value = value_of(key.kind, text);
        let absent = text.is_empty() && matches!(key.kind, Kind::Host);
        if !absent && !key.kind.allows_scalar(&value) {
            return Err(format!("{path} is '{text}'; it is {}", key.kind));
        }
        self.put(path, value);
        Ok(())
    }

    fn put(&mut self, path: &str, value: Value) {
        let mut place = &mut self.values;
        for part in path.split('.') {
            let Value::Object(map) = place else { return };
            place = map.entry(part).or_insert(Value::Null);
        }
        *place = value;
    }

    /// Copies the value of a key from another file.
    pub(crate) fn copy(&mut self, from: &Self, path: &str) {
        let value = from.at(path).cloned();
        let Some((section, name)) = path.rsplit_once('.') else { return };
        let found = section.split('.').try_fold(&mut self.values, |value, key| value.get_mut(key));
        if let (Some(Value::Object(map)), Some(value)) = (found, value) {
            map.insert(name.to_owned(), value);
        }
    }

    /// The values at or below a path as YAML; `None` if the path does not exist.
    pub(crate) fn show(&self, path: Option<&str>) -> Option<String> {
        let path = path.unwrap_or("");
        let mut text = String::new();
        write_yaml(&mut text, &masked(self.at(path)?, path), 0);
        Some(text)
    }

    /// All single values by path, sorted.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        flatten(&masked(&self.values, ""), String::new(), &mut variables);
        variables
    }

    /// A path into a list without an index means the first element.
    fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').filter(|key| !key.is_empty()).try_fold(&self.values, |value, key| {
            value.as_array().and_then(|list| list.first()).unwrap_or(value).get(key)
        })
    }
}

/// The meaning and the permitted values of a path; `None` if it does not exist.
pub(crate) fn help(path: Option<&str>) -> Option<String> {
    let path = path.unwrap_or("");
    let mut rule = String::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        if !rule.is_empty() {
            rule.push('.');
        }
        rule.push_str(part);
        if key_table::is_section(&format!("{rule}[]")) {
            rule.push_str("[]");
        }
    }
    match key_table::find(&rule) {
        Some(key) => Some(key_help(path, key)),
        None if rule.is_empty() || key_table::is_section(&rule) => Some(section_help(path, &rule)),
        None => None,
    }
}

fn key_help(path: &str, key: &Key) -> String {
    let mut text = format!("{path}\n");
    let choice = matches!(key.kind, Kind::Choice(_) | Kind::WholeOf(_));
    let _ = writeln!(text, "Type: {}{}", key.kind.type_name(), if choice { " (enum)" } else { "" });
    if let Some(default) = key.default.value() {
        let _ = writeln!(text, "Default: {default}");
    }
    match key.kind {
        Kind::Whole(least, u64::MAX) => {
            let _ = writeln!(text, "Range: {least} - +∞");
        }
        Kind::Whole(least, most) => {
            let _ = writeln!(text, "Range: {least} - {most}");
        }
        Kind::Number(least, most) => {
            let most = if most.is_finite() { most.to_string() } else { "+∞".to_owned() };
            let _ = writeln!(text, "Range: {least} - {most}");
        }
        Kind::Choice(known) => {
            text.push_str("Allowed values:\n");
            for value in known {
                let _ = writeln!(text, "  - \"{value}\"");
            }
        }
        Kind::WholeOf(known) => {
            text.push_str("Allowed values:\n");
            for value in known {
                let _ = writeln!(text, "  - {value}");
            }
        }
        other => {
            let _ = writeln!(text, "Allowed: {other}");
        }
    }
    if matches!(key.default, Default::Required) {
        text.push_str("Required: yes\n");
    }
    let _ = writeln!(text, "Description: {}", key.help);
    text
}

fn section_help(path: &str, rule: &str) -> String {
    let names = key_table::below(rule);
    let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let about = |name: &str| -> &'static str {
        let inner = if rule.is_empty() { name.to_owned() } else { format!("{rule}.{name}") };
        let section = SECTIONS.iter().find(|(section, _)| rule.is_empty() && *section == name);
        section.map(|(_, help)| *help).or(key_table::find(&inner).map(|key| key.help)).unwrap_or("")
    };
    let mut text = match path {
        "" => "Available configuration sections:\n".to_owned(),
        path => format!("Available paths under '{path}':\n"),
    };
    for name in names {
        let _ = writeln!(text, "{}", format!("  {name:longest$}  - {}", about(name)).trim_end());
    }
    let inner = if path.is_empty() { "<section>".to_owned() } else { format!("{path}.<path>") };
    let _ = writeln!(text, "Use \"CONFIG HELP {inner}\" for detailed information.");
    text
}

impl Default {
    fn value(self) -> Option<Value> {
        match self {
            Self::Required | Self::Absent => None,
            Self::Flag(flag) => Some(flag.into()),
            Self::Whole(number) => Some(number.into()),
            Self::Number(number) => Some(number.into()),
            Self::Text(text) => Some(text.into()),
            Self::EmptyList => Some(Value::Array(Vec::new())),
        }
    }
}

/// A text converted to the key's type. A text that cannot be converted stays a text, which such a key then refuses.
fn value_of(kind: Kind, text: &str) -> Value {
    let parsed = match kind {
        Kind::Flag | Kind::True => match text.to_ascii_lowercase().as_str() {
            "true" | "on" | "yes" | "1" => Some(true.into()),
            "false" | "off" | "no" | "0" => Some(false.into()),
            _ => None,
        },
        Kind::Whole(..) | Kind::WholeOf(_) => text.parse::<u64>().ok().map(Value::from),
        Kind::Number(..) => text.parse::<f64>().ok().map(Value::from),
        _ => None,
    };
    parsed.unwrap_or_else(|| text.into())
}

/// `server` is the former name of `api.tcp`; if both exist, `api.tcp` applies.
fn apply_old_keys(values: &mut Value) {
    let Value::Object(map) = values else { return };
    let Some(Value::Object(server)) = map.remove("server") else { return };
    for (old, new) in [("host", "api.tcp.bind"), ("port", "api.tcp.port")] {
        if let Some(value) = server.get(old) {
            fill_in(values, &new.split('.').collect::<Vec<_>>(), value);
        }
    }
}

/// Sets a value at a path that has none.
fn fill_in(values: &mut Value, path: &[&str], default: &Value) {
    let (Some((first, rest)), Value::Object(map)) = (path.split_first(), values) else { return };
    match first.strip_suffix("[]") {
        Some(list) => {
            let items = map.get_mut(list).and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(|item| fill_in(item, rest, default));
        }
        None if rest.is_empty() => {
            map.entry(*first).or_insert_with(|| default.clone());
        }
        None => {
            let inner = map.entry(*first).or_insert_with(|| Value::Object(Map::new()));
            fill_in(inner, rest, default);
        }
    }
}

/// Fills in values that a table takes from other keys.
fn fill_tables(values: &mut Value) {
    let Value::Object(map) = values else { return };
    let index = map.remove("index");
    let size = index.and_then(|index| index.get("ngram_size").cloned()).unwrap_or(2.into());
    let database = map.get("mysql").and_then(|mysql| mysql.get("database").cloned());
    let tables = map.get_mut("tables").and_then(Value::as_array_mut);
    for table in tables.into_iter().flatten().filter_map(Value::as_object_mut) {
        let size = table.entry("ngram_size").or_insert_with(|| size.clone()).clone();
        let kanji = table.entry("kanji_ngram_size").or_insert(Value::Null);
        if kanji.as_u64().unwrap_or(0) == 0 {
            *kanji = size;
        }
        if let Some(database) = &database {
            table.entry("database").or_insert_with(|| database.clone());
        }
    }
}

/// The value with secrets replaced by stars.
fn masked(value: &Value, path: &str) -> Value {
    match value {
        Value::Object(map) => {
            let inner = map
                .iter()
                .map(|(key, value)| (key.clone(), masked(value, &format!("{path}.{key}"))));
            Value::Object(inner.collect())
        }
        Value::Array(items) => items.iter().map(|item| masked(item, path)).collect(),
        Value::String(text) if !text.is_empty() && is_secret(path) => "***".into(),
        other => other.clone(),
    }
}

fn is_secret(path: &str) -> bool {
    ["password", "token", "ssl_key"].iter().any(|secret| path.ends_with(secret))
}

/// Writes YAML: maps and lists as blocks, texts in quotes, keys sorted.
fn write_yaml(out: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let _ = write!(out, "{indent}{key}:");
                write_inner(out, value, depth + 1);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                write_yaml(&mut inner, item, depth + 1);
                let inner = inner.trim_start();
                let _ = writeln!(out, "{indent}- {}", inner.trim_end_matches('\n'));
            }
        }
        scalar => {
            let _ = writeln!(out, "{indent}{scalar}");
        }
    }
}

fn write_inner(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if map.is_empty() => out.push_str(" {}\n"),
        Value::Array(items) if items.is_empty() => out.push_str(" []\n"),
        Value::Object(_) | Value::Array(_) => {
            out.push('\n');
            write_yaml(out, value, depth);
        }
        scalar => {
            let _ = writeln!(out, " {scalar}");
        }
    }
}

fn flatten(value: &Value, path: String, out: &mut Vec<(String, String)>) {
    let bare = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(value, format!("{path}{dot}{key}"), out);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for (at, item) in items.iter().enumerate() {
                flatten(item, format!("{path}[{at}]"), out);
            }
        }
        Value::Array(items) => {
            out.push((path, items.iter().map(bare).collect::<Vec<_>>().join(",")));
        }
        scalar => out.push((path, bare(scalar))),
    }
}
