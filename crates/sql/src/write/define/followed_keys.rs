//! Functional keys of followed tables, as the source declares them.
//!
//! As in local tables, a hidden column at the end of the definition holds the value of the expression. It is computed
//! when a row reaches the engine, because row images and copies have the source's columns only. Keys over members of
//! JSON arrays become an indexed path instead. A key is not used, and the reason is reported, if its expression may
//! have another meaning in another session or may fail for a row: that row would be missing from the index.
//!
//! Stored rows lack the values of a key that is new or that now reads other columns (compared by number and type, not
//! by name). Such a table is copied again beside its last state.

use std::{
    ops::ControlFlow,
    sync::{Arc, LazyLock, Weak},
};

use datafusion::sql::sqlparser::ast::{Expr, VisitorMut};
use parking_lot::RwLock;
use remora_engine::{
    ColumnDef, ColumnType, ComputeRow, Computing, IndexColumn, PathDef, Row, Schema, Value,
};
use rustc_hash::FxHashMap;

use super::{
    build::{index_column, is_short},
    key_columns::{path_of, spec},
};
use crate::{
    Column, SqlType,
    catalog::{
        DeterministicExpr, Key, KeyKind, PartOf, SqlTable, TypeSpec, deterministic, key_column,
        plain_text,
    },
    meaning::{Formula, expr_type},
    output,
    parse::VisitMut,
    write::convert::{Converter, TargetColumn, year_as_given},
};

/// The most columns of a table.
const MAX_COLUMNS: usize = 4_096;
/// The most indexed paths of a table.
const MAX_PATHS: usize = 64;

/// The functions that the engine calls to complete definitions and rows.
pub(crate) const COMPUTING: Computing = Computing { complete, computation };

fn complete(schema: &mut Schema, previous: Option<&Schema>) -> Vec<String> {
    let over_expressions = |key: &&Key| {
        matches!(key.kind, KeyKind::Unique | KeyKind::Plain)
            && key.parts.iter().any(|part| matches!(part.of, PartOf::Expression(_)))
    };
    let table = SqlTable::once(schema.clone());
    let keys: Vec<&Key> = table.keys.iter().filter(over_expressions).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    let mut left_out = Vec::new();
    let mut before = previous.map(PreviousDefinition::of);
    for key in &keys {
        for (nth, part) in key.parts.iter().enumerate() {
            let PartOf::Expression(expression) = &part.of else { continue };
            let added = match path_of(expression, |name| table.column(name)) {
                Some(path) => add_path(schema, path),
                None => hidden_column(&table, key_column(&key.name, nth), expression)
                    .and_then(|column| add(schema, &table, column, before.as_mut())),
            };
            if let Err(why) = added {
                left_out.push(format!("key {} is not used: {why}", key.name));
                // Later parts of the key would be useless without this one.
                break;
            }
        }
    }
    let table = SqlTable::once(schema.clone());
    for key in &keys {
        let columns = key.parts.iter().enumerate().map_while(|(nth, part)| {
            let column = table.key_part(key, nth)?;
            index_column(column, &table.columns.get(column)?.kind, part)
        });
        add_index(schema, &table, key, columns.collect());
    }
    left_out
}

fn add_path(schema: &mut Schema, path: PathDef) -> Result<(), String> {
    let column = schema.columns.get(path.column).ok_or("it reads no column")?;
    if column.kind != ColumnType::Json {
        return Err(format!("column {:?} has no documents", column.name));
    }
    if schema.paths.iter().any(|one| one.is_along(&path)) {
        return Ok(());
    }
    if schema.paths.len() >= MAX_PATHS {
        return Err(format!("{MAX_PATHS} paths are indexed already"));
    }
    schema.paths.push(path);
    Ok(())
}

/// Adds the index of a key. An index over only the plain columns before its first expression, which exists if the
/// source's key was read without expressions, is replaced, unless another key needs it.
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

/// The hidden column of an expression. It is virtual, which distinguishes it from those of local tables, which sessions
/// compute.
fn hidden_column(table: &SqlTable, name: String, expression: &str) -> Result<ColumnDef, String> {
    let collation = table.options.collation;
    let formula = formula(table, expression)?;
    let found = spec(&formula.kind().column_named(""), collation, expression);
    let mut spec = found.map_err(|error| error.message)?;
    if !is_short(&spec.kind) {
        return Err("what its expression gives is too long to be held in columns".to_owned());
    }
    if let Some(generated) = &mut spec.generated {
        generated.stored = false;
    }
    Ok(ColumnDef {
        id: 0,
        name,
        kind: spec.kind.engine_type(),
        nullable: true,
        indexed: true,
        declared: Some(spec.written(collation)),
    })
}

/// The previous definition, whose rows are stored.
struct PreviousDefinition {
    table: Arc<SqlTable>,
    /// The positions of hidden columns that are not matched yet.
    hidden: Vec<usize>,
}

impl PreviousDefinition {
    fn of(schema: &Schema) -> Self {
        let table = SqlTable::once(schema.clone());
        let hidden = (schema.given_columns()..schema.columns.len()).collect();
        Self { table, hidden }
    }

    /// Takes the hidden column with the same values in the new definition. Columns are compared by number and type; the
    /// names of columns and of the key may differ.
    fn take(&mut self, other: &SqlTable, kind: &TypeSpec, expression: &str) -> Option<u32> {
        let wanted = reading(other, expression)?;
        let is_same = |place: &usize| {
            let Some(spec) = self.table.columns.get(*place) else { return false };
            let Some(generated) = &spec.generated else { return false };
            !generated.stored
                && spec.kind == *kind
                && reading(&self.table, &generated.expression).as_ref() == Some(&wanted)
        };
        let nth = self.hidden.iter().position(is_same)?;
        let place = self.hidden.remove(nth);
        Some(self.table.schema.columns.get(place)?.id)
    }
}

/// An expression with column numbers instead of names, and the types of those columns.
fn reading(table: &SqlTable, expression: &str) -> Option<(String, Vec<TypeSpec>)> {
    let DeterministicExpr { mut expr, .. } = deterministic(table, expression).ok()?;
    let mut numbering = Numbering { table, kinds: Vec::new() };
    if VisitMut::visit(&mut expr, &mut numbering).is_break() {
        return None;
    }
    Some((plain_text(&expr)?.1, numbering.kinds))
}

/// Replaces column names by numbers.
struct Numbering<'t> {
    table: &'t SqlTable,
    kinds: Vec<TypeSpec>,
}

impl VisitorMut for Numbering<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Identifier(name) = expr else { return ControlFlow::Continue(()) };
        let found = self.table.column(&name.value).and_then(|place| {
            Some((self.table.schema.columns.get(place)?, self.table.columns.get(place)?))
        });
        let Some((column, spec)) = found else { return ControlFlow::Break(()) };
        name.value = column.id.to_string();
        self.kinds.push(spec.kind.clone());
        ControlFlow::Continue(())
    }
}

/// Adds a hidden column, unless the table has rows without it.
fn add(
    schema: &mut Schema,
    table: &SqlTable,
    column: ColumnDef,
    before: Option<&mut PreviousDefinition>,
) -> Result<(), String> {
    let next = || schema.columns.iter().map(|column| column.id).max().map_or(0, |most| most + 1);
    let id = match before {
        None => next(),
        Some(before) => {
            let with_it = with_column(table, &column);
            let spec = with_it.columns.last().ok_or("its column is not understood")?;
            let generated = spec.generated.as_ref().ok_or("its column is not understood")?;
            let same = before.take(table, &spec.kind, &generated.expression);
            same.ok_or("rows are here that it was not computed of: SYNC the table")?
        }
    };
    if schema.columns.len() >= MAX_COLUMNS {
        return Err(format!("the table has {MAX_COLUMNS} columns already"));
    }
    schema.columns.push(ColumnDef { id, ..column });
    Ok(())
}

/// The table with one more column.
fn with_column(table: &SqlTable, column: &ColumnDef) -> Arc<SqlTable> {
    let mut schema = Schema::clone(&table.schema);
    schema.columns.push(column.clone());
    SqlTable::once(schema)
}

fn formula(table: &SqlTable, expression: &str) -> Result<Formula, String> {
    let parsed = deterministic(table, expression)?.expr;
    Formula::of(&parsed, &|name| {
        let place = table.column(name)?;
        Some((place, expr_type(table.columns.get(place)?)))
    })
}

/// A hidden column that is computed.
struct ComputedColumn {
    /// Its name in messages.
    told: String,
    name: String,
    kind: TypeSpec,
    /// The compiled expression.
    formula: Formula,
    column: Column,
}

impl ComputedColumn {
    /// `None` if its expression is not supported here (any more), or if sessions compute it.
    fn of(table: &SqlTable, place: usize) -> Option<Self> {
        let name = table.schema.columns.get(place)?.name.clone();
        let spec = table.columns.get(place)?;
        let generated = spec.generated.as_ref().filter(|generated| !generated.stored)?;
        let formula = formula(table, &generated.expression).ok()?;
        let column = formula.kind().column_named("");
        let told = format!("key {} cannot be computed", table.schema.shown_name(place));
        Some(Self { told, name, kind: spec.kind.clone(), formula, column })
    }

    /// Its value.
    fn value(&self, row: &[Value], converter: &Converter) -> Result<Value, String> {
        let failed = |why: String| format!("{}: {why}", self.told);
        let array = self.formula.evaluate(row).map_err(failed)?;
        match output::single(&array, &self.column) {
            // The values that queries compare, even if a column of the type would not accept them.
            value @ (Value::Text(_) | Value::Bytes(_) | Value::Date(_) | Value::DateTime(_)) => {
                Ok(value)
            }
            value if self.kind.sql == SqlType::Year => Ok(year_as_given(value)),
            value => {
                let slot = TargetColumn { name: &self.name, kind: &self.kind, row: 1 };
                converter.fit(slot, value).map_err(|error| failed(error.message))
            }
        }
    }
}

fn computation(schema: &Arc<Schema>) -> Option<ComputeRow> {
    type KnownComputeRows = FxHashMap<usize, (Weak<Schema>, Option<ComputeRow>)>;
    static KNOWN: LazyLock<RwLock<KnownComputeRows>> = LazyLock::new(RwLock::default);
    let address = Arc::as_ptr(schema) as usize;
    // While the schema is held, its address is not reused.
    if let Some((_, compute)) = KNOWN.read().get(&address) {
        return compute.clone();
    }
    let compute = made(schema);
    let mut known = KNOWN.write();
    // Entries of schemas that are no longer held are dropped.
    known.retain(|_, (schema, _)| schema.strong_count() > 0);
    known.insert(address, (Arc::downgrade(schema), compute.clone()));
    compute
}

fn made(schema: &Arc<Schema>) -> Option<ComputeRow> {
    let table = SqlTable::of(schema);
    let places = schema.given_columns()..schema.columns.len();
    let all: Vec<ComputedColumn> =
        places.map(|place| ComputedColumn::of(&table, place)).collect::<Option<_>>()?;
    Some(Arc::new(move |row: &mut Row| {
        let converter = Converter::without_session();
        let values: Result<Vec<Value>, String> =
            all.iter().map(|one| one.value(row, &converter)).collect();
        row.extend(values?);
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use remora_engine::DeclaredTable;
    use remora_mysql::{Collation, SqlMode};

    use super::*;
    use crate::catalog::ExpressionSettings;

    /// A table as a source's definition makes it, with these keys and an index on its number.
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
            declared: Some(DeclaredTable {
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
                options: "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"
                    .to_owned(),
                parts: Vec::new(),
                ..DeclaredTable::default()
            }),
            ..Schema::over(
                "shop.t",
                vec![
                    column(1, "id", ColumnType::Int(32), "int NOT NULL"),
                    column(2, "mail", ColumnType::Text, "varchar(60) DEFAULT NULL"),
                    column(3, "n", ColumnType::Int(32), "int DEFAULT NULL"),
                    column(4, "doc", ColumnType::Json, "json DEFAULT NULL"),
                ],
                vec![0],
            )
        };
        schema.add_index([IndexColumn { column: 2, descending: false, order: None, prefix: None }]);
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
        let left_out = complete(&mut schema, None);
        assert_eq!(left_out.len(), 1);
        assert!(left_out[0].starts_with("key odd is not used: CASE WHEN"), "{left_out:?}");
        let expected =
            [(5, "#key.0.year", ColumnType::Int(64)), (6, "#key.1.mixed", ColumnType::Text)];
        assert_eq!(columns(&schema), expected);
        assert_eq!(schema.paths, [PathDef::new(3, vec!["tags".to_owned()])]);
        let part =
            |column, descending, order| IndexColumn { column, descending, order, prefix: None };
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
        let compute = computation(&Arc::new(schema)).unwrap();
        let given = |mail: Value, doc: Value| vec![Value::Int(1), mail, Value::Int(3), doc];
        let mut row = given(
            Value::Text("User36@X".into()),
            Value::Json("{\"year\": \"1999\", \"tags\": [1]}".into()),
        );
        compute(&mut row).unwrap();
        assert_eq!(row.get(4..).unwrap(), [Value::Int(1999), Value::Text("User36".into())]);
        let mut row = given(Value::Null, Value::Null);
        compute(&mut row).unwrap();
        assert_eq!(row.get(4..).unwrap(), [Value::Null, Value::Null]);
    }

    #[test]
    fn keys_over_elements_of_arrays_are_paths_of_names() {
        let key = |path| {
            format!("KEY `k` ((cast(json_extract(`doc`,_utf8mb4'{path}') as char(20) array)))")
        };
        let mut schema = table(&[&key("$.items[*].sku")]);
        assert_eq!(complete(&mut schema, None), Vec::<String>::new());
        assert_eq!(schema.paths, [PathDef::new(3, vec!["items".to_owned(), "sku".to_owned()])]);
        // The index would lack values.
        for path in ["$.items[*][*]", "$.items[*].\"0\"", "$.items[0]", "$**.sku"] {
            let mut schema = table(&[&key(path)]);
            assert_eq!((complete(&mut schema, None).len(), schema.paths.len()), (1, 0), "{path}");
        }
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
        // One of the two keys has changed.
        let other = KEYS.map(|key| key.replace("as signed", "as unsigned"));
        let mut schema = table(&other.each_ref().map(String::as_str));
        complete(&mut schema, Some(&had));
        assert_eq!(columns(&schema), [(6, "#key.1.mixed", ColumnType::Text)]);
        let mut schema = table(&KEYS);
        complete(&mut schema, Some(&had));
        assert_eq!(columns(&schema).first(), Some(&(40, "#key.0.year", ColumnType::Int(64))));
    }

    /// A table of two texts with these names and the column numbers 2 and 5, and a key.
    fn of_two(names: [&str; 2], key: &str) -> Schema {
        let mut schema = table(&[KEYS[0], key]);
        let mut other = schema.columns[1].clone();
        other.id = 5;
        schema.columns.push(other);
        names[0].clone_into(&mut schema.columns[1].name);
        names[1].clone_into(&mut schema.columns[4].name);
        schema
    }

    #[test]
    fn values_stay_by_what_they_are_of_and_not_by_names() {
        let mut had = of_two(["a", "b"], "KEY `k` ((lower(`b`)))");
        assert_eq!(complete(&mut had, None), Vec::<String>::new());
        assert_eq!((had.columns[5].id, had.given_columns()), (6, 5));
        had.columns[5].id = 60;
        let after = |mut schema: Schema| {
            let left_out = complete(&mut schema, Some(&had));
            let hidden = schema.columns.get(5).map(|column| (column.id, column.name.clone()));
            assert_eq!(hidden.is_none(), left_out.len() == 1, "{left_out:?}");
            hidden
        };
        let kept = |name: &str| Some((60, name.to_owned()));
        let of_b = "KEY `k` ((lower(`b`)))";
        assert_eq!(after(of_two(["a", "b"], of_b)), kept("#key.0.k"));
        // The key or the column is renamed.
        assert_eq!(after(of_two(["a", "b"], &of_b.replace("`k`", "`l`"))), kept("#key.0.l"));
        assert_eq!(after(of_two(["a", "c"], &of_b.replace("`b`", "`c`"))), kept("#key.0.k"));
        // The name now belongs to another column.
        assert_eq!(after(of_two(["b", "a"], of_b)), None);
        assert_eq!(after(of_two(["b", "a"], &of_b.replace("`b`", "`a`"))), kept("#key.0.k"));
        // Another expression, and the same expression over a text of another character set.
        assert_eq!(after(of_two(["a", "b"], &of_b.replace("lower", "upper"))), None);
        let mut latin = of_two(["a", "b"], of_b);
        latin.columns[4].declared =
            Some("varchar(60) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT NULL".into());
        assert_eq!(after(latin), None);
    }

    #[test]
    fn one_column_is_for_one_key() {
        let mut had = of_two(["a", "b"], "KEY `k` ((lower(`b`)))");
        complete(&mut had, None);
        let mut two = of_two(["a", "b"], "KEY `k` ((lower(`b`)))");
        let keys = &mut two.declared.as_mut().unwrap().keys;
        keys.push("KEY `l` ((lower(`b`)),`n`)".to_owned());
        let left_out = complete(&mut two, Some(&had));
        assert_eq!((left_out.len(), two.columns.len()), (1, 6));
        assert!(left_out[0].contains("key l is not used") && left_out[0].contains("SYNC"));
    }

    #[test]
    fn what_a_text_is_made_into_is_kept_as_it_is() {
        // The column's character set lacks the first letter; the second becomes one small letter.
        for (kind, text, expected) in [
            ("varchar(3) CHARACTER SET latin1 COLLATE latin1_swedish_ci", "µ", ["\u{39c}", "µ"]),
            ("varchar(1)", "İ", ["İ", "i"]),
        ] {
            let keys = [KEYS[0], "KEY `up` ((upper(`mail`)))", "KEY `low` ((lower(`mail`)))"];
            let mut schema = table(&keys);
            schema.columns[1].declared = Some(format!("{kind} DEFAULT NULL"));
            assert_eq!(complete(&mut schema, None), Vec::<String>::new());
            let compute = computation(&Arc::new(schema)).unwrap();
            let mut row = vec![Value::Int(1), Value::Text(text.into()), Value::Null, Value::Null];
            compute(&mut row).unwrap();
            let expected = expected.map(|text| Value::Text(text.into()));
            assert_eq!(row.get(4..).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn years_are_those_that_queries_compute() {
        let mut schema = table(&[KEYS[0], "KEY `k` ((year(`day`)))"]);
        schema.columns.push(ColumnDef {
            id: 9,
            name: "day".to_owned(),
            kind: ColumnType::Date,
            nullable: true,
            indexed: true,
            declared: Some("date DEFAULT NULL".to_owned()),
        });
        assert_eq!(complete(&mut schema, None), Vec::<String>::new());
        let compute = computation(&Arc::new(schema)).unwrap();
        for year in [1, 69, 99, 100, 1900, 1901, 2155, 2156, 9999] {
            let day = Value::Date(remora_engine::Date { year, month: 1, day: 2 });
            let mut row = vec![Value::Int(1), Value::Null, Value::Null, Value::Null, day];
            compute(&mut row).unwrap();
            assert_eq!(row[5], Value::Uint(u64::from(year)));
        }
    }

    #[test]
    fn numbers_that_are_too_wide_have_no_index() {
        for (key, is_used) in [
            ("KEY `k` ((round(`price`,1)))", true),
            ("KEY `k` ((round(`price`,`n`)))", false),
            ("KEY `k` ((truncate(`price`,`n`)))", false),
            ("KEY `k` ((coalesce(`price`,`n`)))", true),
            ("KEY `k` ((coalesce(`widest`,`price`)))", false),
        ] {
            let mut schema = table(&[KEYS[0], key]);
            for (id, name, digits, scale) in [(8, "price", 10, 2), (9, "widest", 65, 0)] {
                schema.columns.push(ColumnDef {
                    id,
                    name: name.to_owned(),
                    kind: ColumnType::Decimal(digits, scale),
                    nullable: true,
                    indexed: true,
                    declared: Some(format!("decimal({digits},{scale}) DEFAULT NULL")),
                });
            }
            let left_out = complete(&mut schema, None);
            assert_eq!(
                (left_out.is_empty(), schema.columns.len() == 7),
                (is_used, is_used),
                "{key}"
            );
        }
    }

    #[test]
    fn an_expression_that_may_fail_has_no_index() {
        for (key, why) in [
            ("KEY `k` (((`n` * `n`) * 5))", "may be too large"),
            ("KEY `k` ((json_unquote(`mail`)))", "may be no JSON"),
            ("KEY `k` ((json_length(`mail`)))", "may be no document"),
            ("KEY `k` ((concat(`mail`,uuid())))", "not known to give the same"),
            ("KEY `k` ((cast(`n` as time)))", "not known to give the same"),
            ("KEY `k` ((`nothing` + 1))", "not known to give the same"),
        ] {
            let mut schema = table(&[KEYS[0], key]);
            let left_out = complete(&mut schema, None);
            assert_eq!((left_out.len(), schema.columns.len()), (1, 4), "{key}");
            assert!(left_out[0].contains(why), "{key}: {left_out:?}");
        }
        let mut schema = table(&[KEYS[0], "KEY `k` (((`n` * 5) + 1))"]);
        assert_eq!(complete(&mut schema, None), Vec::<String>::new());
    }

    #[test]
    fn what_clocks_and_modes_say_is_for_sessions_that_have_them() {
        let session = |zone: TimeZone, mode: SqlMode| {
            ExpressionSettings::new(Collation::UTF8MB4_0900_AI_CI, &zone, mode)
        };
        let (utc, mode) = (TimeZone::UTC, SqlMode::DEFAULT);
        let east = || TimeZone::fixed(jiff::tz::offset(2));
        let loose = SqlMode::from_bits(0);
        for (expression, of_zone, of_dates) in [
            ("cast(json_unquote(json_extract(`doc`,_utf8mb4'$.day')) as date)", true, true),
            ("cast(`mail` as datetime)", true, true),
            ("year(`mail`)", true, true),
            ("cast(`day` as date)", false, true),
            ("month(cast(`mail` as date))", true, true),
            ("year(`day`)", false, false),
            ("lower(`mail`)", false, false),
        ] {
            let mut schema = table(&[KEYS[0], &format!("KEY `k` (({expression}))")]);
            schema.columns.push(ColumnDef {
                id: 9,
                name: "day".to_owned(),
                kind: ColumnType::DateTime,
                nullable: true,
                indexed: true,
                declared: Some("datetime DEFAULT NULL".to_owned()),
            });
            assert_eq!(complete(&mut schema, None), Vec::<String>::new(), "{expression}");
            let found = SqlTable::of(&Arc::new(schema.clone())).expressions.clone();
            let [key] = found.as_slice() else { panic!("{expression}: {found:?}") };
            assert!(key.is_for(session(utc.clone(), mode)), "{expression}");
            assert!(
                key.is_for(session(TimeZone::fixed(jiff::tz::offset(0)), mode)),
                "{expression}"
            );
            assert_eq!(key.is_for(session(east(), mode)), !of_zone, "{expression}");
            assert_eq!(key.is_for(session(utc.clone(), loose)), !of_dates, "{expression}");
            // Values that sessions computed depend on their zones and modes, which are not known any more.
            let hidden = schema.columns.last_mut().unwrap();
            let declared = hidden.declared.as_ref().unwrap();
            assert!(declared.contains(" VIRTUAL"), "{declared}");
            hidden.declared = Some(declared.replace(" VIRTUAL", " STORED"));
            let found = SqlTable::of(&Arc::new(schema)).expressions.clone();
            assert_eq!(found.is_empty(), of_zone || of_dates, "{expression}");
        }
    }
}
