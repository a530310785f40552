//! A table's definition as people write it, in TOML or JSON: read from a file or from the server's settings, and
//! printed for an inferred schema.
//!
//! ```toml
//! name = "articles"
//! primary_key = ["id"]
//! synonyms = [["car", "automobile"]]
//! indexes = [["author", "created DESC"]]      # secondary indexes, over columns that are `indexed`
//!
//! [[columns]]
//! name = "id"
//! type = "int64"          # int8 … int64, uint8 … uint64, float, double, decimal(10,2), bool,
//!                         # text, bytes, date, time, datetime, timestamp, json
//! [[columns]]
//! name = "body"
//! type = "text"
//! nullable = true         # unless it is part of the key
//! indexed = false         # held in the segments: filter, sort, facet; by default all but
//!                         # columns of a text index, bytes and JSON
//! [[texts]]
//! columns = ["body"]
//! delimiter = " "         # joins the columns to one text; without, a match lies within one
//! nfkc = true
//! width = "keep"          # or "narrow", "wide"
//! fold_case = true
//! fold_accents = false
//!
//! [words]                 # keywords for ranked search: MATCH('query')
//! columns = ["body"]      # field 0, 1 and so on
//! morphology = "stem_en"  # and all other settings, by Sphinx's names
//!
//! [[required]]            # rows for which one of these does not hold are not in the table
//! column = "status"
//! op = "="                # = != < <= > >= in between is_null is_not_null
//! value = "published"     # `values` for in and between
//! ```
//! A condition may also be `any = [conditions]`, `all = [conditions]` or `not = condition`.

mod column_type;
mod condition;
mod declared_words;
mod words;

use std::path::Path;

use remora_engine::{
    ColumnDef, ColumnType, DeclaredTable, Filter, IndexColumn, IndexDef, Normalization, Schema,
    TextDef, Width, WordsDef,
};
use serde::{Deserialize, Serialize};

pub use column_type::TypeName;
pub use condition::{Condition, Constant, Operator};
pub use declared_words::{DeclaredWords, FoundWords};
pub use words::{WordSetting, WordsFile};

use crate::{Error, Result};

/// A table's definition in the form of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchemaFile {
    /// The table's name: `table` or `database.table`.
    pub name: String,
    /// The names of the primary key's columns.
    pub primary_key: Vec<String>,
    /// Groups of synonyms for searches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub synonyms: Vec<Vec<String>>,
    /// The columns in row order.
    pub columns: Vec<ColumnFile>,
    /// The text indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextFile>,
    /// The secondary indexes, as lists of columns. `"created DESC"` sorts descending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<Vec<String>>,
    /// Ranked search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<WordsFile>,
    /// Conditions that each row of the table satisfies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Condition>,
    /// Whether SQL defined the table, so that this is only a part of its definition. A file cannot say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub defined_by_sql: bool,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnFile {
    /// Name.
    pub name: String,
    /// Type.
    #[serde(rename = "type")]
    pub kind: TypeName,
    /// Whether NULL is allowed. By default it is, except in the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nullable: Option<bool>,
    /// Whether segments hold it. By default they hold all but columns of a text index, bytes and JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indexed: Option<bool>,
}

/// A text index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Joins the columns to one text. Without it, a match lies within one column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Unicode NFKC.
    #[serde(default = "yes")]
    pub nfkc: bool,
    /// Full-width and half-width forms after NFKC.
    #[serde(default)]
    pub width: WidthName,
    /// Full case folding.
    #[serde(default = "yes")]
    pub fold_case: bool,
    /// Removes accents.
    #[serde(default)]
    pub fold_accents: bool,
    /// Accepted from settings of other servers, without effect: answers are always exact.
    #[serde(default, skip_serializing)]
    pub ngram_size: Option<u32>,
    /// Like `ngram_size`.
    #[serde(default, skip_serializing)]
    pub kanji_ngram_size: Option<u32>,
}

/// The name of a width setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WidthName {
    /// Unchanged after NFKC.
    #[default]
    Keep,
    /// Full-width to half-width.
    Narrow,
    /// Half-width to full-width.
    Wide,
}

/// The suffix of a column that is indexed in descending order.
const DESCENDING: &str = " DESC";

/// The column names of an index in a file, up to its first hidden column or prefix.
fn index_names(schema: &Schema, index: &IndexDef) -> Vec<String> {
    let shown = index
        .columns
        .iter()
        .take_while(|part| !schema.is_computed(part.column) && part.prefix.is_none());
    let name = |part: &IndexColumn| {
        let column = schema.columns.get(part.column)?;
        Some(format!("{}{}", column.name, if part.descending { DESCENDING } else { "" }))
    };
    shown.filter_map(name).collect()
}

fn yes() -> bool {
    true
}

impl SchemaFile {
    /// Reads a file: JSON if it begins with `{`, otherwise TOML.
    ///
    /// # Errors
    /// The file cannot be read, or is not a schema description.
    pub fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(&name, error))?;
        Self::parse(&text).map_err(|error| Error::format(&name, error.to_string()))
    }

    /// Parses a text: JSON if it begins with `{`, otherwise TOML.
    ///
    /// # Errors
    /// The text is not a schema description.
    pub fn parse(text: &str) -> Result<Self> {
        if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| Error::Schema(error.to_string()))
        } else {
            toml::from_str(text).map_err(|error| Error::Schema(error.to_string()))
        }
    }

    /// The description as TOML.
    ///
    /// # Errors
    /// A name cannot be represented.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| Error::Schema(error.to_string()))
    }

    /// The description of a schema, without the hidden columns of functional keys.
    pub fn from_schema(schema: &Schema) -> Self {
        let name_of = |at: &usize| schema.columns.get(*at).map(|column| column.name.clone());
        let names = |positions: &[usize]| positions.iter().filter_map(name_of).collect();
        let places = (0..schema.columns.len()).filter(|place| !schema.is_computed(*place));
        let shown = places.filter_map(|place| schema.columns.get(place));
        let indexes = schema.indexes.iter().map(|index| index_names(schema, index));
        let column = |column: &ColumnDef| ColumnFile {
            name: column.name.clone(),
            kind: TypeName(column.kind),
            nullable: Some(column.nullable),
            indexed: Some(column.indexed),
        };
        Self {
            name: schema.name.clone(),
            primary_key: names(&schema.primary_key),
            synonyms: schema.synonyms.clone(),
            columns: shown.map(column).collect(),
            texts: schema
                .texts
                .iter()
                .map(|text| TextFile::new(text, names(&text.columns)))
                .collect(),
            indexes: indexes.filter(|names| !names.is_empty()).collect(),
            words: schema.words.as_ref().map(|it| WordsFile::new(it, names(&it.columns))),
            required: schema.required.iter().flat_map(Condition::list).collect(),
            defined_by_sql: schema.declared.is_some(),
        }
    }

    /// The definition for rows of files ([`crate::files::RowParser`]), if SQL defined the table: its columns and its key.
    /// `None` for other tables.
    pub fn columns_of_sql(&self) -> Option<Schema> {
        if !self.defined_by_sql {
            return None;
        }
        let place = |name: &String| self.columns.iter().position(|column| column.name == *name);
        let primary_key: Vec<usize> = self.primary_key.iter().filter_map(place).collect();
        let columns = self.columns.iter().enumerate().map(|(position, column)| {
            column.definition(position, primary_key.contains(&position), false)
        });
        let columns = columns.collect();
        let declared = Some(DeclaredTable::default());
        Some(Schema { declared, ..Schema::over(self.name.clone(), columns, primary_key) })
    }

    /// The described schema. Columns and texts are numbered in their order.
    ///
    /// # Errors
    /// A name is unknown or given twice, there is no key, a condition lacks its value, or SQL defined the table.
    pub fn to_schema(&self) -> Result<Schema> {
        if self.defined_by_sql {
            return Err(self.error("SQL defines such tables: CREATE TABLE".to_owned()));
        }
        let primary_key = self.positions("primary_key", &self.primary_key)?;
        let mut texts = Vec::new();
        for (id, text) in (0..).zip(&self.texts) {
            let columns = self.positions("texts", &text.columns)?;
            self.refuse_other_types(&columns)?;
            texts.push(text.definition(id, columns));
        }
        let mut columns = Vec::new();
        for (position, column) in self.columns.iter().enumerate() {
            self.refuse_twice(position, &column.name)?;
            let in_text = texts.iter().any(|text| text.columns.contains(&position));
            columns.push(column.definition(position, primary_key.contains(&position), in_text));
        }
        Ok(Schema {
            name: self.name.clone(),
            columns,
            primary_key,
            texts,
            indexes: self.indexes.iter().map(|names| self.index(names)).collect::<Result<_>>()?,
            required: self.required_filter()?,
            words: self.words_definition()?,
            synonyms: self.synonyms.clone(),
            paths: Vec::new(),
            declared: None,
        })
    }

    fn words_definition(&self) -> Result<Option<WordsDef>> {
        let Some(words) = &self.words else { return Ok(None) };
        let columns = self.positions("words", &words.columns)?;
        self.refuse_other_types(&columns)?;
        words.definition(columns).map(Some)
    }

    fn index(&self, parts: &[String]) -> Result<IndexDef> {
        let part = |part: &String| {
            let (name, descending) = match part.strip_suffix(DESCENDING) {
                Some(name) if self.columns.iter().all(|column| column.name != *part) => {
                    (name, true)
                }
                _ => (part.as_str(), false),
            };
            let places = self.positions("an index", &[name.to_owned()])?;
            Ok(places.into_iter().map(move |column| IndexColumn {
                column,
                descending,
                order: None,
                prefix: None,
            }))
        };
        let columns = parts.iter().map(part).collect::<Result<Vec<_>>>()?;
        Ok(IndexDef { columns: columns.into_iter().flatten().collect() })
    }

    fn required_filter(&self) -> Result<Option<Filter>> {
        let mut filters: Vec<_> =
            self.required.iter().map(Condition::to_filter).collect::<Result<_>>()?;
        match filters.len() {
            0 | 1 => Ok(filters.pop()),
            _ => Ok(Some(Filter::And(filters))),
        }
    }

    fn positions(&self, place: &str, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Err(self.error(format!("{place} names no column")));
        }
        let position = |name: &String| {
            let same = |column: &ColumnFile| column.name.eq_ignore_ascii_case(name);
            let found = self.columns.iter().position(same);
            found.ok_or_else(|| self.error(format!("{place} names an unknown column \"{name}\"")))
        };
        names.iter().map(position).collect()
    }

    fn refuse_twice(&self, position: usize, name: &str) -> Result<()> {
        let same = |column: &ColumnFile| column.name.to_lowercase() == name.to_lowercase();
        match self.columns.iter().take(position).any(same) {
            true => Err(self.error(format!("column \"{name}\" is there twice"))),
            false => Ok(()),
        }
    }

    fn refuse_other_types(&self, positions: &[usize]) -> Result<()> {
        let columns = positions.iter().filter_map(|&at| self.columns.get(at));
        let other = columns.into_iter().find(|column| column.kind.0 != ColumnType::Text);
        match other {
            Some(column) => Err(self.error(format!(
                "column \"{}\" is {}: a text index takes columns of type text",
                column.name, column.kind
            ))),
            None => Ok(()),
        }
    }

    fn error(&self, message: String) -> Error {
        Error::Schema(format!("schema of table \"{}\": {message}", self.name))
    }
}

impl ColumnFile {
    fn definition(&self, position: usize, is_key: bool, in_text: bool) -> ColumnDef {
        let kind = self.kind.0;
        let bulky = in_text || matches!(kind, ColumnType::Bytes | ColumnType::Json);
        ColumnDef {
            id: u32::try_from(position).unwrap_or(u32::MAX),
            name: self.name.clone(),
            kind,
            nullable: self.nullable.unwrap_or(!is_key),
            indexed: self.indexed.unwrap_or(!bulky || is_key),
            declared: None,
        }
    }
}

impl TextFile {
    fn new(text: &TextDef, columns: Vec<String>) -> Self {
        let Normalization { nfkc, width, fold_case, fold_accents } = text.normalization;
        let width = match width {
            Width::Keep => WidthName::Keep,
            Width::Narrow => WidthName::Narrow,
            Width::Wide => WidthName::Wide,
        };
        let delimiter = text.delimiter.clone();
        let (ngram_size, kanji_ngram_size) = (None, None);
        Self {
            columns,
            delimiter,
            nfkc,
            width,
            fold_case,
            fold_accents,
            ngram_size,
            kanji_ngram_size,
        }
    }

    fn definition(&self, id: u32, columns: Vec<usize>) -> TextDef {
        let width = match self.width {
            WidthName::Keep => Width::Keep,
            WidthName::Narrow => Width::Narrow,
            WidthName::Wide => Width::Wide,
        };
        let (nfkc, fold_case, fold_accents) = (self.nfkc, self.fold_case, self.fold_accents);
        let normalization = Normalization { nfkc, width, fold_case, fold_accents };
        TextDef { id, columns, delimiter: self.delimiter.clone(), normalization }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
name = "articles"
primary_key = ["ID"]
synonyms = [["car", "automobile"]]
columns = [
    { name = "id", type = "uint32" },
    { name = "title", type = "text", indexed = true },
    { name = "body", type = "text" },
    { name = "price", type = "decimal(10, 2)", nullable = false },
    { name = "status", type = "text" },
]
[[texts]]
columns = ["title", "body"]
delimiter = " "
width = "narrow"
ngram_size = 2
kanji_ngram_size = 1
[[required]]
column = "status"
op = "="
value = "published"
[[required]]
any = [{ column = "price", op = "between", values = [1, 2.5] }, { column = "price", op = "is_null" }]
"#;

    #[test]
    fn a_description_survives_the_schema() {
        let schema = SchemaFile::parse(TEXT).unwrap().to_schema().unwrap();
        assert_eq!(schema.primary_key, [0]);
        assert_eq!(schema.columns[3].kind, ColumnType::Decimal(10, 2));
        let nullable: Vec<_> = schema.columns.iter().map(|column| column.nullable).collect();
        assert_eq!(nullable, [false, true, true, false, true]);
        let indexed: Vec<_> = schema.columns.iter().map(|column| column.indexed).collect();
        assert_eq!(indexed, [true, true, false, true, true]);
        assert_eq!(schema.texts[0].normalization.width, Width::Narrow);
        assert!(matches!(schema.required, Some(Filter::And(ref parts)) if parts.len() == 2));
        let shown = SchemaFile::from_schema(&schema);
        for text in [shown.to_toml().unwrap(), serde_json::to_string(&shown).unwrap()] {
            assert_eq!(SchemaFile::parse(&text).unwrap().to_schema().unwrap(), schema, "{text}");
        }
    }

    #[test]
    fn schema_files_have_no_computed_key_columns() {
        let described = SchemaFile::parse(TEXT).unwrap().to_schema().unwrap();
        let mut schema = described.clone();
        let computed = schema.columns.len();
        let mut column = schema.columns[0].clone();
        column.id = 99;
        column.name = format!("{}0.low", remora_engine::HIDDEN_PREFIX);
        schema.columns.push(column);
        let part = |column| IndexColumn { column, descending: false, order: None, prefix: None };
        let before = schema.indexes.len();
        schema.indexes.push(IndexDef { columns: vec![part(computed)] });
        schema.indexes.push(IndexDef { columns: vec![part(1), part(computed), part(2)] });
        let shown = SchemaFile::from_schema(&schema);
        assert_eq!(shown.columns.len(), computed);
        assert_eq!(shown.indexes.len(), before + 1);
        assert_eq!(shown.indexes[before], [schema.columns[1].name.clone()]);
        let text = shown.to_toml().unwrap();
        assert!(!text.contains("#key"), "{text}");
        assert_eq!(
            SchemaFile::parse(&text).unwrap().to_schema().unwrap().columns,
            described.columns
        );
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("uint32", "uint33", "unknown type \"uint33\""),
            ("[\"ID\"]", "[\"key\"]", "primary_key names an unknown column \"key\""),
            ("[\"ID\"]", "[]", "primary_key names no column"),
            ("\"body\", type", "\"Title\", type", "texts names an unknown column \"body\""),
            ("{ name = \"price\"", "{ name = \"Title\"", "column \"Title\" is there twice"),
            ("[\"title\", \"body\"]", "[\"price\"]", "is decimal(10,2)"),
            ("op = \"=\"", "op = \"like\"", "like"),
            ("value = \"published\"", "", "needs a `value`"),
            ("values = [1, 2.5]", "values = [1]", "needs two `values`"),
            ("any = [{", "all = []\nany = [{", "one of `any`, `all`, `not`"),
            ("ngram_size = 2", "ngram_sise = 2", "ngram_sise"),
        ];
        for (from, to, part) in cases {
            let text = TEXT.replacen(from, to, 1);
            let error = SchemaFile::parse(&text).and_then(|file| file.to_schema()).unwrap_err();
            assert!(error.to_string().contains(part), "{error} / {part}");
        }
    }
}
