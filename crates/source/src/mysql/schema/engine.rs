//! The engine's definition of a source's table.

use std::collections::BTreeSet;

use remora_engine::{
    ColumnDef, ColumnType, HIDDEN_KEY, IndexColumn, Normalization, Schema, TextDef, prefix_size,
};
use remora_mysql::{Collation, LexMode};

use super::{SourceColumn, SourceTable, SourceType};
use crate::mysql::scan::Scan;

/// The most characters or bytes of a column that is indexed for filters and sorting.
const SHORT: u64 = 255;
/// The most digits of a DECIMAL, as documented by the servers.
const MAX_DIGITS: u8 = 65;
/// The most text indexes of a table. Columns beyond that share the last one.
const MAX_TEXTS: usize = 64;

impl SourceTable {
    /// The engine's definition, with columns numbered by position. Hidden columns of functional keys follow.
    pub fn to_schema(&self) -> Schema {
        schema(self, None, 0)
    }

    /// The engine's definition after a change. Columns and text indexes that `previous` has by name keep their numbers;
    /// new columns get numbers above `highest`, the highest that the table has ever used.
    pub fn to_schema_after(&self, previous: &Schema, highest: u32) -> Schema {
        schema(self, Some(previous), highest)
    }
}

/// The definition. What `previous` has by name keeps its number, and new columns get numbers above `highest`.
fn schema(table: &SourceTable, previous: Option<&Schema>, highest: u32) -> Schema {
    let mut numbers = Numbers::after(previous, highest);
    let mut columns: Vec<_> = table
        .columns
        .iter()
        .enumerate()
        .map(|(place, column)| ColumnDef {
            id: numbers.column(column, place),
            name: column.name.clone(),
            kind: column.kind.engine_type(),
            nullable: column.nullable && !table.key.contains(&place),
            // A column that has become long stays indexed, because stored segments have it.
            indexed: match column_of(previous, column) {
                Some(old) => old.indexed,
                None => column.kind.is_short() || table.key.contains(&place),
            },
            declared: table.words.of_column(&column.name),
        })
        .collect();
    let mut primary_key = table.key.clone();
    if table.is_keyless() {
        primary_key.push(columns.len());
        columns.push(hidden_key(&mut numbers, columns.len()));
    }
    let mut schema = Schema {
        texts: texts(table, previous, &mut numbers),
        required: previous.and_then(|schema| schema.required.clone()),
        synonyms: previous.map(|schema| schema.synonyms.clone()).unwrap_or_default(),
        declared: table.words.of_table(),
        ..Schema::over(table.full_name(), columns, primary_key)
    };
    let lines = table.words.of_table().map(|table| table.keys).unwrap_or_default();
    for index in lines.iter().filter_map(|line| index_columns(table, line)) {
        schema.add_index(index);
    }
    // Unused keys are reported by the tables themselves (`Schema::keys_left_out`).
    if let Err(error) = schema.complete(previous) {
        tracing::warn!(table = schema.name, "its keys over expressions are not used: {error}");
    }
    schema
}

/// The leading columns of an index in a line of `SHOW CREATE TABLE`, as far as the engine orders them as the source
/// does: texts by the number of their collation. Of a column that segments hold, whole values are indexed, and a prefix
/// length is ignored. Expressions end the list.
fn index_columns(table: &SourceTable, line: &str) -> Option<Vec<IndexColumn>> {
    let mut scan = Scan::of(line, LexMode::default())?;
    let is_primary = scan.skip("PRIMARY");
    scan.skip("UNIQUE");
    if !(scan.skip("KEY") && (is_primary || scan.name().is_some()) && scan.skip_symbol("(")) {
        return None;
    }
    let mut columns = Vec::new();
    while let Some(name) = scan.name() {
        let column = table.columns.iter().position(|column| column.name == name)?;
        let definition = table.columns.get(column)?;
        let length = scan.skip_length();
        let order = match definition.kind.engine_type() {
            ColumnType::Text => match order(definition) {
                Some(order) => order,
                None => break,
            },
            ColumnType::Json => break,
            _ if matches!(definition.kind, SourceType::Geometry | SourceType::Vector(_)) => break,
            _ => None,
        };
        let descending = scan.skip("DESC");
        let is_text = definition.kind.engine_type() == ColumnType::Text;
        let prefix = (!definition.kind.is_short()).then(|| prefix_size(length, is_text));
        columns.push(IndexColumn { column, descending, order, prefix });
        if !scan.skip_symbol(",") {
            break;
        }
    }
    Some(columns)
}

/// The order of a column's texts: `Some(None)` for bytes, `None` if it is unknown.
fn order(column: &SourceColumn) -> Option<Option<u32>> {
    use SourceType::{Char, Enum, Inet4, Inet6, Set, Text, Uuid, VarChar};
    let of_type = |collation: Collation| Some(Some(u32::from(collation.0)));
    match column.kind {
        Inet4 => return of_type(Collation::INET4),
        Inet6 => return of_type(Collation::INET6),
        Uuid => return of_type(Collation::UUID),
        _ => {}
    }
    let is_text = matches!(column.kind, Char(_) | VarChar(_) | Text(_) | Enum(_) | Set(_));
    let collation = Collation::of_source(column.collation.filter(|_| is_text)?);
    let by_bytes = [Collation::BINARY, Collation::UTF8MB4_0900_BIN];
    match by_bytes.iter().any(|other| u64::from(other.0) == collation) {
        true => Some(None),
        false => u32::try_from(collation).ok().map(Some),
    }
}

/// The hidden key of a table without a key: the hash of its row and a number among equal rows. Segments hold it only as
/// the key, because nothing filters or sorts by it.
fn hidden_key(numbers: &mut Numbers<'_>, place: usize) -> ColumnDef {
    let previous = numbers.previous.and_then(|schema| schema.columns.get(schema.hidden_key()?));
    let id = match previous {
        Some(old) => old.id,
        None => unused(&mut numbers.columns, place, numbers.previous.is_some()),
    };
    ColumnDef {
        id,
        name: HIDDEN_KEY.to_owned(),
        kind: ColumnType::Bytes,
        nullable: false,
        indexed: false,
        declared: None,
    }
}

fn texts(
    table: &SourceTable,
    previous: Option<&Schema>,
    numbers: &mut Numbers<'_>,
) -> Vec<TextDef> {
    let mut texts: Vec<TextDef> = Vec::new();
    for (place, column) in table.columns.iter().enumerate() {
        if !column.kind.is_searched() {
            continue;
        }
        let full = texts.len() == MAX_TEXTS;
        match texts.last_mut() {
            Some(last) if full => last.columns.push(place),
            _ => texts.push(TextDef {
                id: numbers.text(column, place),
                columns: vec![place],
                delimiter: None,
                normalization: normalization(column, previous),
            }),
        }
    }
    texts
}

/// The normalization of the column's own previous index, else the default.
fn normalization(column: &SourceColumn, previous: Option<&Schema>) -> Normalization {
    text_of(previous, column).map(|text| text.normalization).unwrap_or_default()
}

/// The previous definition of the column.
fn column_of<'s>(previous: Option<&'s Schema>, column: &SourceColumn) -> Option<&'s ColumnDef> {
    let named = |name: &str| previous?.columns.iter().find(|old| old.name == name);
    column.renamed_from.as_deref().and_then(named).or_else(|| named(&column.name))
}

/// The previous text index of the column.
fn text_of<'s>(previous: Option<&'s Schema>, column: &SourceColumn) -> Option<&'s TextDef> {
    let old = column_of(previous, column)?;
    let schema = previous?;
    let place = schema.columns.iter().position(|column| column.id == old.id)?;
    schema.texts.iter().find(|text| text.columns.first() == Some(&place))
}

/// Assigns numbers that are stable and never reused.
struct Numbers<'p> {
    previous: Option<&'p Schema>,
    columns: BTreeSet<u32>,
    texts: BTreeSet<u32>,
}

impl<'p> Numbers<'p> {
    fn after(previous: Option<&'p Schema>, highest: u32) -> Self {
        let columns = previous
            .map(|schema| schema.columns.iter().map(|column| column.id).chain([highest]).collect());
        let texts = previous.map(|schema| schema.texts.iter().map(|text| text.id).collect());
        Self { previous, columns: columns.unwrap_or_default(), texts: texts.unwrap_or_default() }
    }

    fn column(&mut self, column: &SourceColumn, place: usize) -> u32 {
        match column_of(self.previous, column) {
            Some(old) => old.id,
            None => unused(&mut self.columns, place, self.previous.is_some()),
        }
    }

    fn text(&mut self, column: &SourceColumn, place: usize) -> u32 {
        match text_of(self.previous, column) {
            Some(old) => old.id,
            None => unused(&mut self.texts, place, self.previous.is_some()),
        }
    }
}

/// The column's position from 1, or, after a change, a number above all used ones.
fn unused(used: &mut BTreeSet<u32>, place: usize, after: bool) -> u32 {
    let next = used.last().map_or(1, |last| last.saturating_add(1));
    let number = if after { next } else { u32::try_from(place + 1).unwrap_or(next) };
    used.insert(number);
    number
}

impl SourceType {
    /// The engine's type.
    pub fn engine_type(&self) -> ColumnType {
        match self {
            Self::Int { bits, unsigned: false } => ColumnType::Int(*bits),
            Self::Int { bits, unsigned: true } => ColumnType::Uint(*bits),
            // MySQL may declare more digits for a column made of a literal than a DECIMAL can have.
            Self::Decimal { precision, scale } => {
                ColumnType::Decimal((*precision).min(MAX_DIGITS), *scale)
            }
            Self::Float => ColumnType::Float,
            Self::Double => ColumnType::Double,
            Self::Bit(bits) => ColumnType::Uint(match bits {
                ..=8 => 8,
                9..=16 => 16,
                17..=24 => 24,
                25..=32 => 32,
                33.. => 64,
            }),
            Self::Year => ColumnType::Uint(16),
            Self::ShortYear => ColumnType::Uint(8),
            Self::Date => ColumnType::Date,
            Self::Time(_) => ColumnType::Time,
            Self::DateTime(_) => ColumnType::DateTime,
            Self::Timestamp(_) => ColumnType::Timestamp,
            Self::Char(_)
            | Self::VarChar(_)
            | Self::Text(_)
            | Self::Enum(_)
            | Self::Set(_)
            | Self::Uuid
            | Self::Inet6
            | Self::Inet4 => ColumnType::Text,
            Self::Json => ColumnType::Json,
            Self::Binary(_)
            | Self::VarBinary(_)
            | Self::Blob(_)
            | Self::Geometry
            | Self::Vector(_) => ColumnType::Bytes,
        }
    }

    /// Whether its values are short enough for filters, sorting and facets.
    fn is_short(&self) -> bool {
        match self {
            Self::Char(text) | Self::VarChar(text) | Self::Text(text) => text.length <= SHORT,
            Self::Binary(length) | Self::VarBinary(length) | Self::Blob(length) => {
                *length as u64 <= SHORT
            }
            Self::Json | Self::Geometry | Self::Vector(_) => false,
            _ => true,
        }
    }

    /// Whether it gets a text index.
    fn is_searched(&self) -> bool {
        matches!(self, Self::Char(_) | Self::VarChar(_) | Self::Text(_))
    }
}

#[cfg(test)]
mod tests {
    use remora_mysql::Charset;

    use super::{
        super::{ColumnDefault, Generation, Labels, Range, TextType, Words},
        *,
    };

    fn column(name: &str, kind: SourceType, collation: Option<u64>) -> SourceColumn {
        SourceColumn {
            name: name.to_owned(),
            ordinal: 0,
            kind,
            range: Range::default(),
            nullable: false,
            generation: Generation::None,
            default: ColumnDefault::None,
            collation,
            renamed_from: None,
        }
    }

    /// The indexes of a table with these key lines: positions of columns and numbers of collations.
    fn indexes(lines: &str) -> Vec<Vec<(usize, bool, Option<u32>)>> {
        let charset = Charset::named("utf8mb4").unwrap();
        let text = |length| TextType { charset, length };
        let labels = Labels { charset, labels: vec!["x".to_owned()] };
        let columns = vec![
            column("mail", SourceType::VarChar(text(90)), Some(255)),
            column("state", SourceType::Enum(labels), Some(255)),
            column("made", SourceType::DateTime(0), None),
            column("hash", SourceType::VarBinary(32), Some(63)),
            column("body", SourceType::Text(text(65_535)), Some(255)),
            column("code", SourceType::VarChar(text(9)), Some(309)),
            column("name", SourceType::VarChar(text(9)), Some(2304)),
            column("address", SourceType::Inet6, None),
        ];
        let statement =
            format!("CREATE TABLE `t` (\n  `mail` varchar(90),\n{lines}\n) ENGINE=InnoDB");
        let table = SourceTable {
            database: "d".to_owned(),
            name: "t".to_owned(),
            key: vec![0],
            image_columns: columns.len(),
            columns,
            unique_keys: Vec::new(),
            period_end: None,
            words: Words::of(&statement),
        };
        let part = |part: &IndexColumn| (part.column, part.descending, part.order);
        let indexes = table.to_schema().indexes;
        indexes.iter().map(|index| index.columns.iter().map(part).collect()).collect()
    }

    #[test]
    fn keys_of_a_source_become_indexes() {
        let of_mail = vec![(0, false, Some(255))];
        assert_eq!(indexes("  PRIMARY KEY (`mail`)"), vec![of_mail.clone()]);
        let lines = "  PRIMARY KEY (`mail`),\n  UNIQUE KEY `u` (`mail`(9)),\n  \
                     KEY `s` (`state`,`made` DESC),\n  KEY `h` (`hash`(4),`code`) USING BTREE,\n  \
                     KEY `b` (`body`(20),`made`),\n  KEY `x` (`made`,`body`(20)),\n  \
                     KEY `f` ((lower(`mail`))),\n  KEY `g` (`code`,(lower(`mail`))),\n  \
                     KEY `m` (`name`,`address`)";
        let expected = vec![
            of_mail,
            vec![(1, false, Some(255)), (2, true, None)],
            vec![(3, false, None), (5, false, None)],
            vec![(4, false, Some(255)), (2, false, None)],
            vec![(2, false, None), (4, false, Some(255))],
            vec![(5, false, None)],
            // MariaDB's collations and types have numbers of their own here.
            vec![(6, false, Some(4352)), (7, false, Some(4609))],
        ];
        assert_eq!(indexes(lines), expected);
    }
}
