//! A real MySQL server's results.

use mysql::{
    Column, Conn, Value,
    consts::{ColumnFlags, ColumnType},
    prelude::Queryable,
};
use remora_peers::Server;

use crate::{
    Answers,
    golden::{Answer, escaped, ordered, shown},
};

/// A connection to a server with the tables.
pub struct Theirs {
    connection: Conn,
}

impl Theirs {
    pub fn new(server: &Server, setup: &[String]) -> Self {
        let mut connection = server.connect().unwrap();
        for statement in
            ["CREATE DATABASE test", "USE test", "SET NAMES utf8mb4", "SET time_zone = '+00:00'"]
        {
            connection.query_drop(statement).unwrap();
        }
        for statement in setup {
            connection.query_drop(statement).unwrap();
        }
        Self { connection }
    }

    fn rows(&mut self, statement: &str) -> mysql::Result<Answer> {
        let mut result = self.connection.query_iter(statement)?;
        let described = result.columns();
        let columns = described.as_ref().iter().map(described_as).collect();
        let mut rows = Vec::new();
        for row in result.by_ref() {
            rows.push(row?.unwrap().into_iter().map(text).collect());
        }
        Ok(Answer::Rows { columns, rows: ordered(statement, rows) })
    }
}

impl Answers for Theirs {
    fn answer(&mut self, statement: &str) -> Answer {
        match self.rows(statement) {
            Ok(answer) => answer,
            Err(mysql::Error::MySqlError(error)) => {
                Answer::Error(error.code, escaped(&error.message))
            }
            Err(error) => panic!("{statement}: {error}"),
        }
    }
}

fn text(value: Value) -> String {
    match value {
        Value::NULL => "\\N".to_owned(),
        Value::Bytes(bytes) => shown(&bytes),
        other => other.as_sql(true),
    }
}

fn described_as(column: &Column) -> (String, String) {
    (escaped(&column.name_str()), kind(column))
}

fn kind(column: &Column) -> String {
    let flags = column.flags();
    let binary = column.character_set() == 63;
    let sign = if flags.contains(ColumnFlags::UNSIGNED_FLAG) { " unsigned" } else { "" };
    let digits = column.decimals();
    let chosen = |of_bytes: &str, of_text: &str| {
        if binary { of_bytes.to_owned() } else { of_text.to_owned() }
    };
    if flags.contains(ColumnFlags::ENUM_FLAG) {
        return "enum".to_owned();
    }
    if flags.contains(ColumnFlags::SET_FLAG) {
        return "set".to_owned();
    }
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY => format!("tinyint{sign}"),
        ColumnType::MYSQL_TYPE_SHORT => format!("smallint{sign}"),
        ColumnType::MYSQL_TYPE_INT24 => format!("mediumint{sign}"),
        ColumnType::MYSQL_TYPE_LONG => format!("int{sign}"),
        ColumnType::MYSQL_TYPE_LONGLONG => format!("bigint{sign}"),
        ColumnType::MYSQL_TYPE_NEWDECIMAL => format!("decimal({digits})"),
        ColumnType::MYSQL_TYPE_FLOAT => "float".to_owned(),
        ColumnType::MYSQL_TYPE_DOUBLE => "double".to_owned(),
        ColumnType::MYSQL_TYPE_NULL => "null".to_owned(),
        ColumnType::MYSQL_TYPE_DATE => "date".to_owned(),
        ColumnType::MYSQL_TYPE_TIME => format!("time({digits})"),
        ColumnType::MYSQL_TYPE_DATETIME => format!("datetime({digits})"),
        ColumnType::MYSQL_TYPE_TIMESTAMP => format!("timestamp({digits})"),
        ColumnType::MYSQL_TYPE_YEAR => "year".to_owned(),
        ColumnType::MYSQL_TYPE_BIT => "bit".to_owned(),
        ColumnType::MYSQL_TYPE_JSON => "json".to_owned(),
        ColumnType::MYSQL_TYPE_VAR_STRING => chosen("varbinary", "varchar"),
        ColumnType::MYSQL_TYPE_STRING => chosen("binary", "char"),
        _ => chosen("blob", "text"),
    }
}
