//! What a table at the source looks like at this moment, read from its `information_schema`.

use mysql::{Conn, Result, prelude::Queryable};

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    /// `int`, `varchar`, …
    pub data_type: String,
    /// `int(10) unsigned`, `enum('a','b')`, …
    pub declared: String,
    pub charset: Option<String>,
    pub collation: Option<String>,
    pub nullable: bool,
    pub generated: bool,
    /// Characters of a text, bytes of a binary.
    pub length: Option<u64>,
}

impl Column {
    pub fn is_text(&self) -> bool {
        self.charset.is_some() && !matches!(&*self.data_type, "enum" | "set" | "json")
    }

    pub fn is_unsigned(&self) -> bool {
        self.declared.contains("unsigned")
    }

    /// The labels of an ENUM or a SET.
    pub fn labels(&self) -> Vec<String> {
        let (Some(open), Some(close)) = (self.declared.find('('), self.declared.rfind(')')) else {
            return Vec::new();
        };
        let inside = self.declared[open + 1..close].trim_matches('\'');
        inside.split("','").map(|label| label.replace("''", "'")).collect()
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Shape {
    pub name: String,
    pub columns: Vec<Column>,
    /// The primary key's columns, or the unique key's that serves as one.
    pub key: Vec<String>,
}

impl Shape {
    pub fn column(&self, name: &str) -> &Column {
        self.columns.iter().find(|column| column.name == name).unwrap()
    }

    pub fn is_key(&self, column: &Column) -> bool {
        self.key.contains(&column.name)
    }
}

/// The base tables of a database by name.
pub fn table_names(connection: &mut Conn, database: &str) -> Result<Vec<String>> {
    let sql = "SELECT table_name FROM information_schema.tables
               WHERE table_schema = ? AND table_type = 'BASE TABLE' ORDER BY table_name";
    connection.exec(sql, (database,))
}

/// One table.
pub fn read(connection: &mut Conn, database: &str, table: &str) -> Result<Shape> {
    type Text = Option<String>;
    type Fields = (String, String, String, Text, String, Option<u64>, String, Text);

    let fields: Vec<Fields> = connection.exec(
        "SELECT column_name, data_type, column_type, character_set_name, is_nullable,
                    character_maximum_length, extra, collation_name
             FROM information_schema.columns
             WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
        (database, table),
    )?;
    let columns: Vec<Column> = fields
        .into_iter()
        .map(|(name, data_type, declared, charset, nullable, length, extra, collation)| Column {
            name,
            data_type: data_type.to_lowercase(),
            declared: declared.to_lowercase_outside_quotes(),
            charset,
            collation,
            nullable: nullable == "YES",
            generated: ["GENERATED", "VIRTUAL", "STORED", "PERSISTENT"]
                .iter()
                .any(|word| extra.to_uppercase().contains(word))
                && !extra.to_uppercase().contains("DEFAULT_GENERATED"),
            length,
        })
        .collect();
    let key = read_key(connection, database, table, &columns)?;
    Ok(Shape { name: table.to_owned(), columns, key })
}

fn read_key(
    connection: &mut Conn,
    database: &str,
    table: &str,
    columns: &[Column],
) -> Result<Vec<String>> {
    let parts: Vec<(String, String, Option<u64>)> = connection.exec(
        "SELECT index_name, COALESCE(column_name, ''), sub_part FROM information_schema.statistics
             WHERE table_schema = ? AND table_name = ? AND non_unique = 0
             ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index",
        (database, table),
    )?;
    let mut names: Vec<&str> = parts.iter().map(|(index, ..)| &**index).collect();
    names.dedup();
    for name in names {
        let mut of_index = parts.iter().filter(|(index, ..)| index == name);
        let serves = |column: &str, prefix: &Option<u64>| {
            prefix.is_none() && columns.iter().any(|c| c.name == column && !c.nullable)
        };
        if of_index.clone().all(|(_, column, prefix)| serves(column, prefix)) {
            return Ok(of_index.by_ref().map(|(_, column, _)| column.clone()).collect());
        }
    }
    Ok(Vec::new())
}

trait OutsideQuotes {
    fn to_lowercase_outside_quotes(&self) -> String;
}

impl OutsideQuotes for String {
    /// Keywords in lower case, labels as they are.
    fn to_lowercase_outside_quotes(&self) -> String {
        let mut quoted = false;
        self.chars()
            .map(|c| {
                quoted ^= c == '\'';
                if quoted { c } else { c.to_ascii_lowercase() }
            })
            .collect()
    }
}
