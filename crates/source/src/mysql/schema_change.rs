//! Decides whether stored rows stay valid after a schema change of the source.
//!
//! They stay valid if the source certainly did not change them: columns were renamed, dropped, widened, made nullable,
//! or added with a known value. In every other case the rows are copied again.

use remora_engine::Value;

use super::{
    schema::{ColumnDefault, Generation, SourceColumn, SourceTable, SourceType},
    statement::Alteration,
    values::from_select,
};

/// What must happen to a stored table after its definition changed at the source.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaChange {
    /// Nothing: only indexes, comments, defaults or the order of columns changed.
    Nothing(SourceTable),
    /// The stored rows stay, and the engine's definition is altered to that of this table.
    Alter {
        /// The new definition.
        table: SourceTable,
        /// Columns of the old table that were renamed: old and new name.
        renamed: Vec<(String, String)>,
        /// New columns and their values in existing rows: NULL or a constant.
        added: Vec<(String, Value)>,
    },
    /// The rows must be copied again.
    Recopy {
        /// The new definition.
        table: SourceTable,
        /// The reason.
        reason: String,
    },
}

impl SchemaChange {
    /// The effect of the change from `old` to `new`. `alterations` are all statements in between, in order. They
    /// distinguish a renamed column from a dropped and an added one, and show what was changed and changed back.
    pub(crate) fn between(old: &SourceTable, new: SourceTable, alterations: &[Alteration]) -> Self {
        match stay(old, &new, alterations) {
            Ok(change) => change,
            Err(reason) => Self::Recopy { table: new, reason },
        }
    }
}

impl SourceTable {
    /// A column of this table whose name these statements moved to or from another column. The column of that name has
    /// other values afterwards.
    pub(crate) fn renamed_column(&self, alterations: &[Alteration]) -> Option<String> {
        let alterations = alterations.iter();
        let renamed = alterations.flat_map(|alteration| alteration.renamed.clone());
        let mut names = renamed.flat_map(|(from, to)| [from, to]);
        names.find_map(|name| self.column(&name).map(|column| column.name.clone()))
    }
}

impl SourceTable {
    /// The columns of this table that these statements renamed: old and new names.
    pub(crate) fn renamed_columns(
        &self,
        new: &SourceTable,
        alterations: &[Alteration],
    ) -> Vec<(String, String)> {
        let renamed = self.columns.iter().filter_map(|column| {
            let mut now = column.name.as_str();
            for alteration in alterations {
                let is_now =
                    |(from, _): &&(String, String)| from.to_lowercase() == now.to_lowercase();
                if let Some((_, to)) = alteration.renamed.iter().find(is_now) {
                    now = to;
                }
            }
            let found = new.column(now)?;
            (found.name != column.name).then(|| (column.name.clone(), found.name.clone()))
        });
        renamed.collect()
    }
}

/// The columns of the stored rows in the new definition, or why the rows cannot stay.
fn stay(
    old: &SourceTable,
    new: &SourceTable,
    alterations: &[Alteration],
) -> Result<SchemaChange, String> {
    if let Some(reason) = alterations.iter().find_map(|alteration| alteration.moves_rows) {
        return Err(reason.to_owned());
    }
    check_together(alterations, old, new)?;
    check_computed(alterations, old, new)?;
    let alteration = Alteration::combined(alterations);
    let renamed: Vec<_> = alteration
        .renamed
        .iter()
        .filter_map(|(from, to)| Some((&old.column(from)?.name, &new.column(to)?.name)))
        .collect();
    let mut columns = Vec::with_capacity(new.columns.len());
    let mut changed = false;
    for column in &old.columns {
        let now = renamed.iter().find(|(from, _)| *from == &column.name);
        let name = now.map_or(&column.name, |&(_, to)| to);
        let taken = now.is_none() && renamed.iter().any(|(_, to)| *to == name);
        let Some(found) = new.column(name).filter(|_| !taken) else {
            changed = true;
            continue;
        };
        let is_it = |name: &String| name.to_lowercase() == column.name.to_lowercase();
        if alteration.dropped.iter().any(is_it) {
            return Err(format!("column {:?} was dropped and added again", column.name));
        }
        check_column(column, found)?;
        if new.is_numbered(found) && !old.is_numbered(column) {
            return Err(format!("column {:?} is AUTO_INCREMENT now", found.name));
        }
        changed |= found.kind.engine_type() != column.kind.engine_type()
            || found.nullable != column.nullable
            || found.name != column.name;
        // Names that differ only in case are different names to the engine.
        let renamed_from = (found.name != column.name).then(|| column.name.clone());
        columns.push(SourceColumn { renamed_from, ..found.clone() });
    }
    let dropped = old.columns.len() - columns.len();
    let new_columns: Vec<_> = new
        .columns
        .iter()
        .filter(|column| !columns.iter().any(|old| old.name == column.name))
        .collect();
    if dropped > 0 && !new_columns.is_empty() {
        return Err("columns were dropped and added at once".to_owned());
    }
    let moved = !columns.is_sorted_by_key(|column| column.ordinal);
    if old.is_keyless() && (changed || moved || !new_columns.is_empty()) {
        return Err("its rows are identified by all columns, and those changed".to_owned());
    }
    if old.period_end.is_some() != new.period_end.is_some() {
        return Err("its system versioning was added or dropped".to_owned());
    }
    let added = added_columns(new, &new_columns, &alteration)?;
    let table = arranged(new, &columns);
    check_key(old, &table, &renamed)?;
    if !changed && added.is_empty() {
        return Ok(SchemaChange::Nothing(table));
    }
    let renamed = renamed.into_iter().map(|(from, to)| (from.clone(), to.clone())).collect();
    Ok(SchemaChange::Alter { table, renamed, added })
}

/// New columns and their values in existing rows.
fn added_columns(
    new: &SourceTable,
    columns: &[&SourceColumn],
    alteration: &Alteration,
) -> Result<Vec<(String, Value)>, String> {
    let mut added = Vec::with_capacity(columns.len());
    for column in columns {
        if new.is_numbered(column) {
            return Err(format!("column {:?} numbers the rows that were there", column.name));
        }
        // A generated column that row images omit is not stored here until it stops being generated.
        if !alteration.creates_column(&column.name) {
            return Err(format!("column {:?} came without being added", column.name));
        }
        added.push((column.name.clone(), value_of_old_rows(column)?));
    }
    Ok(added)
}

/// The new table in the source's order. Its columns know their previous names.
fn arranged(new: &SourceTable, found: &[SourceColumn]) -> SourceTable {
    let mut table = new.clone();
    for column in &mut table.columns {
        let before = found.iter().find(|other| other.name == column.name);
        column.renamed_from = before.and_then(|before| before.renamed_from.clone());
    }
    table
}

fn check_key(
    old: &SourceTable,
    new: &SourceTable,
    renamed: &[(&String, &String)],
) -> Result<(), String> {
    let now = |name: &String| {
        let to = renamed.iter().find(|(from, _)| *from == name);
        to.map_or(name.to_lowercase(), |(_, to)| to.to_lowercase())
    };
    let old_key: Vec<_> = old.key_columns().map(|column| now(&column.name)).collect();
    let new_key: Vec<_> = new.key_columns().map(|column| column.name.to_lowercase()).collect();
    let pairs = old.key_columns().zip(new.key_columns());
    let same_types =
        pairs.into_iter().all(|(old, new)| old.kind.engine_type() == new.kind.engine_type());
    (old_key == new_key && same_types).then_some(()).ok_or_else(|| "its key changed".to_owned())
}

/// Checks that no column was altered by more than one statement. Then each value was changed at most once, and
/// comparing the first and last definition is sufficient.
fn check_together(
    alterations: &[Alteration],
    old: &SourceTable,
    new: &SourceTable,
) -> Result<(), String> {
    if alterations.len() < 2 {
        return Ok(());
    }
    if alterations.iter().any(|alteration| alteration.mentions("CONVERT")) {
        return Err("it was changed several times at once, all columns among them".to_owned());
    }
    let names = old.columns.iter().chain(&new.columns).map(|column| column.name.as_str());
    let renamed = alterations.iter().flat_map(|alteration| &alteration.renamed);
    let renamed = renamed.flat_map(|(from, to)| [from.as_str(), to.as_str()]);
    for name in names.chain(renamed) {
        if alterations.iter().filter(|alteration| alteration.mentions(name)).count() > 1 {
            return Err(format!("column {name:?} was changed several times at once"));
        }
    }
    Ok(())
}

/// Checks generated columns. Their dependencies are unknown, so any statement that affects them may have changed their
/// values.
fn check_computed(
    alterations: &[Alteration],
    old: &SourceTable,
    new: &SourceTable,
) -> Result<(), String> {
    let is_computed = |column: &&SourceColumn| column.generation != Generation::None;
    let named = |column: &&SourceColumn| alterations.iter().any(|one| one.mentions(&column.name));
    let Some(computed) = new.columns.iter().find(is_computed) else { return Ok(()) };
    if let Some(changed) = new.columns.iter().filter(is_computed).find(named) {
        return Err(format!("column {:?} is computed", changed.name));
    }
    let another = |column: &&SourceColumn| {
        new.column(&column.name).is_some_and(|now| now.kind != column.kind)
    };
    match old.columns.iter().find(another) {
        Some(column) => Err(format!(
            "column {:?} has another type now, and column {:?} is computed",
            column.name, computed.name
        )),
        None => Ok(()),
    }
}

/// Checks that a column's values are the same under its new declaration.
fn check_column(old: &SourceColumn, new: &SourceColumn) -> Result<(), String> {
    if old.generation != Generation::None || new.generation != Generation::None {
        let (ordinal, renamed_from) = (old.ordinal, old.renamed_from.clone());
        let default = old.default.clone();
        let same = SourceColumn { ordinal, renamed_from, default, ..new.clone() } == *old;
        return same.then_some(()).ok_or(format!("column {:?} is computed", new.name));
    }
    if old.nullable && !new.nullable {
        return Err(format!("column {:?} is NOT NULL now", new.name));
    }
    let keeps = keeps_values(&old.kind, &new.kind) && new.range.holds_all_of(&old.range);
    keeps.then_some(()).ok_or_else(|| format!("column {:?} has another type now", new.name))
}

/// Whether every value of the old type is the same value of the new one.
fn keeps_values(old: &SourceType, new: &SourceType) -> bool {
    use SourceType::{
        Binary, Blob, Char, DateTime, Decimal, Enum, Int, Set, Text, Time, Timestamp, VarBinary,
        VarChar, Vector,
    };
    match (old, new) {
        (Int { bits, unsigned }, Int { bits: wide, unsigned: same }) => {
            bits <= wide && unsigned == same
        }
        // A decimal's stored text has its scale. Decimals of up to 18 digits have the same index form.
        (Decimal { precision, scale }, Decimal { precision: wide, scale: same }) => {
            scale == same && (precision == wide || precision < wide && *wide <= 18)
        }
        (Time(digits), Time(more))
        | (DateTime(digits), DateTime(more))
        | (Timestamp(digits), Timestamp(more)) => digits <= more,
        (Char(text) | VarChar(text), Char(wide) | VarChar(wide)) => {
            let kept = matches!(old, Char(_)) || matches!(new, VarChar(_));
            kept && text.length <= wide.length && wide.charset.holds_all_of(&text.charset)
        }
        (Text(text), Text(wide)) => text.length <= wide.length && wide.charset == text.charset,
        (VarChar(text), Text(wide)) => {
            // A character takes at most four bytes.
            text.length.saturating_mul(4) <= wide.length && wide.charset.holds_all_of(&text.charset)
        }
        (Binary(bytes), Binary(same)) => bytes == same,
        (VarBinary(bytes), VarBinary(wide) | Blob(wide)) | (Blob(bytes), Blob(wide)) => {
            bytes <= wide
        }
        (Vector(floats), Vector(wide)) => floats <= wide,
        (Enum(labels), Enum(more)) | (Set(labels), Set(more)) => {
            more.labels.starts_with(&labels.labels)
        }
        _ => old == new,
    }
}

/// The value of a new column in existing rows.
fn value_of_old_rows(column: &SourceColumn) -> Result<Value, String> {
    let unknown =
        || format!("column {:?} was added with values that only the source knows", column.name);
    if column.generation != Generation::None {
        return Err(unknown());
    }
    match &column.default {
        ColumnDefault::Null => Ok(Value::Null),
        ColumnDefault::None => implied(&column.kind).ok_or_else(unknown),
        ColumnDefault::Constant(text) if is_plain(&column.kind) => {
            let value = mysql::Value::Bytes(text.clone().into_bytes());
            from_select(column, value).map_err(|_| unknown())
        }
        _ => Err(unknown()),
    }
}

/// Whether a constant default has the form in which a SELECT would show it.
fn is_plain(kind: &SourceType) -> bool {
    use SourceType::{Char, Date, DateTime, Decimal, Double, Enum, Int, Set, Text, VarChar, Year};
    matches!(
        kind,
        Int { .. }
            | Decimal { .. }
            | Double
            | Year
            | Date
            | DateTime(_)
            | Char(_)
            | VarChar(_)
            | Text(_)
            | Enum(_)
            | Set(_)
    )
}

/// The value that a server assigns to a NOT NULL column without a default.
fn implied(kind: &SourceType) -> Option<Value> {
    Some(match kind {
        SourceType::Int { unsigned: false, .. } => Value::Int(0),
        SourceType::Int { .. } | SourceType::Bit(_) | SourceType::Year | SourceType::ShortYear => {
            Value::Uint(0)
        }
        SourceType::Float | SourceType::Double => Value::Float(0.0),
        SourceType::Decimal { scale, .. } => {
            Value::Decimal(remora_engine::Decimal::from_scaled(0, *scale))
        }
        SourceType::Char(_) | SourceType::VarChar(_) | SourceType::Text(_) | SourceType::Set(_) => {
            Value::Text("".into())
        }
        SourceType::Enum(labels) => Value::Text(labels.labels.first()?.as_str().into()),
        SourceType::VarBinary(_) | SourceType::Blob(_) => Value::Bytes([].into()),
        SourceType::Binary(bytes) => Value::Bytes(vec![0; *bytes].into()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use remora_mysql::Charset;

    use super::*;
    use crate::mysql::schema::Range;
    use crate::mysql::{
        binlog::Query,
        schema::{TextType, Words},
        statement::Statement,
    };

    fn text(charset: &str, length: u64) -> SourceType {
        let charset = Charset::named(charset).unwrap();
        SourceType::VarChar(TextType { charset, length })
    }

    fn int(bits: u8) -> SourceType {
        SourceType::Int { bits, unsigned: false }
    }

    fn column(name: &str, kind: SourceType) -> SourceColumn {
        SourceColumn {
            name: name.to_owned(),
            ordinal: 0,
            kind,
            range: Range::default(),
            nullable: true,
            generation: Generation::None,
            default: ColumnDefault::Null,
            collation: None,
            renamed_from: None,
        }
    }

    fn table(columns: &[SourceColumn]) -> SourceTable {
        let mut columns = columns.to_vec();
        for (ordinal, column) in columns.iter_mut().enumerate() {
            column.ordinal = ordinal;
        }
        let (database, name) = ("d".to_owned(), "t".to_owned());
        SourceTable {
            database,
            name,
            key: vec![0],
            image_columns: columns.len(),
            columns,
            unique_keys: Vec::new(),
            period_end: None,
            words: Words::default(),
        }
    }

    fn old() -> SourceTable {
        table(&[column("id", int(32)), column("a", text("latin1", 10)), column("b", int(16))])
    }

    fn names(table: &SourceTable) -> Vec<&str> {
        table.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn alterations(statements: &[&str]) -> Vec<Alteration> {
        let of = |sql: &&str| match Statement::of(&Query::plain("d", sql), false) {
            Statement::Alter { alteration, .. } => alteration,
            other => panic!("{sql}: {other:?}"),
        };
        statements.iter().map(of).collect()
    }

    fn reason(new: &SourceTable, statement: Option<&str>) -> String {
        let alterations = alterations(statement.as_slice());
        match SchemaChange::between(&old(), new.clone(), &alterations) {
            SchemaChange::Recopy { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn definition_without_row_changes_needs_nothing() {
        let mut new = old();
        new.columns[1] = column("a", text("utf8mb4", 20));
        new.columns.swap(1, 2);
        let new = table(&new.columns);
        let SchemaChange::Nothing(now) = SchemaChange::between(&old(), new, &[]) else { panic!() };
        assert_eq!(names(&now), ["id", "b", "a"]);
        assert_eq!(now.columns[1].ordinal, 1);
    }

    #[test]
    fn widened_dropped_renamed_and_added_columns_leave_the_rows() {
        let constant = ColumnDefault::Constant("7".to_owned());
        let added = SourceColumn { default: constant, nullable: false, ..column("n", int(8)) };
        let new = table(&[
            added,
            column("id", int(64)),
            column("a", text("latin1", 10)),
            column("b", int(32)),
        ]);
        let new = SourceTable { key: vec![1], ..new };
        let change = SchemaChange::between(&old(), new.clone(), &[]);
        assert!(
            matches!(change, SchemaChange::Recopy { .. }),
            "the key's type changed: {change:?}"
        );
        let mut new = new;
        new.columns[1].kind = int(32);
        let SchemaChange::Alter { table: now, added, renamed } =
            SchemaChange::between(&old(), new, &alterations(&["ALTER TABLE t ADD n TINYINT"]))
        else {
            panic!()
        };
        assert_eq!((names(&now), now.key.clone()), (vec!["n", "id", "a", "b"], vec![1]));
        let before = old().to_schema();
        let after = now.to_schema_after(&before, 3);
        let ids: Vec<_> = after.columns.iter().map(|column| column.id).collect();
        assert_eq!((ids, after.primary_key), (vec![4, 1, 2, 3], vec![1]));
        assert_eq!(added, [("n".to_owned(), Value::Int(7))]);
        assert_eq!(renamed, []);
        let dropped = table(&[column("id", int(32)), column("b", int(16))]);
        let change = SchemaChange::between(&old(), dropped, &[]);
        assert!(matches!(change, SchemaChange::Alter { .. }));
    }

    #[test]
    fn column_rename_is_recognized_by_its_statement() {
        let new =
            table(&[column("id", int(32)), column("z", text("latin1", 10)), column("b", int(16))]);
        assert_eq!(reason(&new, None), "columns were dropped and added at once");
        let statement = "ALTER TABLE t RENAME COLUMN a TO z";
        let SchemaChange::Alter { table: now, renamed, .. } =
            SchemaChange::between(&old(), new, &alterations(&[statement]))
        else {
            panic!()
        };
        assert_eq!(renamed, [("a".to_owned(), "z".to_owned())]);
        let before = old().to_schema();
        let after = now.to_schema_after(&before, 9);
        assert_eq!(after.columns[1].id, before.columns[1].id);
        assert_eq!(after.texts[0].id, before.texts[0].id);
        let swap =
            table(&[column("id", int(32)), column("b", text("latin1", 10)), column("a", int(16))]);
        let statement = "ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a";
        let SchemaChange::Alter { table: now, .. } =
            SchemaChange::between(&old(), swap, &alterations(&[statement]))
        else {
            panic!()
        };
        let after = now.to_schema_after(&before, 9);
        let ids = |schema: &remora_engine::Schema| {
            schema.columns.iter().map(|column| column.id).collect::<Vec<_>>()
        };
        assert_eq!((names(&now), ids(&after)), (vec!["id", "b", "a"], ids(&before)));
    }

    /// Ranked search keeps its columns by this, even if the rows are copied again.
    #[test]
    fn renamed_columns_are_known_through_all_statements() {
        let new = table(&[
            column("z", text("latin1", 10)),
            column("ID", int(32)),
            column("b", SourceType::Json),
        ]);
        let pair = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let statements = [
            "ALTER TABLE t CHANGE a c TEXT, RENAME COLUMN b TO a",
            "ALTER TABLE t RENAME COLUMN a TO b, MODIFY b JSON",
            "ALTER TABLE t RENAME COLUMN c TO z",
        ];
        let renamed = old().renamed_columns(&new, &alterations(&statements));
        assert_eq!(renamed, [pair("id", "ID"), pair("a", "z")]);
        let gone = old().renamed_columns(&new, &alterations(&statements[..1]));
        assert_eq!(gone, [pair("id", "ID")]);
    }

    #[test]
    fn a_name_in_other_case_is_the_same_column() {
        let new =
            table(&[column("id", int(32)), column("A", text("latin1", 10)), column("b", int(16))]);
        let alterations = alterations(&["ALTER TABLE t CHANGE a A VARCHAR(10)"]);
        let SchemaChange::Alter { table: now, .. } =
            SchemaChange::between(&old(), new, &alterations)
        else {
            panic!()
        };
        let before = old().to_schema();
        assert_eq!(now.to_schema_after(&before, 9).columns[1].id, before.columns[1].id);
    }

    #[test]
    fn several_statements_on_different_columns_are_combined() {
        let added = |default: &str| {
            let default = ColumnDefault::Constant(default.to_owned());
            let mut columns = old().columns;
            columns.push(SourceColumn { default, ..column("n", int(8)) });
            table(&columns)
        };
        let between = |new: &SourceTable, statements: &[&str]| {
            SchemaChange::between(&old(), new.clone(), &alterations(statements))
        };
        let apart = ["ALTER TABLE t ADD n TINYINT DEFAULT 7", "ALTER TABLE t MODIFY a VARCHAR(10)"];
        assert!(matches!(between(&added("7"), &apart), SchemaChange::Alter { .. }));
        let again =
            ["ALTER TABLE t ADD n TINYINT DEFAULT 7", "ALTER TABLE t ALTER n SET DEFAULT 8"];
        assert!(matches!(between(&added("8"), &again), SchemaChange::Recopy { .. }));
        // Values that did not fit in between have been changed.
        let back = ["ALTER TABLE t MODIFY b TINYINT", "ALTER TABLE t MODIFY b SMALLINT"];
        assert!(matches!(between(&old(), &back), SchemaChange::Recopy { .. }));
        let back = [
            "ALTER TABLE t CONVERT TO CHARACTER SET ascii",
            "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
        ];
        assert!(matches!(between(&old(), &back), SchemaChange::Recopy { .. }));
        let swapped = ["ALTER TABLE t RENAME COLUMN b TO x", "ALTER TABLE t RENAME COLUMN x TO b"];
        assert!(matches!(between(&old(), &swapped), SchemaChange::Recopy { .. }));
        let lost = ["ALTER IGNORE TABLE t ADD UNIQUE (a)"];
        assert!(matches!(between(&old(), &lost), SchemaChange::Recopy { .. }));
    }

    #[test]
    fn changes_of_generated_columns_are_copied() {
        let computed = SourceColumn { generation: Generation::Stored, ..column("c", int(32)) };
        let before = table(&[column("id", int(32)), column("a", SourceType::Time(0)), computed]);
        let between = |new: &SourceTable, statement: &str| {
            SchemaChange::between(&before, new.clone(), &alterations(&[statement]))
        };
        let other = "ALTER TABLE t MODIFY c INT AS (id / 3) STORED";
        assert!(matches!(between(&before, other), SchemaChange::Recopy { .. }));
        let index = "ALTER TABLE t ADD INDEX (a)";
        assert!(matches!(between(&before, index), SchemaChange::Nothing(_)));
        let mut after = before.clone();
        after.columns[1].kind = SourceType::Time(6);
        let statement = "ALTER TABLE t MODIFY a TIME(6)";
        assert!(matches!(between(&after, statement), SchemaChange::Recopy { .. }));
    }

    #[test]
    fn unclear_changes_are_copied() {
        let with = |place: usize, column: SourceColumn| {
            let mut columns = old().columns;
            columns[place] = column;
            table(&columns)
        };
        let narrow = with(2, column("b", int(8)));
        assert_eq!(reason(&narrow, None), "column \"b\" has another type now");
        let ranged = |unsigned, digits| {
            let range = Range { unsigned, digits };
            SourceColumn { range, ..column("f", SourceType::Float) }
        };
        for (old, new, is_kept) in [
            (ranged(false, None), ranged(true, None), false),
            (ranged(true, None), ranged(false, None), true),
            (ranged(false, None), ranged(false, Some((7, 2))), false),
            (ranged(false, Some((7, 2))), ranged(false, Some((9, 2))), false),
            (ranged(true, Some((7, 2))), ranged(true, Some((7, 2))), true),
            (ranged(true, Some((7, 2))), ranged(false, None), true),
        ] {
            assert_eq!(check_column(&old, &new).is_ok(), is_kept, "{old:?} {new:?}");
        }
        let latin2 = with(1, column("a", text("latin2", 10)));
        assert_eq!(reason(&latin2, None), "column \"a\" has another type now");
        let not_null = with(2, SourceColumn { nullable: false, ..column("b", int(16)) });
        assert_eq!(reason(&not_null, None), "column \"b\" is NOT NULL now");
        let again = reason(&old(), Some("ALTER TABLE t DROP b, ADD b SMALLINT"));
        assert_eq!(again, "column \"b\" was dropped and added again");
        let partition = reason(&old(), Some("ALTER TABLE t TRUNCATE PARTITION p1"));
        assert_eq!(partition, "a partition was dropped, emptied or exchanged");
        let key = SourceTable { key: vec![2], ..old() };
        assert_eq!(reason(&key, None), "its key changed");
        let expression = ColumnDefault::Expression("uuid()".to_owned());
        let mut columns = old().columns;
        columns.push(SourceColumn { default: expression, ..column("n", text("latin1", 36)) });
        let new = table(&columns);
        assert_eq!(reason(&new, None), "column \"n\" came without being added");
        let unknown = reason(&new, Some("ALTER TABLE t ADD n VARCHAR(36)"));
        assert_eq!(unknown, "column \"n\" was added with values that only the source knows");
        let statement = "ALTER TABLE t ADD x INT, FROBNICATE";
        assert_eq!(reason(&old(), Some(statement)), "a clause was not understood");
    }

    #[test]
    fn added_auto_increment_columns_are_copied() {
        let words = |of_b: &str| {
            let text = format!("CREATE TABLE `t` (\n  `id` int,\n  `b` {of_b}\n) ENGINE=InnoDB");
            Words::of(&text)
        };
        let before = SourceTable { words: words("int COMMENT 'AUTO_INCREMENT'"), ..old() };
        let after = SourceTable { words: words("int AUTO_INCREMENT"), ..old() };
        let alterations = alterations(&["ALTER TABLE t MODIFY b INT AUTO_INCREMENT"]);
        let between = |new: &SourceTable| SchemaChange::between(&before, new.clone(), &alterations);
        assert!(matches!(between(&after), SchemaChange::Recopy { .. }));
        assert!(matches!(between(&before), SchemaChange::Nothing(_)));
    }
}
