//! Definitions change in one step, and what they say of the rows that are there holds at once.

use remora_engine::{
    ColumnDef, ColumnType, Comparison, Database, DeclaredTable, Definition, Error, Filter, Literal,
    Normalization, Options, Position, Row, Schema, SearchRequest, Selection, SortBy, SortKey,
    TableChanges, TextDef, TextQuery, Value,
};

use crate::common::*;

fn named(name: &str) -> Schema {
    Schema { name: name.to_owned(), ..schema() }
}

fn rename(from: &str, to: &str) -> Definition {
    Definition::Rename { from: from.to_owned(), to: to.to_owned() }
}

fn alter(database: &Database, schema: Schema) -> Result<Position, Error> {
    fill(database, schema, Vec::new())
}

fn fill(database: &Database, schema: Schema, fills: Vec<(u32, Value)>) -> Result<Position, Error> {
    database.define(vec![Definition::Alter { schema, fills }], Vec::new())
}

fn put_into(database: &Database, table: &str, id: i64, text: &str) {
    let tables = vec![TableChanges { table: table.into(), changes: vec![put(id, id, text)] }];
    database.apply(remora_engine::ChangeBatch { tables, positions: Vec::new() }).unwrap();
}

fn ids(database: &Database, table: &str) -> Vec<i64> {
    let mut ids = Vec::new();
    let mut visit = |row: Row| {
        ids.push(id_of(&row));
        Ok(())
    };
    database.scan(table, &mut visit).unwrap();
    let selection = Selection { table: table.to_owned(), ..Selection::default() };
    assert_eq!(database.count(&selection).unwrap().count, ids.len() as u64);
    ids
}

#[test]
fn hidden_tables_are_used_by_name_and_not_listed() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    database.create_table(named("#copy:articles")).unwrap();
    put_into(&database, "#copy:articles", 1, "hidden");
    assert_eq!(database.tables(), [TABLE]);
    assert_eq!(ids(&database, "#copy:articles"), [1]);
    database.optimize(None).unwrap();
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!(
        (database.tables(), ids(&database, "#copy:articles")),
        (vec![TABLE.into()], vec![1])
    );
}

#[test]
fn copy_replaces_a_table_atomically() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    put_into(&database, TABLE, 1, "old");
    database.create_table(named("#copy")).unwrap();
    put_into(&database, "#copy", 2, "new");
    database.checkpoint().unwrap();
    let version = database.table_version(TABLE).unwrap();
    let positions = vec![("s".to_owned(), "7".to_owned())];
    let position = database.define(vec![rename("#copy", TABLE)], positions).unwrap();
    assert_eq!(database.position(), position);
    assert_ne!(database.table_version(TABLE).unwrap(), version);
    let check = |database: &Database| {
        assert_eq!((ids(database, TABLE), find(database, "new")), (vec![2], vec![2]));
        assert!(find(database, "old").is_empty());
        assert!(matches!(database.schema("#copy"), Err(Error::NotFound { .. })));
        assert_eq!(database.schema(TABLE).unwrap().name, TABLE);
        assert_eq!(database.source_position("s").unwrap().as_deref(), Some("7"));
        assert_eq!(database.position(), position);
    };
    check(&database);
    drop(database);
    let database = open(directory.path(), quick());
    check(&database);
    put_into(&database, TABLE, 3, "later");
    database.optimize(None).unwrap();
    check_is_clean(database);
}

#[test]
fn definition_list_is_atomic() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    database.create_table(named("other")).unwrap();
    put_into(&database, TABLE, 1, "one");
    put_into(&database, "other", 2, "two");
    let missing = vec![Definition::Drop(TABLE.to_owned()), rename("none", "x")];
    assert!(matches!(database.define(missing, Vec::new()), Err(Error::NotFound { .. })));
    assert_eq!(ids(&database, TABLE), [1]);
    let swap = vec![rename(TABLE, "#t"), rename("other", TABLE), rename("#t", "other")];
    database.define(swap, Vec::new()).unwrap();
    assert_eq!((ids(&database, TABLE), ids(&database, "other")), (vec![2], vec![1]));
    let truncate = vec![Definition::Drop(TABLE.to_owned()), Definition::Create(schema())];
    database.define(truncate, Vec::new()).unwrap();
    assert_eq!((ids(&database, TABLE), ids(&database, "other")), (vec![], vec![1]));
    drop(database);
    let database = open(directory.path(), quick());
    assert_eq!((ids(&database, TABLE), ids(&database, "other")), (vec![], vec![1]));
    check_is_clean(database);
}

fn column(id: u32, name: &str, kind: ColumnType, nullable: bool, indexed: bool) -> ColumnDef {
    ColumnDef { id, name: name.to_owned(), kind, nullable, indexed, declared: None }
}

/// A definition, its fills, and what the row of `put(1, 10, "ship one")` is under it.
type Alteration = (Schema, Vec<(u32, Value)>, Row);

fn alterations() -> Vec<Alteration> {
    let first = schema();
    let mut renamed = first.clone();
    renamed.columns[1].name = "points".to_owned();
    renamed.columns[2].indexed = true;
    let mut wider = renamed.clone();
    wider.columns.insert(1, column(4, "added", ColumnType::Text, true, true));
    wider.texts[0].columns = vec![3];
    let normalization = Normalization::default();
    wider.texts.push(TextDef { id: 2, columns: vec![1], delimiter: None, normalization });
    let mut filled = wider.clone();
    filled.columns.push(column(5, "filled", ColumnType::Int(8), false, true));
    filled.columns.push(column(6, "stored", ColumnType::Decimal(4, 1), false, false));
    let mut dropped = filled.clone();
    dropped.columns.remove(2);
    dropped.texts[0].columns = vec![2];
    dropped.columns[3].kind = ColumnType::Int(64);
    dropped.columns[4].kind = ColumnType::Decimal(20, 3);
    dropped.columns[4].indexed = true;
    let mut untexted = dropped.clone();
    untexted.texts.remove(1);
    let retexted = dropped.clone();
    let text = |text: &str| Value::Text(text.into());
    let decimal =
        |text: &str| Value::Decimal(remora_engine::Decimal::from_canonical(text).unwrap());
    let (id, body) = (Value::Int(1), text("ship one"));
    let row = vec![id.clone(), Value::Int(10), body.clone()];
    let wide = vec![id.clone(), Value::Null, Value::Int(10), body.clone()];
    let fills = vec![(5, Value::Int(7)), (6, decimal("2.5"))];
    let filled_row = [wide.clone(), vec![Value::Int(7), decimal("2.5")]].concat();
    let last = vec![id, Value::Null, body, Value::Int(7), decimal("2.500")];
    vec![
        (renamed, vec![], row),
        (wider, vec![], wide),
        (filled, fills, filled_row),
        (dropped, vec![], last.clone()),
        (untexted, vec![], last.clone()),
        (retexted, vec![], last),
    ]
}

fn sorted_ids(database: &Database, column: &str, filter: Option<Filter>) -> Vec<i64> {
    let selection = Selection { table: TABLE.to_owned(), filter, ..Selection::default() };
    let by = |by, descending| SortKey { by, descending };
    let sort = vec![by(SortBy::Column(column.to_owned()), false), by(SortBy::Key, false)];
    let request = SearchRequest { selection, limit: 1_000, sort, ..SearchRequest::default() };
    let reply = database.search(&request).unwrap();
    reply.hits.iter().map(|hit| id_of(&hit.key)).collect()
}

/// A column of the row with the least key, from wherever it is read quickest.
fn field_of_first(database: &Database, column: &str) -> Value {
    let selection = Selection { table: TABLE.to_owned(), ..Selection::default() };
    let sort = vec![SortKey { by: SortBy::Key, descending: false }];
    let fields = vec![column.to_owned()];
    let request = SearchRequest { selection, limit: 1, sort, fields, ..SearchRequest::default() };
    database.search(&request).unwrap().hits[0].fields[0].clone()
}

/// After every step: old rows and new ones, the index and the check, before and after a restart,
/// with the segments in memory, in files and merged.
#[test]
fn rows_of_old_layouts_read_as_the_current_layout() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { checkpoint_bytes: 200, ..quick() };
    let mut database = open(directory.path(), options.clone());
    apply(&database, vec![put(1, 10, "ship one"), put(2, -1, "deleted")]).unwrap();
    apply(&database, vec![delete(2)]).unwrap();
    for (step, (schema, fills, expected)) in (0i64..).zip(alterations()) {
        fill(&database, schema.clone(), fills).unwrap();
        assert_eq!(*database.schema(TABLE).unwrap(), schema);
        let mut new = expected.clone();
        new[0] = Value::Int(100 + step);
        apply(&database, vec![remora_engine::Change::Put(new)]).unwrap();
        let check = |database: &Database| {
            let rows = rows(database);
            assert_eq!((rows.len() as i64, &rows[0]), (step + 2, &expected), "step {step}");
            for (column, value) in schema.columns.iter().zip(&expected) {
                assert_eq!(field_of_first(database, &column.name), *value, "{}", column.name);
            }
            let all: Vec<i64> = [1].into_iter().chain(100..=100 + step).collect();
            assert_eq!((find(database, "ship"), ids(database, TABLE)), (all.clone(), all.clone()));
            for column in schema.columns.iter().filter(|column| column.indexed) {
                assert_eq!(sorted_ids(database, &column.name, None), all, "{}", column.name);
            }
            if schema.columns.iter().any(|column| column.name == "filled") {
                let filter = Filter::Compare {
                    column: "filled".to_owned(),
                    comparison: Comparison::Equal,
                    literal: Literal::Text("7".to_owned()),
                };
                assert_eq!(sorted_ids(database, "id", Some(filter)), all);
            }
        };
        check(&database);
        if step % 2 == 0 {
            database.checkpoint().unwrap();
            check_is_clean(database);
            database = Database::open(directory.path(), options.clone()).unwrap();
            check(&database);
        } else {
            drop(database);
            database = Database::open(directory.path(), options.clone()).unwrap();
            database.optimize(None).unwrap();
            check(&database);
        }
    }
    check_is_clean(database);
}

#[test]
fn impossible_alterations_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "one")]).unwrap();
    let refused = |change: &dyn Fn(&mut Schema), fills: Vec<(u32, Value)>| {
        let mut schema = schema();
        change(&mut schema);
        fill(&database, schema, fills).unwrap_err().to_string()
    };
    let none = Vec::new;
    let added = |schema: &mut Schema, id, nullable| {
        schema.columns.push(column(id, "added", ColumnType::Int(8), nullable, true));
    };
    assert!(
        refused(&|s| s.columns[1].kind = ColumnType::Text, none()).contains("cannot change from")
    );
    assert!(
        refused(&|s| s.columns[1].kind = ColumnType::Int(8), none()).contains("cannot change from")
    );
    assert!(refused(&|s| s.columns[1].nullable = false, none()).contains("allowed NULL"));
    assert!(refused(&|s| s.columns[0].id = 9, none()).contains("primary key"));
    assert!(refused(&|s| added(s, 4, false), none()).contains("must not be NULL"));
    let far = vec![(4, Value::Int(1_000))];
    assert!(refused(&|s| added(s, 4, true), far).contains("does not fit"));
    let not_new = vec![(2, Value::Int(1))];
    assert!(refused(&|s| added(s, 4, true), not_new).contains("is not new"));
    assert!(refused(&|s| s.name = "none".to_owned(), none()).contains("no table"));
    let mut without = schema();
    without.columns.remove(1);
    without.texts[0].columns = vec![1];
    alter(&database, without).unwrap();
    assert!(refused(&|_| (), none()).contains("of a dropped column"));
    assert_eq!(rows(&database), [vec![Value::Int(1), Value::Text("one".into())]]);
}

#[test]
fn readded_text_index_has_only_live_documents() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    apply(&database, vec![put(1, 1, "ship")]).unwrap();
    let mut bare = schema();
    let text = bare.texts.remove(0);
    bare.columns.remove(2);
    alter(&database, bare.clone()).unwrap();
    bare.columns.push(column(9, "other", ColumnType::Text, true, false));
    bare.texts.push(text);
    alter(&database, bare).unwrap();
    let selection = Selection {
        table: TABLE.to_owned(),
        text: Some(TextQuery::Term("ship".to_owned())),
        ..Selection::default()
    };
    assert_eq!(database.count(&selection).unwrap().count, 0);
    apply(&database, vec![put(2, 2, "ship")]).unwrap();
    assert_eq!(find(&database, "ship"), [2]);
    check_is_clean(database);
}

#[test]
fn the_sql_declaration_of_a_table_is_kept_and_changes_without_a_rebuild() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    put_into(&database, TABLE, 1, "one");
    let mut schema = schema();
    schema.columns[2].declared = Some("text COMMENT 'it''s'".to_owned());
    let keys = vec!["PRIMARY KEY (`id`)".to_owned()];
    schema.declared = Some(DeclaredTable {
        keys,
        options: "ENGINE=InnoDB".to_owned(),
        ..DeclaredTable::default()
    });
    // To be made with other words is no other table.
    database.create_table(schema.clone()).unwrap();
    assert_eq!(database.schema(TABLE).unwrap().declared, None);

    let (version, transaction) = (database.table_version(TABLE).unwrap(), database.begin());
    alter(&database, schema.clone()).unwrap();
    assert_eq!(*database.schema(TABLE).unwrap(), schema);
    assert_eq!(database.table_version(TABLE).unwrap(), version);
    transaction.commit(batch(vec![put(2, 2, "two")])).unwrap();
    assert_eq!(find(&database, "o"), [1, 2]);
    drop(database);
    let database = Database::open(directory.path(), quick()).unwrap();
    assert_eq!(*database.schema(TABLE).unwrap(), schema);
    assert_eq!(find(&database, "o"), [1, 2]);

    schema.declared =
        Some(DeclaredTable { options: "x".repeat(9 << 20), ..DeclaredTable::default() });
    assert!(matches!(alter(&database, schema), Err(Error::Request { .. })));
    check_is_clean(database);
}

#[test]
fn vacant_name_is_checked_in_list_order() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path(), quick());
    put_into(&database, TABLE, 1, "kept");
    let vacant = |name: &str| Definition::Vacant(name.to_owned());
    let refused = vec![Definition::Create(named("other")), vacant(TABLE), rename("other", TABLE)];
    let error = database.define(refused, Vec::new()).unwrap_err();
    assert!(matches!(&error, Error::Taken { table } if table == TABLE), "{error:?}");
    assert_eq!((database.tables(), ids(&database, TABLE)), (vec![TABLE.into()], vec![1]));
    let swapped = vec![
        vacant("other"),
        rename(TABLE, "other"),
        vacant(TABLE),
        Definition::Create(named(TABLE)),
    ];
    database.define(swapped, Vec::new()).unwrap();
    assert_eq!((ids(&database, TABLE), ids(&database, "other")), (vec![], vec![1]));
}
