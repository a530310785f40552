//! Golden scripts: requests and what is answered, as text files.
//!
//! ```text
//! script  = { setting } { step }
//! setting = "#! " words NEWLINE                  ; for whoever runs it
//! step    = { "# " comment NEWLINE | NEWLINE } "> " request NEWLINE { answer NEWLINE } NEWLINE
//! ```
//!
//! A request is sent with CRLF behind it. Bytes that a reader would not see are shown by one
//! character: CRLF `⏎`, CR `␍`, LF `␊`, TAB `␉`, NUL `␀`, any other control character or byte that
//! is not UTF-8 as `⟦hex⟧`. A `⏎` in an answer also ends the script's line.
//!
//! With `REMORA_REWRITE=1` in the environment the answers are written into the scripts instead of
//! compared with them.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panics")]

pub mod print;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// One file.
pub struct Script {
    /// Its path.
    pub path: PathBuf,
    /// The texts after each `#!`.
    pub settings: Vec<String>,
    /// The lines up to the first request.
    head: String,
    steps: Vec<Step>,
}

struct Step {
    request: String,
    answer: String,
    /// Comments and blank lines up to the next request.
    tail: String,
}

impl Script {
    /// Parses a script; panics if its format is invalid.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let mut script = Self {
            path: path.into(),
            settings: Vec::new(),
            head: String::new(),
            steps: Vec::new(),
        };
        for line in text.lines() {
            script.add(line);
        }
        script
    }

    fn add(&mut self, line: &str) {
        if let Some(request) = line.strip_prefix("> ") {
            let (request, answer, tail) = (request.to_owned(), String::new(), String::new());
            self.steps.push(Step { request, answer, tail });
            return;
        }
        let part = match self.steps.last_mut() {
            None => {
                self.settings.extend(line.strip_prefix("#! ").map(str::to_owned));
                &mut self.head
            }
            Some(step) if step.tail.is_empty() && !line.is_empty() => &mut step.answer,
            Some(step) => &mut step.tail,
        };
        part.push_str(line);
        part.push('\n');
    }

    /// Sends every request without its CRLF, and compares or rewrites the answers.
    pub fn run(mut self, mut ask: impl FnMut(&[u8]) -> Vec<u8>) {
        let rewrites = std::env::var("REMORA_REWRITE").is_ok_and(|value| value == "1");
        for step in &mut self.steps {
            let mut answer = visible(&ask(&bytes(&step.request)));
            if !answer.ends_with('\n') {
                answer.push('\n');
            }
            if rewrites {
                step.answer = answer;
                continue;
            }
            let place = format!("{}: > {}", self.path.display(), step.request);
            assert_eq!(step.answer, answer, "\n{place}\nREMORA_REWRITE=1 takes the answer over");
        }
        if rewrites {
            fs::write(&self.path, self.text()).unwrap();
        }
    }

    fn text(&self) -> String {
        let mut text = self.head.clone();
        for step in &self.steps {
            let tail = if step.tail.is_empty() { "\n" } else { &step.tail };
            text.push_str(&format!("> {}\n{}{tail}", step.request, step.answer));
        }
        text.truncate(text.trim_end().len());
        text + "\n"
    }
}

/// The scripts of a folder under `tests/scripts` of the workspace, by name.
pub fn scripts(area: &str) -> Vec<Script> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scripts").join(area);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "no scripts in {folder:?}");
    paths.iter().filter(|path| path.is_file()).map(|path| Script::read(path)).collect()
}

/// The bytes that a text in a script represents.
pub fn bytes(shown: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = shown;
    while let Some(char) = rest.chars().next() {
        rest = &rest[char.len_utf8()..];
        match char {
            '⏎' => bytes.extend_from_slice(b"\r\n"),
            '␍' => bytes.push(b'\r'),
            '␊' => bytes.push(b'\n'),
            '␉' => bytes.push(b'\t'),
            '␀' => bytes.push(0),
            '⟦' => {
                let (hex, after) = rest.split_once('⟧').expect("⟦ needs its ⟧");
                bytes.push(u8::from_str_radix(hex, 16).expect("two hexadecimal digits"));
                rest = after;
            }
            char => bytes.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// Bytes in the notation of scripts.
pub fn visible(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        shown.extend(chunk.valid().replace("\r\n", "⏎").chars().map(visible_char));
        shown.extend(chunk.invalid().iter().map(|byte| format!("⟦{byte:02x}⟧")));
    }
    shown
}

fn visible_char(char: char) -> String {
    match char {
        '⏎' => "⏎\n".to_owned(),
        '\r' => "␍".to_owned(),
        '\n' => "␊".to_owned(),
        '\t' => "␉".to_owned(),
        '\0' => "␀".to_owned(),
        char if char.is_ascii_control() => format!("⟦{:02x}⟧", char as u32),
        char => char.to_string(),
    }
}
