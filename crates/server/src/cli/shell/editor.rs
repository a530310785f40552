//! Reads lines: with history and completion on a terminal, plain otherwise.

use std::path::PathBuf;

use rustyline::{
    Context, Helper,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::Validator,
};

use crate::{Error, Result};

const HISTORY_LINES: usize = 1000;

const COMMANDS: [&str; 24] = [
    "AUTH",
    "CACHE CLEAR",
    "CACHE STATS",
    "CONFIG HELP",
    "CONFIG SHOW",
    "COUNT",
    "DEBUG OFF",
    "DEBUG ON",
    "DELETE",
    "DUMP LOAD",
    "DUMP SAVE",
    "DUMP STATUS",
    "FACET",
    "GET",
    "INFO",
    "OPTIMIZE",
    "PUT",
    "REPLICATION STATUS",
    "SCHEMA",
    "SEARCH",
    "SET",
    "SHOW VARIABLES",
    "SYNC STATUS",
    "help",
];
const WITH_TABLE: [&str; 8] =
    ["SEARCH", "COUNT", "GET", "FACET", "PUT", "DELETE", "SCHEMA", "OPTIMIZE"];
const CLAUSES: [&str; 14] = [
    "AND",
    "ASC",
    "BETWEEN",
    "DESC",
    "FIELDS",
    "FILTER",
    "FUZZY",
    "HIGHLIGHT",
    "IN",
    "LIMIT",
    "NOT",
    "OFFSET",
    "OR",
    "SORT",
];

/// Reads requests.
pub(super) struct Editor {
    editor: Option<rustyline::Editor<Words, FileHistory>>,
    history: Option<PathBuf>,
}

impl Editor {
    /// An editor that completes these tables' names.
    pub(super) fn new(tables: Vec<String>) -> Self {
        let config = rustyline::Config::builder()
            .max_history_size(HISTORY_LINES)
            .map(|builder| builder.build());
        let editor = config.and_then(rustyline::Editor::with_config).ok();
        let history = std::env::home_dir().map(|home| home.join(".remora_history"));
        let editor = editor.map(|mut editor: rustyline::Editor<Words, FileHistory>| {
            editor.set_helper(Some(Words { tables }));
            if let Some(path) = &history {
                // It does not exist before the first use.
                let _ = editor.load_history(path);
            }
            editor
        });
        Self { editor, history }
    }

    /// The next line; `None` at the end of the input or on Ctrl-C.
    pub(super) fn read_line(&mut self) -> Result<Option<String>> {
        let failed = |source| Error::Io { what: "cannot read the input".to_owned(), source };
        let Some(editor) = &mut self.editor else {
            let mut line = String::new();
            let bytes = std::io::stdin().read_line(&mut line).map_err(failed)?;
            return Ok((bytes > 0).then_some(line));
        };
        match editor.readline("remora> ") {
            Ok(line) => {
                if is_remembered(&line) {
                    // A full history is not an error worth reporting.
                    let _ = editor.add_history_entry(&line);
                }
                Ok(Some(line))
            }
            Err(ReadlineError::Eof | ReadlineError::Interrupted) => Ok(None),
            Err(ReadlineError::Io(source)) => Err(failed(source)),
            Err(error) => Err(failed(std::io::Error::other(error))),
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        if let (Some(editor), Some(path)) = (&mut self.editor, &self.history) {
            // Failing to write the history is not an error worth reporting.
            let _ = editor.append_history(path);
        }
    }
}

/// Commands with a token are not stored.
fn is_remembered(line: &str) -> bool {
    let verb = line.split_whitespace().next().unwrap_or("");
    !verb.is_empty() && !verb.eq_ignore_ascii_case("AUTH")
}

/// The words to complete.
struct Words {
    tables: Vec<String>,
}

impl Words {
    /// The start of the word at the cursor, and its completions.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let word = line.get(start..).unwrap_or("");
        let before: Vec<&str> = line.get(..start).unwrap_or("").split_whitespace().collect();
        let starts = |name: &&str| name.to_lowercase().starts_with(&word.to_lowercase());
        let names: Vec<&str> = match before.as_slice() {
            [] => COMMANDS.to_vec(),
            [command] if WITH_TABLE.iter().any(|known| known.eq_ignore_ascii_case(command)) => {
                self.tables.iter().map(String::as_str).collect()
            }
            [command] => {
                let prefix = format!("{} ", command.to_uppercase());
                COMMANDS.iter().filter_map(|name| name.strip_prefix(prefix.as_str())).collect()
            }
            _ => CLAUSES.to_vec(),
        };
        (start, names.into_iter().filter(starts).map(|name| format!("{name} ")).collect())
    }
}

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        cursor: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, names) = self.candidates(line.get(..cursor).unwrap_or(line));
        let pair = |name: String| Pair { display: name.trim_end().to_owned(), replacement: name };
        Ok((start, names.into_iter().map(pair).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_forgotten() {
        assert!(is_remembered("COUNT t x"));
        assert!(!is_remembered("  auth secret") && !is_remembered(""));
    }

    #[test]
    fn words_are_completed() {
        let words = Words { tables: vec!["articles".to_owned(), "people".to_owned()] };
        assert_eq!(words.candidates("sea"), (0, vec!["SEARCH ".to_owned()]));
        assert_eq!(words.candidates("SEARCH art"), (7, vec!["articles ".to_owned()]));
        assert_eq!(words.candidates("SEARCH articles x LIM"), (18, vec!["LIMIT ".to_owned()]));
        assert_eq!(words.candidates("cache s"), (6, vec!["STATS ".to_owned()]));
        assert!(words.candidates("nothing").1.is_empty());
    }
}
