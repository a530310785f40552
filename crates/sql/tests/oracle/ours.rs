//! What Remora answers.

use remora_sql::{Cell, Column, Outcome, Reply, Result, Session, SqlType};

use crate::{
    Answers,
    golden::{Answer, escaped, ordered, shown},
    support::Server,
};

/// A session on a database with the tables.
pub struct Ours {
    runtime: tokio::runtime::Runtime,
    session: Session,
    _server: Server,
}

impl Ours {
    pub fn new(setup: &[String]) -> Self {
        Self::of(Server::new(), setup)
    }

    /// One whose statements are all planned by way of an optimizer.
    pub fn optimizing(setup: &[String]) -> Self {
        Self::of(Server::optimizing(), setup)
    }

    fn of(server: Server, setup: &[String]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let mut ours = Self { runtime, session: server.session(), _server: server };
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

impl Answers for Ours {
    fn answer(&mut self, statement: &str) -> Answer {
        let mut kept = Kept::default();
        let query = self.session.query(statement.as_bytes(), false, &mut kept);
        match self.runtime.block_on(query) {
            Ok(()) => {
                let columns = kept.columns.iter().map(|each| (escaped(&each.name), kind(each)));
                Answer::Rows { columns: columns.collect(), rows: ordered(statement, kept.rows) }
            }
            Err(error) => Answer::Error(error.code.number(), escaped(&error.message)),
        }
    }
}

#[derive(Default)]
struct Kept {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
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

    fn done(&mut self, _outcome: &Outcome, _more: bool) -> Result<()> {
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
