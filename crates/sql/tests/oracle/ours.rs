//! Remora's results.

use remora_sql::{Cell, Column, Outcome, Reply, Result, Session, SqlType};

use crate::{
    Answers,
    golden::{Answer, difference, escaped, ordered, shown},
    support::Server,
};

/// A session in a database with the tables.
pub struct Ours {
    runtime: tokio::runtime::Runtime,
    session: Session,
    /// How often a query is run.
    times: usize,
    _server: Server,
}

impl Ours {
    pub fn new(setup: &[String]) -> Self {
        Self::of(Server::new(), TIMES, setup)
    }

    /// One whose statements are all planned by way of an optimizer.
    pub fn optimizing(setup: &[String]) -> Self {
        Self::of(Server::optimizing(), 1, setup)
    }

    fn of(server: Server, times: usize, setup: &[String]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut ours = Self { runtime, session: server.session(), times, _server: server };
        for statement in ["SET NAMES utf8mb4", "SET time_zone = '+00:00'"] {
            ours.answer(statement);
        }
        for statement in setup {
            if let Answer::Error(code, message) = ours.answer(statement) {
                panic!("{code} {message}: {statement}");
            }
        }
        ours
    }
}

/// Functions and variables whose values differ each time.
const OF_THE_MOMENT: [&str; 12] = [
    "RAND",
    "UUID",
    "SLEEP",
    "NOW",
    "SYSDATE",
    "CUR",
    "UTC_",
    "LOCALTIME",
    "@",
    "FOUND_ROWS",
    "LOCK",
    "UNIX_TIMESTAMP",
];
/// How often a query is run: the first run plans it, the second caches a plan for its shape, and the third uses that
/// plan.
const TIMES: usize = 3;

impl Ours {
    /// The result and the number of warnings.
    fn answer_once(&mut self, statement: &str) -> (Answer, usize) {
        let mut kept = Kept::default();
        let query = self.session.query(statement.as_bytes(), false, &mut kept);
        let answer = match self.runtime.block_on(query) {
            Ok(()) => {
                let columns = kept.columns.iter().map(|each| (escaped(&each.name), kind(each)));
                Answer::Rows { columns: columns.collect(), rows: ordered(statement, kept.rows) }
            }
            Err(error) => Answer::Error(error.code.number(), escaped(&error.message)),
        };
        (answer, kept.warnings)
    }
}

impl Answers for Ours {
    fn answer(&mut self, statement: &str) -> Answer {
        let (answer, warnings) = self.answer_once(statement);
        let said = statement.trim_start().to_uppercase();
        if !said.starts_with("SELECT") || OF_THE_MOMENT.iter().any(|word| said.contains(word)) {
            return answer;
        }
        for _ in 1..self.times {
            let (again, warnings_again) = self.answer_once(statement);
            let what = difference(&answer, &again);
            let warned = warnings != warnings_again;
            let what = what.or(warned.then(|| format!("{warnings} warnings, {warnings_again}")));
            if let Some(what) = what {
                return Answer::Error(0, format!("asked again it is another: {what}"));
            }
        }
        answer
    }
}

#[derive(Default)]
struct Kept {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    warnings: usize,
}

impl Reply for Kept {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        let values = cells.iter().zip(&self.columns).map(|(cell, column)| text(cell, column));
        self.rows.push(values.collect());
        Ok(())
    }

    fn done(&mut self, outcome: &Outcome, _more: bool) -> Result<()> {
        self.warnings = usize::from(outcome.warnings);
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}

fn text(cell: &Cell<'_>, column: &Column) -> String {
    let digits = match column.kind {
        SqlType::Time(digits) | SqlType::DateTime(digits) | SqlType::Timestamp(digits) => digits,
        _ => 0,
    };
    match cell {
        Cell::Null => "\\N".to_owned(),
        Cell::Int(number) if column.kind == SqlType::Year => format!("{number:04}"),
        Cell::Uint(number) if column.kind == SqlType::Year => format!("{number:04}"),
        Cell::Int(number) => number.to_string(),
        Cell::Uint(number) => number.to_string(),
        Cell::Float(number) => number.to_string(),
        Cell::Double(number) => number.to_string(),
        Cell::Decimal(number) => number.to_string(),
        Cell::Text(text) => escaped(text),
        Cell::Bytes(bytes) => shown(bytes),
        Cell::Date(date) => format!("{:04}-{:02}-{:02}", date.year, date.month, date.day),
        Cell::Time(micros) => {
            let sign = if *micros < 0 { "-" } else { "" };
            format!("{sign}{}", clock(micros.unsigned_abs(), digits))
        }
        Cell::DateTime(moment) => {
            let date = moment.date;
            let clock = clock(moment.micros, digits);
            format!("{:04}-{:02}-{:02} {clock}", date.year, date.month, date.day)
        }
    }
}

fn clock(micros: u64, digits: u8) -> String {
    let seconds = micros / 1_000_000;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let fraction = format!("{:06}", micros % 1_000_000);
    let fraction = match digits {
        0 => String::new(),
        digits => format!(".{}", &fraction[..usize::from(digits)]),
    };
    format!("{hours:02}:{minutes:02}:{:02}{fraction}", seconds % 60)
}

fn kind(column: &Column) -> String {
    let binary = column.collation == 63;
    let sign = if column.unsigned { " unsigned" } else { "" };
    let chosen = |of_bytes: &str, of_text: &str| {
        if binary { of_bytes.to_owned() } else { of_text.to_owned() }
    };
    match column.kind {
        SqlType::Null => "null".to_owned(),
        SqlType::TinyInt => format!("tinyint{sign}"),
        SqlType::SmallInt => format!("smallint{sign}"),
        SqlType::MediumInt => format!("mediumint{sign}"),
        SqlType::Int => format!("int{sign}"),
        SqlType::BigInt => format!("bigint{sign}"),
        SqlType::Float => "float".to_owned(),
        SqlType::Double => "double".to_owned(),
        SqlType::Decimal(_, scale) => format!("decimal({scale})"),
        SqlType::Bit(_) => "bit".to_owned(),
        SqlType::Year => "year".to_owned(),
        SqlType::Date => "date".to_owned(),
        SqlType::Time(digits) => format!("time({digits})"),
        SqlType::DateTime(digits) => format!("datetime({digits})"),
        SqlType::Timestamp(digits) => format!("timestamp({digits})"),
        SqlType::Char => chosen("binary", "char"),
        SqlType::VarChar => chosen("varbinary", "varchar"),
        SqlType::Enum => "enum".to_owned(),
        SqlType::Set => "set".to_owned(),
        SqlType::Json => "json".to_owned(),
        _ => chosen("blob", "text"),
    }
}
