//! A table as a MygramDB file describes it.

use std::path::Path;

use remora_engine::{ColumnType, Comparison, Filter, Literal, Schema};
use remora_source::schema_file::{ColumnFile, SchemaFile, TextFile, TypeName};

use super::sections::{
    NormalizeSection, RequiredSection, SynonymsSection, TableSection, TextSourceSection,
};
use crate::settings::synonyms;

/// MygramDB's filter types.
const FILTER_TYPES: [(&str, ColumnType); 20] = [
    ("tinyint", ColumnType::Int(8)),
    ("tinyint_unsigned", ColumnType::Uint(8)),
    ("smallint", ColumnType::Int(16)),
    ("smallint_unsigned", ColumnType::Uint(16)),
    ("mediumint", ColumnType::Int(24)),
    ("mediumint_unsigned", ColumnType::Uint(24)),
    ("int", ColumnType::Int(32)),
    ("int_unsigned", ColumnType::Uint(32)),
    ("bigint", ColumnType::Int(64)),
    ("bigint_unsigned", ColumnType::Uint(64)),
    ("float", ColumnType::Float),
    ("double", ColumnType::Double),
    ("string", ColumnType::Text),
    ("varchar", ColumnType::Text),
    ("text", ColumnType::Text),
    ("datetime", ColumnType::DateTime),
    ("date", ColumnType::Date),
    ("timestamp", ColumnType::Timestamp),
    ("time", ColumnType::Time),
    ("boolean", ColumnType::Bool),
];

impl TableSection {
    /// The table. The file does not give the type of the primary key; until MySQL is asked it is BIGINT, as in almost
    /// every table.
    pub(super) fn schema(
        &self,
        database: &str,
        normalize: &NormalizeSection,
        folder: &Path,
    ) -> Result<Schema, String> {
        self.read_schema(database, normalize, folder)
            .map_err(|error| format!("table '{}': {error}", self.name))
    }

    fn read_schema(
        &self,
        database: &str,
        normalize: &NormalizeSection,
        folder: &Path,
    ) -> Result<Schema, String> {
        let name = match self.database.as_deref().unwrap_or(database) {
            "" => self.name.clone(),
            database => format!("{database}.{}", self.name),
        };
        let text = self.text_source.definition(normalize)?;
        let file = SchemaFile {
            words: None,
            name,
            primary_key: vec![self.primary_key.clone()],
            synonyms: self.synonym_groups(folder)?,
            columns: self.columns(&text.columns)?,
            texts: vec![text],
            indexes: Vec::new(),
            required: Vec::new(),
            defined_by_sql: false,
        };
        let mut schema = file.to_schema().map_err(|error| error.to_string())?;
        schema.required = self.required()?;
        Ok(schema)
    }

    fn columns(&self, texts: &[String]) -> Result<Vec<ColumnFile>, String> {
        let mut columns = vec![column(&self.primary_key, ColumnType::Int(64), true)];
        for filter in &self.filters {
            let filter = column(&filter.name, filter_type(&filter.kind)?, true);
            match columns.first_mut() {
                // A filter on the key gives its type.
                Some(key) if key.name == filter.name => *key = filter,
                _ => columns.push(filter),
            }
        }
        for filter in &self.required_filters {
            if !columns.iter().any(|column| column.name == filter.name) {
                columns.push(column(&filter.name, filter_type(&filter.kind)?, true));
            }
        }
        for name in texts {
            if !columns.iter().any(|column| column.name == *name) {
                columns.push(column(name, ColumnType::Text, false));
            }
        }
        Ok(columns)
    }

    fn required(&self) -> Result<Option<Filter>, String> {
        let filters = self.required_filters.iter().map(RequiredSection::filter);
        let mut filters: Vec<Filter> = filters.collect::<Result<_, _>>()?;
        Ok(if filters.len() > 1 { Some(Filter::And(filters)) } else { filters.pop() })
    }

    fn synonym_groups(&self, folder: &Path) -> Result<Vec<Vec<String>>, String> {
        match &self.synonyms {
            SynonymsSection { enable: true, file } => synonyms::read(&folder.join(file)),
            _ => Ok(Vec::new()),
        }
    }
}

fn column(name: &str, kind: ColumnType, indexed: bool) -> ColumnFile {
    let kind = TypeName(kind);
    ColumnFile { name: name.to_owned(), kind, nullable: None, indexed: Some(indexed) }
}

fn filter_type(name: &str) -> Result<ColumnType, String> {
    let found = FILTER_TYPES.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let known: Vec<&str> = FILTER_TYPES.iter().map(|(known, _)| *known).collect();
        format!("'{name}' is no filter type; known are {}", known.join(", "))
    })
}

impl TextSourceSection {
    fn definition(&self, normalize: &NormalizeSection) -> Result<TextFile, String> {
        let (columns, delimiter) = match (&self.column, &self.concat) {
            (Some(column), None) => (vec![column.clone()], None),
            (None, Some(columns)) if columns.len() >= 2 => {
                (columns.clone(), Some(self.delimiter.clone()))
            }
            _ => {
                return Err("text_source has either 'column' or a 'concat' of two or more columns"
                    .to_owned());
            }
        };
        Ok(TextFile {
            columns,
            delimiter,
            nfkc: normalize.nfkc,
            width: normalize.width()?,
            fold_case: normalize.lower,
            fold_accents: false,
            ngram_size: None,
            kanji_ngram_size: None,
        })
    }
}

impl RequiredSection {
    fn filter(&self) -> Result<Filter, String> {
        let column = self.name.clone();
        let comparison = match self.op.to_uppercase().as_str() {
            "IS NULL" => return Ok(Filter::IsNull(column)),
            "IS NOT NULL" => return Ok(Filter::IsNotNull(column)),
            "=" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            other => {
                return Err(format!(
                    "required filter on '{column}': '{other}' is no operator; write one of = != > \
                     >= < <=, IS NULL, IS NOT NULL"
                ));
            }
        };
        let value = match &self.value {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return Err(format!("required filter on '{column}' lacks a value")),
        };
        Ok(Filter::Compare { column, comparison, literal: Literal::Text(value) })
    }
}
