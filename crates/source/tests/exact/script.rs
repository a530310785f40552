//! Files of statements, as people write them.
//!
//! ```text
//! // A comment.
//! @server --lower-case-table-names=1     options of the server that runs this file (at its top)
//! @case what is tried                    a new database `shop`, and new sessions
//! @on mysql mariadb118                   servers this case is for; none: all
//! SET sql_mode = 'ANSI'                  a statement: a line that begins at its margin,
//! CREATE TABLE t (id INT                 and the lines after it that begin with a space
//!   PRIMARY KEY)
//! @session b latin1                      another connection, maybe with a client's character set
//! @quiet                                 what follows is not compared after each statement,
//! @compare                               because the tables are locked until here
//! @behind                                nothing is applied until the next `@compare`: what follows
//!                                        is closed, or with the word `stalled` waits
//! @restart                               what follows the server is closed and opened
//! @wait 1.5                              seconds
//! @told t no primary key                 from here on this table may be called stopped or refused,
//!                                        with these words, instead of being equal
//! @soon                                  the next comparison may take a few seconds to come right
//! ```
//! `$FILES` in a statement is a directory that the server reads and writes.

use remora_peers::Kind;

/// A file of cases.
#[derive(Clone, Debug)]
pub struct Script {
    pub name: String,
    pub server_options: Vec<String>,
    pub cases: Vec<Case>,
}

/// Statements over one database.
#[derive(Clone, Debug, Default)]
pub struct Case {
    pub name: String,
    on: Vec<String>,
    pub steps: Vec<Step>,
}

/// What is done, in turn.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Statement(String),
    Session { name: String, client: Option<String> },
    Quiet,
    Compare,
    Restart,
    Behind { stalled: bool },
    Wait(f64),
    Told { table: String, words: String },
    Soon,
}

impl Case {
    /// Whether it is for this server.
    pub fn is_for(&self, kind: Kind) -> bool {
        let family = if kind.is_mariadb() { "mariadb" } else { "mysql" };
        self.on.is_empty() || self.on.iter().any(|name| name == family || name == kind.name())
    }

    /// How many statements it has.
    pub fn statements(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Statement(_))).count()
    }
}

impl Script {
    /// Reads a file; panics at what is wrong in it.
    pub fn parse(name: &str, text: &str) -> Self {
        let (name, server_options) = (name.to_owned(), Vec::new());
        let mut script = Self { name, server_options, cases: Vec::new() };
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", script.name, number + 1);
            if line.trim().is_empty() || line.starts_with("//") {
                continue;
            }
            match line.strip_prefix('@') {
                Some(directive) => script.directive(directive, &place),
                None => script.statement(line, &place),
            }
        }
        script
    }

    fn statement(&mut self, line: &str, place: &str) {
        let case = self.cases.last_mut().unwrap_or_else(|| panic!("{place}: no @case"));
        match case.steps.last_mut() {
            Some(Step::Statement(statement)) if line.starts_with(' ') => {
                statement.push('\n');
                statement.push_str(line);
            }
            _ => case.steps.push(Step::Statement(line.to_owned())),
        }
    }

    fn directive(&mut self, directive: &str, place: &str) {
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let rest = rest.trim();
        let words = || rest.split_whitespace().map(str::to_owned);
        let step = match word {
            "server" => return self.server_options.extend(words()),
            "case" => {
                return self.cases.push(Case { name: rest.to_owned(), ..Case::default() });
            }
            "on" => {
                let case = self.cases.last_mut().unwrap_or_else(|| panic!("{place}: no @case"));
                return case.on.extend(words());
            }
            "session" => {
                let name = words().next().unwrap_or_else(|| panic!("{place}: no name"));
                Step::Session { name, client: words().nth(1) }
            }
            "quiet" => Step::Quiet,
            "compare" => Step::Compare,
            "restart" => Step::Restart,
            "behind" => Step::Behind { stalled: rest == "stalled" },
            "soon" => Step::Soon,
            "wait" => Step::Wait(rest.parse().unwrap_or_else(|_| panic!("{place}: seconds"))),
            "told" => {
                let (table, words) = rest.split_once(' ').unwrap_or((rest, ""));
                Step::Told { table: table.to_owned(), words: words.to_owned() }
            }
            _ => panic!("{place}: @{word} is not known"),
        };
        let case = self.cases.last_mut().unwrap_or_else(|| panic!("{place}: no @case"));
        case.steps.push(step);
    }
}

/// The bytes that a client of this character set sends for a text.
pub fn encoded(text: &str, client: Option<&str>) -> Vec<u8> {
    let encoding = match client {
        None | Some("utf8" | "utf8mb3" | "utf8mb4" | "binary") => return text.as_bytes().to_vec(),
        Some("latin1") => encoding_rs::WINDOWS_1252,
        Some("latin2") => encoding_rs::ISO_8859_2,
        Some("cp1251") => encoding_rs::WINDOWS_1251,
        Some("koi8r") => encoding_rs::KOI8_R,
        Some("gbk") => encoding_rs::GBK,
        Some("sjis" | "cp932") => encoding_rs::SHIFT_JIS,
        Some("ujis" | "eucjpms") => encoding_rs::EUC_JP,
        Some("euckr") => encoding_rs::EUC_KR,
        Some("big5") => encoding_rs::BIG5,
        Some(other) => panic!("the tests know no encoding for {other}"),
    };
    let (bytes, _, failed) = encoding.encode(text);
    assert!(!failed, "{text} cannot be written in {client:?}");
    bytes.into_owned()
}
