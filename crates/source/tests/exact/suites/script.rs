//! The statements of a test file of a server's own suite, as far as they can be had without the
//! program that such files are written for.
//!
//! Loops run once and conditions hold; what is done to the server's process is passed over. A file
//! is bytes in any character set: here each byte is a character, and a byte again when it is sent.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

/// Files of other files.
const MAX_DEPTH: usize = 4;
/// Statements of one file; the longest have so many only by files that they read again and again.
const MAX_ACTIONS: usize = 4_000;

/// What a file asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Statement(String),
    /// A connection of this name from here on; made with this database where it is new.
    Connection(String, Option<String>),
    Disconnect(String),
}

/// Words that are no SQL, though they may stand where a statement does.
const COMMANDS: &[&str] = &[
    "append_file",
    "assert",
    "character_set",
    "chmod",
    "connect",
    "connection",
    "copy_file",
    "copy_files_wildcard",
    "cat_file",
    "change_user",
    "dec",
    "delimiter",
    "die",
    "diff_files",
    "dirty_close",
    "disable_abort_on_error",
    "disable_connect_log",
    "disable_info",
    "disable_metadata",
    "disable_ps_protocol",
    "disable_ps2_protocol",
    "disable_query_log",
    "disable_reconnect",
    "disable_result_log",
    "disable_rpl_parse",
    "disable_view_protocol",
    "disable_cursor_protocol",
    "disable_service_connection",
    "disable_session_track_info",
    "disable_testcase",
    "disable_warnings",
    "disable_prepare_warnings",
    "disable_async_client",
    "disconnect",
    "echo",
    "enable_abort_on_error",
    "enable_connect_log",
    "enable_info",
    "enable_metadata",
    "enable_ps_protocol",
    "enable_ps2_protocol",
    "enable_query_log",
    "enable_reconnect",
    "enable_result_log",
    "enable_rpl_parse",
    "enable_view_protocol",
    "enable_cursor_protocol",
    "enable_service_connection",
    "enable_session_track_info",
    "enable_testcase",
    "enable_warnings",
    "enable_prepare_warnings",
    "enable_async_client",
    "end_timer",
    "error",
    "eval",
    "evalp",
    "exec",
    "execw",
    "exec_in_background",
    "exit",
    "expr",
    "file_exists",
    "horizontal_results",
    "inc",
    "let",
    "list_files",
    "list_files_append_file",
    "list_files_write_file",
    "lowercase_result",
    "mkdir",
    "move_file",
    "output",
    "partially_sorted_result",
    "perl",
    "ping",
    "query",
    "query_attributes",
    "query_get_value",
    "query_horizontal",
    "query_vertical",
    "real_sleep",
    "reap",
    "remove_file",
    "remove_files_wildcard",
    "replace_column",
    "replace_numeric_round",
    "replace_regex",
    "replace_result",
    "require",
    "reset_connection",
    "result",
    "result_format",
    "rmdir",
    "force_rmdir",
    "force_cpdir",
    "send",
    "send_eval",
    "send_quit",
    "shutdown_server",
    "skip",
    "skip_if_hypergraph",
    "sleep",
    "sorted_result",
    "source",
    "start_timer",
    "sync_slave_with_master",
    "sync_with_master",
    "save_master_pos",
    "system",
    "vertical_results",
    "wait_for_slave_to_stop",
    "write_file",
    "write_line",
    "optimizer_trace",
    "copy_file",
    "remove_files",
    "run_in_background",
    "enable_long_unique_hash_index_on_virtual_columns",
];

/// Names of files below `include` that hold statements of their own.
const INCLUDED: &[&str] = &[
    "add_",
    "alter",
    "cast",
    "commit",
    "common-tests",
    "concurrent",
    "country",
    "ctype",
    "ddl",
    "empty_string",
    "explain",
    "func_",
    "gap",
    "gis",
    "handler",
    "icp",
    "index_merge",
    "innodb",
    "join",
    "loaddata",
    "mix",
    "mrr",
    "null_key",
    "order_by",
    "partition",
    "percona",
    "ps_",
    "query_",
    "range",
    "read_many",
    "rowid",
    "strict",
    "subselect",
    "subquery",
    "type_",
    "union",
    "unsafe",
    "varchar",
    "view",
    "weight",
    "world",
    "create_",
    "column_compression",
    "json",
];

/// The statements of a file.
pub fn read(root: &Path, path: &Path) -> Vec<Action> {
    let mut reader = Reader { root, variables: HashMap::new(), actions: Vec::new() };
    reader.file(path, 0);
    reader.actions.truncate(MAX_ACTIONS);
    reader.actions
}

struct Reader<'r> {
    root: &'r Path,
    variables: HashMap<String, String>,
    actions: Vec<Action>,
}

impl Reader<'_> {
    fn file(&mut self, path: &Path, depth: usize) {
        let Ok(bytes) = fs::read(path) else { return };
        let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
        let (mut delimiter, mut statement) = (";".to_owned(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let trimmed = line.trim();
            if trimmed.starts_with('#') || (trimmed.starts_with("-- ") && !statement.is_empty()) {
                continue;
            }
            if statement.trim().is_empty() {
                if let Some(command) = trimmed.strip_prefix("--") {
                    let command = command.trim();
                    if let Some(end) = document(command) {
                        lines.by_ref().take_while(|line| line.trim() != end).for_each(drop);
                    }
                    self.command(command, &mut delimiter, depth);
                    continue;
                }
                statement.clear();
            }
            statement.push_str(line);
            statement.push('\n');
            while let Some((whole, rest)) = cut(&statement, &delimiter) {
                let rest = rest.to_owned();
                let whole = without_braces(whole).to_owned();
                if let Some(end) = document(&whole) {
                    lines.by_ref().take_while(|line| line.trim() != end).for_each(drop);
                }
                self.statement(&whole, &mut delimiter, depth);
                statement = rest;
            }
        }
    }

    fn statement(&mut self, text: &str, delimiter: &mut String, depth: usize) {
        let word: String =
            text.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
        if COMMANDS.contains(&word.to_ascii_lowercase().as_str()) {
            self.command(text, delimiter, depth);
        } else if !text.trim().is_empty() {
            self.actions.push(Action::Statement(text.trim().to_owned()));
        }
    }

    fn command(&mut self, text: &str, delimiter: &mut String, depth: usize) {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let rest = rest.trim();
        match word.to_ascii_lowercase().as_str() {
            "delimiter" if !rest.is_empty() => rest.clone_into(delimiter),
            "let" => self.set(rest),
            "eval" | "evalp" | "send_eval" | "query" | "send" | "query_vertical"
            | "query_horizontal" => {
                if let Some(statement) = self.substituted(rest) {
                    self.statement(statement.trim_end_matches(';'), delimiter, depth);
                }
            }
            "connect" => self.connect(rest),
            "connection" => {
                let name = rest.trim_end_matches(';').to_owned();
                self.actions.push(Action::Connection(name, None));
            }
            "disconnect" | "dirty_close" => {
                self.actions.push(Action::Disconnect(rest.trim_end_matches(';').to_owned()));
            }
            "source" if depth < MAX_DEPTH && self.actions.len() < MAX_ACTIONS => {
                let named = self.substituted(rest.trim_end_matches(';')).unwrap_or_default();
                if let Some(path) = self.included(named.trim()) {
                    self.file(&path, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// `$name = value`; what is asked of the server stays unknown.
    fn set(&mut self, text: &str) {
        let Some((name, value)) = text.split_once('=') else { return };
        let (name, value) = (name.trim().trim_start_matches('$'), value.trim());
        if value.starts_with('`') || value.starts_with("query_get_value") {
            self.variables.remove(name);
        } else if let Some(value) = self.substituted(value.trim_end_matches(';')) {
            self.variables.insert(name.to_owned(), value);
        }
    }

    /// The text with the values of its variables; nothing if one is unknown.
    fn substituted(&self, text: &str) -> Option<String> {
        let mut result = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let behind = &rest[at + 1..];
            let end = behind
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .unwrap_or(behind.len());
            result.push_str(&rest[..at]);
            match (end, self.variables.get(&behind[..end])) {
                (0, _) => result.push('$'),
                (_, Some(value)) => result.push_str(value),
                (_, None) => match &behind[..end] {
                    "ENGINE" | "engine_type" | "engine" => result.push_str("InnoDB"),
                    _ => return None,
                },
            }
            rest = &behind[end..];
        }
        result.push_str(rest);
        Some(result)
    }

    /// `(name, host, user, password, database, …)` or `name, host, …`
    fn connect(&mut self, text: &str) {
        let inside =
            text.trim_end_matches(';').trim().trim_start_matches('(').trim_end_matches(')');
        let mut parts = inside.split(',').map(str::trim);
        let Some(name) = parts.next().filter(|name| !name.is_empty()) else { return };
        let database = parts.nth(3).filter(|database| {
            !database.is_empty() && database.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let database = database.filter(|database| *database != "NULL").map(str::to_owned);
        self.actions.push(Action::Connection(name.to_owned(), database));
    }

    fn included(&self, named: &str) -> Option<PathBuf> {
        let path = [self.root.join(named), self.root.join("suite").join(named)]
            .into_iter()
            .find(|path| path.is_file())?;
        match named.strip_prefix("include/") {
            Some(name) => INCLUDED.iter().any(|begin| name.starts_with(begin)).then_some(path),
            None => Some(path),
        }
    }
}

/// The line that ends a document within the file, where the command is followed by one.
fn document(command: &str) -> Option<String> {
    let mut words = command.trim_end_matches(';').split_whitespace();
    let word = words.next()?;
    let places = match word {
        "perl" => 0,
        "write_file" | "append_file" => 1,
        _ => return None,
    };
    Some(words.nth(places).unwrap_or("EOF").to_owned())
}

/// What stands before the delimiter and behind it, if it is there and not in quotes.
fn cut<'t>(text: &'t str, delimiter: &str) -> Option<(&'t str, &'t str)> {
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match quote {
            Some(_) if character == '\\' => drop(characters.next()),
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None if text[at..].starts_with(delimiter) => {
                return Some((&text[..at], &text[at + delimiter.len()..]));
            }
            None if matches!(character, '\'' | '"' | '`') => quote = Some(character),
            None => {}
        }
    }
    None
}

/// Without what controls the flow before a statement: `if (…)`, `while (…)`, `{` and `}`.
fn without_braces(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        if let Some(behind) = rest.strip_prefix(['{', '}']) {
            rest = behind.trim_start();
            continue;
        }
        let line = rest.lines().next().unwrap_or_default();
        let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let behind = rest[word.len()..].trim_start();
        let controls = matches!(word.to_ascii_lowercase().as_str(), "if" | "while");
        if controls && behind.starts_with('(') && !line.to_ascii_uppercase().contains(" THEN") {
            rest = rest[line.len()..].trim_start();
            continue;
        }
        if rest.starts_with("--") && !rest.starts_with("-- ") {
            rest = rest[line.len()..].trim_start();
            continue;
        }
        return rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_extracted_from_test_scripts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.test");
        let text = "--source include/have_innodb.inc\n# c\n--disable_warnings\ndrop table if exists t;\n\
            let $x = 5;\n--let $y= t\neval insert into $y values ($x);\n--error 1146\nselect 'a;b'; select 2;\n\
            delimiter |;\ncreate procedure p() begin select 1; end|\ndelimiter ;|\n\
            connect (con1,localhost,root,,db1);\nwhile ($x)\n{\n  insert into t values (1);\n  dec $x;\n}\n\
            perl;\n  print 1;\nEOF\nconnection default;\n--eval select $unknown\nselect\n# c\n3;\n";
        fs::write(&path, text).unwrap();
        let statement = |text: &str| Action::Statement(text.to_owned());
        assert_eq!(
            read(directory.path(), &path),
            [
                statement("drop table if exists t"),
                statement("insert into t values (5)"),
                statement("select 'a;b'"),
                statement("select 2"),
                statement("create procedure p() begin select 1; end"),
                Action::Connection("con1".to_owned(), Some("db1".to_owned())),
                statement("insert into t values (1)"),
                Action::Connection("default".to_owned(), None),
                statement("select\n3"),
            ]
        );
    }
}
