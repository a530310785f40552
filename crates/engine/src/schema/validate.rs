//! Validates table definitions.

use std::collections::HashSet;

use super::{
    ColumnDef, ColumnType, FIRST_PATH_TEXTS, Filter, PathDef, Schema,
    prefix::{FIRST_PREFIX_COLUMN, is_prefix_size},
};
use crate::{
    Error, RequestPart, Result,
    value::{MAX_PRECISION, MAX_SCALE},
};

/// The most bytes of a table's name: enough for `database.table` in UTF-8, each of 64 characters as
/// in MySQL, with a mark in front.
const MAX_NAME_BYTES: usize = 512;
/// The most columns of a table, as in MySQL.
const MAX_COLUMNS: usize = 4_096;
/// The most parts of a key, as in MariaDB; MySQL has 16.
pub(super) const MAX_KEY_PARTS: usize = 32;
const MAX_TEXTS: usize = 64;
/// The most secondary indexes of a table, as in MySQL.
pub(super) const MAX_INDEXES: usize = 64;
const MAX_DELIMITER_BYTES: usize = 255;
/// The deepest nesting of the condition on rows; its stored form stays within the JSON reader's limit.
const MAX_FILTER_DEPTH: usize = 32;
const MAX_FILTER_PARTS: usize = 10_000;
const MAX_SYNONYM_GROUPS: usize = 65_536;
const MAX_SYNONYMS: usize = 256;
/// The most bytes of the SQL declarations of a table and its columns.
const MAX_DECLARED_BYTES: usize = 8 << 20;
/// The most columns with keywords. The field limit of a query has one bit for each of this many
/// fields.
const MAX_FIELDS: usize = 256;
const MAX_PATHS: usize = 64;
/// The most names of a path: as deep as MySQL lets documents nest.
const MAX_PATH_NAMES: usize = 100;
const MAX_PATH_BYTES: usize = 4_096;
/// The most paths that are indexed together: as many as a key has parts.
const MAX_JOINT_PATHS: usize = MAX_KEY_PARTS;

impl Schema {
    /// Checks the definition.
    ///
    /// # Errors
    /// [`Error::Request`] with [`RequestPart::Schema`] says what is wrong.
    pub fn validate(&self) -> Result<()> {
        check_name("table", &self.name)?;
        self.check_columns()?;
        self.check_primary_key()?;
        self.check_texts()?;
        self.check_words()?;
        self.check_indexes()?;
        self.check_paths()?;
        if let Some(filter) = &self.required {
            self.check_filter(filter, 1, &mut 0)?;
        }
        self.check_declared()?;
        self.check_parts()?;
        self.check_synonyms()
    }

    /// Whether rows and searches are the same under both definitions. They may differ in SQL declarations, secondary
    /// indexes and indexed paths.
    pub fn means(&self, other: &Schema) -> bool {
        let Self { name, columns, primary_key, texts, required, synonyms, words, .. } = self;
        let same_columns = columns.len() == other.columns.len()
            && columns.iter().zip(&other.columns).all(|(mine, theirs)| {
                let ColumnDef { id, name, kind, nullable, indexed, declared: _ } = mine;
                let types = *kind == theirs.kind && *nullable == theirs.nullable;
                *id == theirs.id && *name == theirs.name && types && *indexed == theirs.indexed
            });
        same_columns
            && *name == other.name
            && *primary_key == other.primary_key
            && *texts == other.texts
            && *required == other.required
            && *synonyms == other.synonyms
            && *words == other.words
            && self.parts() == other.parts()
            && self.agents() == other.agents()
            && self.agent_settings() == other.agent_settings()
            && self.documents() == other.documents()
    }

    fn check_declared(&self) -> Result<()> {
        let of_columns = self.columns.iter().filter_map(|column| column.declared.as_ref());
        let of_columns: usize = of_columns.map(String::len).sum();
        let of_table = self.declared.as_ref().map_or(0, |declared| {
            let keys: usize = declared.keys.iter().map(String::len).sum();
            let parts: usize = declared.parts.iter().map(String::len).sum();
            declared.options.len() + keys + parts
        });
        ensure(of_columns + of_table <= MAX_DECLARED_BYTES, || {
            format!("the declaration of table {:?} takes more than 8 MiB", self.name)
        })
    }

    fn check_columns(&self) -> Result<()> {
        let count = self.columns.len();
        ensure((1..=MAX_COLUMNS).contains(&count), || {
            format!("table {:?} has {count} columns: give 1 to {MAX_COLUMNS}", self.name)
        })?;
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for column in &self.columns {
            check_name("column", &column.name)?;
            check_type(column)?;
            ensure(names.insert(column.name.to_lowercase()), || {
                format!(
                    "column {:?} is there twice: names must differ by more than case",
                    column.name
                )
            })?;
            ensure(column.id < FIRST_PREFIX_COLUMN, || {
                format!(
                    "column {:?} has the number {}: it must be below 2^31",
                    column.name, column.id
                )
            })?;
            ensure(ids.insert(column.id), || {
                format!("column {:?} has the number {} of another column", column.name, column.id)
            })?;
        }
        Ok(())
    }

    fn check_primary_key(&self) -> Result<()> {
        let count = self.primary_key.len();
        ensure((1..=MAX_KEY_PARTS).contains(&count), || {
            format!(
                "the key of table {:?} has {count} columns: give 1 to {MAX_KEY_PARTS}",
                self.name
            )
        })?;
        let mut seen = HashSet::new();
        for &position in &self.primary_key {
            let column = self.column_at(position, "the primary key")?;
            let name = &column.name;
            ensure(seen.insert(position), || format!("key column {name:?} is there twice"))?;
            ensure(!column.nullable, || {
                format!("key column {name:?} allows NULL: declare it NOT NULL")
            })?;
            ensure(column.kind != ColumnType::Json, || {
                format!("key column {name:?} holds JSON, which has no order: choose another type")
            })?;
        }
        Ok(())
    }

    fn check_texts(&self) -> Result<()> {
        let count = self.texts.len();
        ensure(count <= MAX_TEXTS, || format!("{count} text indexes: the limit is {MAX_TEXTS}"))?;
        let mut ids = HashSet::new();
        for text in &self.texts {
            let id = text.id;
            ensure(ids.insert(id), || format!("two text indexes have the number {id}"))?;
            ensure(!text.columns.is_empty(), || format!("text index {id} has no column"))?;
            let delimiter = text.delimiter.as_ref().map_or(0, String::len);
            ensure(delimiter <= MAX_DELIMITER_BYTES, || {
                format!("text index {id} has a delimiter above {MAX_DELIMITER_BYTES} bytes")
            })?;
            let mut seen = HashSet::new();
            for &position in &text.columns {
                let column = self.column_at(position, "a text index")?;
                ensure(column.kind == ColumnType::Text, || {
                    format!("column {:?} is not text: a text index needs text columns", column.name)
                })?;
                ensure(seen.insert(position), || {
                    format!("text index {id} names column {:?} twice", column.name)
                })?;
            }
        }
        Ok(())
    }

    fn check_words(&self) -> Result<()> {
        let Some(words) = &self.words else { return Ok(()) };
        let fields = words.columns.len();
        ensure((1..=MAX_FIELDS).contains(&fields), || {
            format!("words are declared for {fields} columns: give 1 to {MAX_FIELDS}")
        })?;
        let mut seen = HashSet::new();
        for &position in &words.columns {
            let column = self.column_at(position, "words")?;
            let name = &column.name;
            ensure(column.kind == ColumnType::Text, || {
                format!("column {name:?} is not text: words need text columns")
            })?;
            ensure(seen.insert(position), || format!("words name column {name:?} twice"))?;
        }
        words.analyzer().map(drop)
    }

    fn check_indexes(&self) -> Result<()> {
        let count = self.indexes.len();
        ensure(count <= MAX_INDEXES, || format!("{count} indexes: the limit is {MAX_INDEXES}"))?;
        for index in &self.indexes {
            let parts = index.columns.len();
            ensure((1..=MAX_KEY_PARTS).contains(&parts), || {
                format!("an index has {parts} columns: give 1 to {MAX_KEY_PARTS}")
            })?;
            let mut seen = HashSet::new();
            for part in &index.columns {
                let column = self.column_at(part.column, "an index")?;
                let name = &column.name;
                ensure(seen.insert(part.column), || format!("an index names {name:?} twice"))?;
                match part.prefix {
                    None => ensure(column.indexed, || {
                        format!(
                            "column {name:?} is in the row store only: give its part of an index a prefix"
                        )
                    })?,
                    Some(bytes) => ensure(is_prefix_size(bytes) && !column.indexed, || {
                        format!("an index cannot have a prefix of {bytes} bytes of column {name:?}")
                    })?,
                }
                ensure(part.order.is_none() || column.kind == ColumnType::Text, || {
                    format!(
                        "column {name:?} is not text: only text can be indexed in another order"
                    )
                })?;
            }
        }
        Ok(())
    }

    fn check_paths(&self) -> Result<()> {
        let count = self.paths.len();
        ensure(count <= MAX_PATHS, || format!("{count} indexed paths: the limit is {MAX_PATHS}"))?;
        let mut seen = Vec::new();
        for path in &self.paths {
            let column = self.column_at(path.column, "a path")?;
            let name = &column.name;
            ensure(column.kind == ColumnType::Json, || {
                format!("column {name:?} is not JSON: only documents have paths")
            })?;
            let shown = path.paths().map(|names| names.join(".")).collect::<Vec<_>>().join(", ");
            let fits = path.paths().all(|names| {
                names.len() <= MAX_PATH_NAMES
                    && names.iter().map(String::len).sum::<usize>() <= MAX_PATH_BYTES
            });
            ensure(fits, || {
                format!(
                    "a path has at most {MAX_PATH_NAMES} names and {MAX_PATH_BYTES} bytes: \
                     {:.100} has more",
                    shown
                )
            })?;
            let is_new = seen.iter().all(|other: &&PathDef| !other.is_along(path));
            ensure(is_new, || format!("path {shown:?} of column {name:?} is there twice"))?;
            seen.push(path);
            self.check_joint_paths(path, &shown)?;
            ensure(!path.unique || self.required.is_none(), || {
                format!("path {shown:?} cannot be unique: some rows are not in the table's view")
            })?;
        }
        Ok(())
    }

    /// Checks paths that are indexed together, and texts at paths.
    fn check_joint_paths(&self, path: &PathDef, shown: &str) -> Result<()> {
        let count = 1 + path.further.len();
        ensure(count <= MAX_JOINT_PATHS, || {
            format!("{count} paths are indexed together: the limit is {MAX_JOINT_PATHS}")
        })?;
        let distinct: HashSet<&[String]> = path.paths().collect();
        ensure(distinct.len() == count, || format!("paths {shown:?} name one of them twice"))?;
        ensure(!path.texts || !path.unique, || {
            format!("texts at {shown:?} cannot be unique: only values can")
        })?;
        let has_room = !path.texts || self.texts.iter().all(|text| text.id < FIRST_PATH_TEXTS);
        ensure(has_room, || {
            format!(
                "paths {shown:?} cannot be searched: a text index has a number from {FIRST_PATH_TEXTS} on"
            )
        })
    }

    fn check_filter(&self, filter: &Filter, depth: usize, parts: &mut usize) -> Result<()> {
        *parts += 1;
        ensure(depth <= MAX_FILTER_DEPTH, || {
            format!("the filter of required rows nests deeper than {MAX_FILTER_DEPTH}")
        })?;
        let column = match filter {
            Filter::Compare { column, .. }
            | Filter::Between(column, ..)
            | Filter::IsNull(column)
            | Filter::IsNotNull(column) => column,
            Filter::In(column, literals) => {
                *parts = parts.saturating_add(literals.len());
                column
            }
            Filter::KeyIn(column, ..)
            | Filter::KeyWithin(column, ..)
            | Filter::Begins(column, ..)
            | Filter::Path(column, ..)
            | Filter::PathsTogether(column, ..)
            | Filter::PathTexts(column, ..)
            | Filter::PathMayHold(column, ..) => {
                return ensure(false, || {
                    format!(
                        "the filter of required rows must not test keys of texts or paths: {column:?}"
                    )
                });
            }
            Filter::Rows(_) => {
                return ensure(false, || {
                    "the filter of required rows must not list rows".to_owned()
                });
            }
            Filter::And(filters) | Filter::Or(filters) => {
                let mut filters = filters.iter();
                return filters.try_for_each(|filter| self.check_filter(filter, depth + 1, parts));
            }
            Filter::Not(filter) => return self.check_filter(filter, depth + 1, parts),
            Filter::Prefix(_) => {
                return ensure(false, || {
                    "the filter of required rows must not test prefixes".to_owned()
                });
            }
        };
        ensure(*parts <= MAX_FILTER_PARTS, || {
            format!("the filter of required rows has more than {MAX_FILTER_PARTS} parts")
        })?;
        let known = self.columns.iter().any(|known| known.name.eq_ignore_ascii_case(column));
        ensure(known, || {
            format!("the filter of required rows names a column that does not exist: {column:?}")
        })
    }

    fn check_synonyms(&self) -> Result<()> {
        let fits = |group: &Vec<String>| {
            group.len() <= MAX_SYNONYMS && group.iter().all(|word| !word.is_empty())
        };
        let count = self.synonyms.len();
        ensure(count <= MAX_SYNONYM_GROUPS && self.synonyms.iter().all(fits), || {
            format!(
                "synonyms are at most {MAX_SYNONYM_GROUPS} groups of at most {MAX_SYNONYMS} words, \
                 none of them empty"
            )
        })
    }

    fn column_at(&self, position: usize, user: &str) -> Result<&ColumnDef> {
        self.columns.get(position).ok_or_else(|| {
            let message = format!("{user} of table {:?} names column {position}", self.name);
            invalid(format!("{message}, but there are {}", self.columns.len()))
        })
    }
}

fn check_name(what: &str, name: &str) -> Result<()> {
    let fits =
        (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.ends_with(' ') && !name.contains('\0');
    ensure(fits, || {
        format!(
            "{name:?} is no {what} name: use 1 to {MAX_NAME_BYTES} bytes without a zero byte or a \
             space at the end"
        )
    })
}

fn check_type(column: &ColumnDef) -> Result<()> {
    let fits = match column.kind {
        ColumnType::Int(bits) | ColumnType::Uint(bits) => matches!(bits, 8 | 16 | 24 | 32 | 64),
        ColumnType::Decimal(precision, scale) => {
            (1..=MAX_PRECISION).contains(&precision) && scale <= MAX_SCALE.min(precision)
        }
        _ => true,
    };
    ensure(fits, || {
        format!(
            "column {:?} has the type {:?}: integers have 8, 16, 24, 32 or 64 bits, decimals up \
             to {MAX_PRECISION} digits with up to {MAX_SCALE} after the point",
            column.name, column.kind
        )
    })
}

pub(super) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(invalid(message())) }
}

fn invalid(message: String) -> Error {
    Error::request(RequestPart::Schema, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Normalization, TextDef, encode::strategies::table};

    fn valid() -> Schema {
        let mut schema = table(&[ColumnType::Int(64), ColumnType::Text, ColumnType::Json]);
        schema.primary_key = vec![0];
        schema.columns[0].nullable = false;
        let normalization = Normalization::default();
        schema.texts.push(TextDef { id: 1, columns: vec![1], delimiter: None, normalization });
        schema
    }

    fn refused(change: impl FnOnce(&mut Schema)) -> String {
        let mut schema = valid();
        schema.validate().unwrap();
        change(&mut schema);
        schema.validate().unwrap_err().to_string()
    }

    #[test]
    fn impossible_tables_are_refused_with_the_reason() {
        assert!(refused(|s| s.name.clear()).contains("no table name"));
        assert!(refused(|s| s.columns[1].name = "C0".into()).contains("\"C0\" is there twice"));
        assert!(refused(|s| s.columns[1].id = 0).contains("number 0 of another"));
        assert!(refused(|s| s.columns[0].kind = ColumnType::Int(7)).contains("Int(7)"));
        assert!(refused(|s| s.columns[1].kind = ColumnType::Decimal(66, 2)).contains("Decimal"));
        assert!(refused(|s| s.columns[2].kind = ColumnType::Decimal(3, 4)).contains("Decimal"));
        assert!(refused(|s| s.columns[0].nullable = true).contains("declare it NOT NULL"));
        assert!(refused(|s| s.primary_key.clear()).contains("has 0 columns"));
        assert!(refused(|s| s.primary_key = vec![0, 0]).contains("is there twice"));
        assert!(refused(|s| s.primary_key = vec![9]).contains("names column 9, but there are 3"));
        assert!(refused(|s| s.columns[0].kind = ColumnType::Json).contains("has no order"));
        assert!(refused(|s| s.texts[0].columns = vec![0]).contains("is not text"));
        assert!(refused(|s| s.texts[0].columns.clear()).contains("has no column"));
        assert!(refused(|s| s.texts = vec![s.texts[0].clone(); 65]).contains("limit is 64"));
        assert!(refused(|s| s.texts = vec![s.texts[0].clone(); 2]).contains("the number 1"));
        assert!(refused(|s| s.synonyms = vec![vec![String::new()]]).contains("synonyms"));
        assert!(refused(|s| s.columns.clear()).contains("has 0 columns"));
        let parts = |s: &mut Schema, count: usize| {
            let part = |id| ColumnDef { id, name: format!("k{id}"), ..s.columns[0].clone() };
            s.columns.extend((100..100 + count as u32).map(part).collect::<Vec<_>>());
            s.primary_key = (3..3 + count).collect();
        };
        assert!(refused(|s| parts(s, 33)).contains("has 33 columns: give 1 to 32"));
        assert!(refused(|s| s.name = "x".repeat(513)).contains("no table name"));
        assert!(refused(|s| s.columns[1].name = "x ".into()).contains("no column name"));
        assert!(refused(|s| s.columns[1].name = "a\0b".into()).contains("no column name"));
        let mut wide = valid();
        parts(&mut wide, 32);
        wide.columns[1].kind = ColumnType::Decimal(65, 38);
        wide.texts.clear();
        for name in [" x", "a.b", "a`b", "line\nbreak", &"海".repeat(64)] {
            wide.columns[1].name = name.to_owned();
            wide.name = format!("{name}.{name}");
            wide.validate().unwrap();
        }
    }

    #[test]
    fn required_rows_are_checked_for_names_and_depth() {
        let named = |name: &str| Filter::IsNull(name.to_owned());
        assert!(refused(|s| s.required = Some(named("missing"))).contains("\"missing\""));
        let nested =
            |depth| (1..depth).fold(named("C1"), |filter, _| Filter::Not(Box::new(filter)));
        let mut schema = valid();
        schema.required = Some(nested(MAX_FILTER_DEPTH));
        schema.validate().unwrap();
        assert!(refused(|s| s.required = Some(nested(MAX_FILTER_DEPTH + 1))).contains("deeper"));
    }
}
