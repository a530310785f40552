//! Keys of followed tables that are over expressions, by what the source declares. What an expression gives is a hidden
//! column behind the row's own, as in local tables, that is computed when rows come; members of arrays are a path's
//! values. A key over an expression that is not known to mean the same to every session is declared and answers nothing.

use std::sync::{Arc, LazyLock, Weak};

use parking_lot::RwLock;
use remora_engine::{
    ColumnDef, ColumnType, ComputeRow, Computing, HIDDEN_PREFIX, IndexColumn, Row, Schema, Value,
};
use rustc_hash::FxHashMap;

use super::{
    build::{index_column, is_short},
    key_columns::{path_of, spec},
};
use crate::{
    Column,
    catalog::{Key, KeyKind, PartOf, SqlTable, TypeSpec, fixed_expression, key_column},
    meaning::{Formula, expr_type},
    output,
    write::convert::{Converter, Slot},
};

/// Most columns of a table here.
const MAX_COLUMNS: usize = 4_096;
/// Most paths of a table here.
const MAX_PATHS: usize = 64;

/// What the engine is told.
pub(crate) const COMPUTING: Computing = Computing { complete, computation };

fn complete(schema: &mut Schema, previous: Option<&Schema>) {
    let over_expressions = |key: &&Key| {
        matches!(key.kind, KeyKind::Unique | KeyKind::Plain)
            && key.parts.iter().any(|part| matches!(part.of, PartOf::Expression(_)))
    };
    let table = SqlTable::of(&Arc::new(schema.clone()));
    let keys: Vec<&Key> = table.keys.iter().filter(over_expressions).collect();
    if keys.is_empty() {
        return;
    }
    for key in &keys {
        for (nth, part) in key.parts.iter().enumerate() {
            let PartOf::Expression(expression) = &part.of else { continue };
            match path_of(expression, |name| table.column(name)) {
                Some(path) => {
                    let kind = schema.columns.get(path.column).map(|column| column.kind);
                    let is_new = !schema.paths.iter().any(|one| one.is_along(&path));
                    if kind == Some(ColumnType::Json) && is_new && schema.paths.len() < MAX_PATHS {
                        schema.paths.push(path);
                    }
                }
                None => {
                    let column = hidden_column(&table, key_column(&key.name, nth), expression);
                    column.into_iter().for_each(|column| add(schema, column, previous));
                }
            }
        }
    }
    let table = SqlTable::of(&Arc::new(schema.clone()));
    for key in &keys {
        let columns = key.parts.iter().enumerate().map_while(|(nth, part)| {
            let column = table.key_part(key, nth)?;
            index_column(column, &table.columns.get(column)?.kind, part.descending)
        });
        add_index(schema, &table, key, columns.collect());
    }
}

/// Adds the index of a key in the place of one of the columns before its first expression, which is there if nobody else
/// knows of expressions and which another key may have.
fn add_index(schema: &mut Schema, table: &SqlTable, key: &Key, columns: Vec<IndexColumn>) {
    let plain = key.parts.iter().take_while(|part| part.column().is_some()).count();
    if let Some(before) = columns.get(..plain).filter(|_| plain < columns.len()) {
        let begins_so = |other: &Key| {
            let places = (0..plain).map(|nth| table.key_part(other, nth));
            other.name != key.name && places.eq(before.iter().map(|part| Some(part.column)))
        };
        if !table.keys.iter().any(begins_so) {
            schema.indexes.retain(|index| index.columns != before);
        }
    }
    schema.add_index(columns);
}

/// The hidden column of what an expression gives; `None` of one that has none, or whose values are too long.
fn hidden_column(table: &SqlTable, name: String, expression: &str) -> Option<ColumnDef> {
    let collation = table.options.collation;
    let formula = formula(table, expression)?;
    let spec = spec(&formula.kind().column_named(""), collation, expression).ok()?;
    is_short(&spec.kind).then(|| ColumnDef {
        id: 0,
        name,
        kind: spec.kind.engine_type(),
        nullable: true,
        indexed: true,
        declared: Some(spec.written(collation)),
    })
}

/// Adds a hidden column, unless the table has rows without it.
fn add(schema: &mut Schema, column: ColumnDef, previous: Option<&Schema>) {
    let next = || schema.columns.iter().map(|column| column.id).max().map_or(0, |most| most + 1);
    let id = match previous {
        None => next(),
        Some(previous) => {
            let is_same = |other: &&ColumnDef| {
                let ColumnDef { name, kind, declared, .. } = &column;
                (&other.name, &other.kind, &other.declared) == (name, kind, declared)
            };
            let Some(same) = previous.columns.iter().find(is_same) else { return };
            same.id
        }
    };
    if schema.columns.len() < MAX_COLUMNS {
        schema.columns.push(ColumnDef { id, ..column });
    }
}

fn formula(table: &SqlTable, expression: &str) -> Option<Formula> {
    let parsed = fixed_expression(table, expression)?;
    Formula::of(&parsed, &|name| {
        let place = table.column(name)?;
        Some((place, expr_type(table.columns.get(place)?)))
    })
}

/// A hidden column that is computed.
struct Computed {
    name: String,
    kind: TypeSpec,
    /// What makes its values, and how those are told; `None` where an earlier version knew more.
    formula: Option<(Formula, Column)>,
}

impl Computed {
    fn of(table: &SqlTable, place: usize) -> Option<Self> {
        let column = table.schema.columns.get(place)?;
        let spec = table.columns.get(place)?;
        let formula = spec.generated.as_ref().and_then(|it| formula(table, &it.expression));
        let formula = formula.map(|formula| {
            let column = formula.kind().column_named("");
            (formula, column)
        });
        Some(Self { name: column.name.clone(), kind: spec.kind.clone(), formula })
    }

    /// Its value; NULL where a query would fail, as the source did if it is one with it.
    fn value(&self, row: &[Value], converter: &Converter) -> Value {
        let Some((formula, column)) = &self.formula else { return Value::Null };
        let Some(array) = formula.evaluate(row) else { return Value::Null };
        let slot = Slot { name: &self.name, kind: &self.kind, row: 1 };
        converter.fit(slot, output::single(&array, column)).unwrap_or(Value::Null)
    }
}

fn computation(schema: &Arc<Schema>) -> ComputeRow {
    type Known = FxHashMap<usize, (Weak<Schema>, ComputeRow)>;
    static KNOWN: LazyLock<RwLock<Known>> = LazyLock::new(RwLock::default);
    let address = Arc::as_ptr(schema) as usize;
    if let Some((known, compute)) = KNOWN.read().get(&address)
        && known.as_ptr() == Arc::as_ptr(schema)
        && known.strong_count() > 0
    {
        return Arc::clone(compute);
    }
    let compute = made(schema);
    let mut known = KNOWN.write();
    // A schema that nobody holds any more leaves its address to another.
    known.retain(|_, (schema, _)| schema.strong_count() > 0);
    known.insert(address, (Arc::downgrade(schema), Arc::clone(&compute)));
    compute
}

fn made(schema: &Arc<Schema>) -> ComputeRow {
    let table = SqlTable::of(schema);
    let columns = schema.columns.iter().enumerate().rev();
    let hidden = columns.take_while(|(_, column)| column.name.starts_with(HIDDEN_PREFIX));
    let mut places: Vec<usize> = hidden.map(|(place, _)| place).collect();
    places.reverse();
    let all: Vec<Computed> =
        places.into_iter().filter_map(|place| Computed::of(&table, place)).collect();
    Arc::new(move |row: &mut Row| {
        let converter = Converter::of_nobody();
        let values: Vec<Value> = all.iter().map(|one| one.value(row, &converter)).collect();
        row.extend(values);
    })
}

#[cfg(test)]
mod tests {
    use remora_engine::{DeclaredTable, PathDef};

    use super::*;

    /// A table as a source's definition makes it, with these keys and an index of its number.
    fn table(keys: &[&str]) -> Schema {
        let column = |id, name: &str, kind, declared: &str| ColumnDef {
            id,
            name: name.to_owned(),
            kind,
            nullable: id > 1,
            indexed: kind != ColumnType::Json,
            declared: Some(declared.to_owned()),
        };
        let mut schema = Schema {
            name: "shop.t".to_owned(),
            columns: vec![
                column(1, "id", ColumnType::Int(32), "int NOT NULL"),
                column(2, "mail", ColumnType::Text, "varchar(60) DEFAULT NULL"),
                column(3, "n", ColumnType::Int(32), "int DEFAULT NULL"),
                column(4, "doc", ColumnType::Json, "json DEFAULT NULL"),
            ],
            primary_key: vec![0],
            texts: Vec::new(),
            required: None,
            indexes: Vec::new(),
            synonyms: Vec::new(),
            words: None,
            paths: Vec::new(),
            declared: Some(DeclaredTable {
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                options: "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
                    .to_owned(),
                parts: Vec::new(),
            }),
        };
        schema.add_index([IndexColumn { column: 2, descending: false, order: None }]);
        schema
    }

    const KEYS: [&str; 5] = [
        "PRIMARY KEY (`id`)",
        "KEY `year` ((cast(json_unquote(json_extract(`doc`,_utf8mb4'$.year')) as signed)))",
        "KEY `mixed` (`n`,(left(`mail`,6)) DESC,`id`)",
        "KEY `tags` ((cast(json_extract(`doc`,_utf8mb4'$.tags') as unsigned array)))",
        "KEY `odd` (((case when (`n` > 3) then 1 else 0 end)))",
    ];

    fn columns(schema: &Schema) -> Vec<(u32, &str, ColumnType)> {
        let columns = schema.columns.iter().skip(4);
        columns.map(|column| (column.id, column.name.as_str(), column.kind)).collect()
    }

    #[test]
    fn keys_over_expressions_are_columns_indexes_and_paths() {
        let mut schema = table(&KEYS);
        complete(&mut schema, None);
        let expected =
            [(5, "#key.0.year", ColumnType::Int(64)), (6, "#key.1.mixed", ColumnType::Text)];
        assert_eq!(columns(&schema), expected);
        assert_eq!(schema.paths, [PathDef::new(3, vec!["tags".to_owned()])]);
        let part = |column, descending, order| IndexColumn { column, descending, order };
        let indexes: Vec<_> = schema.indexes.iter().map(|index| index.columns.clone()).collect();
        let mixed = vec![part(2, false, None), part(5, true, Some(255)), part(0, false, None)];
        assert_eq!(indexes, [vec![part(4, false, None)], mixed]);
        schema.validate().unwrap();
        assert_eq!(SqlTable::of(&Arc::new(schema)).expressions.len(), 2);
    }

    #[test]
    fn an_index_that_another_key_has_stays() {
        let plain = "KEY `n` (`n`)";
        let mut schema = table(&[&KEYS[..], &[plain]].concat());
        complete(&mut schema, None);
        assert_eq!(schema.indexes.len(), 3);
    }

    #[test]
    fn rows_get_what_their_table_has_columns_for() {
        let mut schema = table(&KEYS);
        complete(&mut schema, None);
        let compute = computation(&Arc::new(schema));
        let given = |mail: Value, doc: Value| vec![Value::Int(1), mail, Value::Int(3), doc];
        let mut row = given(
            Value::Text("User36@X".into()),
            Value::Json("{\"year\": \"1999\", \"tags\": [1]}".into()),
        );
        compute(&mut row);
        assert_eq!(row.get(4..).unwrap(), [Value::Int(1999), Value::Text("User36".into())]);
        let mut row = given(Value::Null, Value::Null);
        compute(&mut row);
        assert_eq!(row.get(4..).unwrap(), [Value::Null, Value::Null]);
    }

    #[test]
    fn a_table_with_rows_gets_no_columns_that_they_lack() {
        let before = table(&KEYS);
        let mut schema = table(&KEYS);
        complete(&mut schema, Some(&before));
        assert_eq!((columns(&schema), schema.paths.len()), (vec![], 1));
        let mut had = table(&KEYS);
        complete(&mut had, None);
        had.columns[4].id = 40;
        // One of the two keys is another now.
        let other = KEYS.map(|key| key.replace("as signed", "as unsigned"));
        let mut schema = table(&other.each_ref().map(String::as_str));
        complete(&mut schema, Some(&had));
        assert_eq!(columns(&schema), [(6, "#key.1.mixed", ColumnType::Text)]);
        let mut schema = table(&KEYS);
        complete(&mut schema, Some(&had));
        assert_eq!(columns(&schema).first(), Some(&(40, "#key.0.year", ColumnType::Int(64))));
    }
}
