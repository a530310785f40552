//! The draft of a table's definition while a statement creates or alters it, with MySQL's checks.

use remora_engine::Schema;
use remora_mysql::{ErrorCode, messages};
use rustc_hash::FxHashSet;

use crate::{
    Error, Result, SqlType,
    catalog::{
        Check, ColumnExtras, ColumnSpec, DefaultSpec, ForeignKey, Key, KeyKind, PartOf, SqlTable,
        TableLine, TableName, TableOptions,
    },
    meaning::json::Path,
    parse::define::{ColumnDefinition, ColumnPosition, TableElement, is_parenthesised},
    write::stored::{Owner, check_stored},
};

/// A draft of a definition.
#[derive(Clone, Default)]
pub(super) struct Draft {
    /// The columns, in order.
    pub columns: Vec<DraftColumn>,
    /// The keys.
    pub keys: Vec<Key>,
    /// CHECK conditions.
    pub checks: Vec<Check>,
    /// The conditions that columns of the statement declare, and these columns.
    pub column_checks: Vec<(String, String)>,
    /// Foreign keys.
    pub foreign: Vec<ForeignKey>,
    /// The number of foreign keys that the table already had.
    pub known_foreign: usize,
    /// Options.
    pub options: TableOptions,
    /// The engine's column number of the hidden row number, if the table has one.
    pub row_number: Option<u32>,
    /// Columns that are explicitly declared NULL.
    pub nullable: Vec<String>,
    /// Whether the statement adds keys.
    pub adds_keys: bool,
    /// Renamed columns: old and new names.
    pub renamed: Vec<(String, String)>,
    /// For a percolate table, the definition of the documents.
    pub documents: Option<Schema>,
}

/// A column of a draft.
#[derive(Clone)]
pub(super) struct DraftColumn {
    /// Its name.
    pub name: String,
    /// Its declaration.
    pub spec: ColumnSpec,
    /// The engine's column number, if the column exists already.
    pub id: Option<u32>,
}

impl Draft {
    /// A draft of an existing table.
    pub(super) fn of(table: &SqlTable) -> Self {
        let columns = table.visible().map(|(_, column, spec)| DraftColumn {
            name: column.name.clone(),
            spec: spec.clone(),
            id: Some(column.id),
        });
        let row_number = table.row_number.and_then(|place| table.schema.columns.get(place));
        Self {
            columns: columns.collect(),
            keys: table.keys.clone(),
            checks: table.checks.clone(),
            column_checks: Vec::new(),
            foreign: table.foreign.clone(),
            known_foreign: table.foreign.len(),
            options: table.options.clone(),
            row_number: row_number.map(|column| column.id),
            nullable: Vec::new(),
            adds_keys: false,
            renamed: Vec::new(),
            documents: table.schema.documents().cloned(),
        }
    }

    /// The position of a column.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        let lower = name.to_lowercase();
        self.columns.iter().position(|column| column.name.to_lowercase() == lower)
    }

    /// Adds what CREATE TABLE lists.
    pub(super) fn add(&mut self, element: TableElement) -> Result<()> {
        match element {
            TableElement::Column(column) => self.add_column(*column, None),
            TableElement::Line(line) => self.add_line(line),
        }
    }

    /// Adds a column: at its position, or as the last one.
    pub(super) fn add_column(
        &mut self,
        column: ColumnDefinition,
        position: Option<ColumnPosition>,
    ) -> Result<()> {
        let spec = ColumnSpec::of(&column, self.options.collation)?;
        let place = self.place_of(position)?.unwrap_or(self.columns.len());
        let ColumnDefinition { name, extras, .. } = column;
        if self.column(&name).is_some() {
            let message = messages::duplicate_column(name);
            return Err(Error::new(ErrorCode::DuplicateColumn, message));
        }
        self.add_extras(&name, extras)?;
        self.columns.insert(place, DraftColumn { name, spec, id: None });
        Ok(())
    }

    /// The position that FIRST or AFTER names.
    pub(super) fn place_of(&self, position: Option<ColumnPosition>) -> Result<Option<usize>> {
        Ok(match position {
            None => None,
            Some(ColumnPosition::First) => Some(0),
            Some(ColumnPosition::After(name)) => {
                Some(self.known_column(&name, "table definition")? + 1)
            }
        })
    }

    /// The position of a column; error 1054 if `whole` does not have it.
    pub(super) fn known_column(&self, name: &str, whole: &str) -> Result<usize> {
        self.column(name).ok_or_else(|| Error::unknown_column(name, whole))
    }

    /// Adds the keys and conditions in a column's declaration.
    pub(super) fn add_extras(&mut self, name: &str, extras: ColumnExtras) -> Result<()> {
        let columns = [name.to_owned()];
        if extras.primary {
            self.add_key(Key::over(KeyKind::Primary, "PRIMARY", &columns))?;
        }
        if extras.unique {
            self.add_key(Key::over(KeyKind::Unique, "", &columns))?;
        }
        for check in extras.checks {
            self.column_checks.push((check.expression.clone(), name.to_owned()));
            self.checks.push(check);
        }
        if let Some(references) = extras.references {
            let columns = columns.to_vec();
            self.foreign.push(ForeignKey { name: None, index: None, columns, references });
        }
        if extras.nullable {
            self.nullable.push(name.to_lowercase());
        }
        Ok(())
    }

    /// Adds a key, a condition or a foreign key.
    pub(super) fn add_line(&mut self, line: TableLine) -> Result<()> {
        match line {
            TableLine::Key(key) => self.add_key(key)?,
            TableLine::Check(check) => self.checks.push(check),
            TableLine::Foreign(key) => self.foreign.push(key),
        }
        Ok(())
    }

    fn add_key(&mut self, key: Key) -> Result<()> {
        self.adds_keys = true;
        let second = self.keys.iter().any(|known| known.kind == KeyKind::Primary);
        if key.kind == KeyKind::Primary && second {
            return Err(Error::new(ErrorCode::MultiplePrimaryKeys, "Multiple primary key defined"));
        }
        self.keys.push(key);
        Ok(())
    }

    /// Names unnamed keys and conditions, orders keys as MySQL does, and checks the definition.
    pub(super) fn finish(&mut self, name: &TableName) -> Result<()> {
        if self.columns.iter().all(|column| column.spec.invisible) {
            let message = "A table must have at least one visible column.";
            return Err(Error::new(ErrorCode::TableNeedsColumns, message));
        }
        self.name_foreign(name)?;
        self.name_keys()?;
        self.drop_needless();
        self.name_checks(name)?;
        self.require_key_columns()?;
        self.check_keys()?;
        self.check_auto_increment()?;
        self.columns.iter().try_for_each(check_column)?;
        self.check_expressions()?;
        self.check_words()?;
        let order = |key: &Key| match key.kind {
            KeyKind::Primary => 0,
            KeyKind::Unique if self.is_not_null(key) => 1,
            KeyKind::Unique => 2,
            KeyKind::Plain if key.columns().is_none() => 4,
            KeyKind::Plain | KeyKind::Spatial | KeyKind::Vector => 3,
            KeyKind::Fulltext => 5,
        };
        let mut ordered = self.keys.clone();
        ordered.sort_by_key(order);
        self.keys = ordered;
        Ok(())
    }

    fn check_expressions(&self) -> Result<()> {
        for check in &self.checks {
            check_stored(&check.expression, Owner::Check(&check.name))?;
        }
        for key in &self.keys {
            for part in &key.parts {
                if let PartOf::Expression(expression) = &part.of {
                    check_stored(expression, Owner::Index(&key.name))?;
                }
            }
        }
        for column in &self.columns {
            if let Some(generated) = &column.spec.generated {
                check_stored(&generated.expression, Owner::Generated(&column.name))?;
            }
            if let DefaultSpec::Expression(expression) = &column.spec.default {
                check_stored(expression, Owner::Default(&column.name))?;
            }
        }
        Ok(())
    }

    fn is_not_null(&self, key: &Key) -> bool {
        let column = |name: &str| self.column(name).and_then(|place| self.columns.get(place));
        let mut parts = key.parts.iter();
        parts.all(|part| part.column().and_then(column).is_some_and(|column| column.spec.not_null))
    }

    /// Names foreign keys as InnoDB does, and adds the indexes that new ones need.
    pub(super) fn name_foreign(&mut self, table: &TableName) -> Result<()> {
        let prefix = format!("{}_ibfk_", table.table);
        let mut names: FxHashSet<String> = FxHashSet::default();
        let mut last = 0_u64;
        for name in self.foreign.iter().filter_map(|key| key.name.as_ref()) {
            let number = name.strip_prefix(&prefix).and_then(|number| number.parse().ok());
            last = last.max(number.filter(|_| self.known_foreign > 0).unwrap_or(0));
            if !names.insert(name.to_lowercase()) {
                let message = format!("Duplicate foreign key constraint name '{name}'");
                return Err(Error::new(ErrorCode::DuplicateForeignKey, message));
            }
        }
        for at in 0..self.foreign.len() {
            let Some(key) = self.foreign.get_mut(at) else { continue };
            let wanted = key.name.clone().or_else(|| key.index.take());
            let columns = key.columns.clone();
            if key.name.is_none() {
                let mut numbers = last.saturating_add(1)..;
                let free = numbers.find(|number| !names.contains(&format!("{prefix}{number}")));
                last = free.unwrap_or(last);
                key.name = Some(format!("{prefix}{last}"));
            }
            if at >= self.known_foreign && !self.has_index_over(&columns) {
                self.keys.push(Key::over(KeyKind::Plain, &wanted.unwrap_or_default(), &columns));
            }
        }
        self.foreign.sort_by(|one, other| one.name.cmp(&other.name));
        self.known_foreign = self.foreign.len();
        Ok(())
    }

    /// Whether a key begins with these columns.
    pub(super) fn has_index_over(&self, columns: &[String]) -> bool {
        self.index_over(columns).is_some()
    }

    /// A key that begins with these columns.
    pub(super) fn index_over(&self, columns: &[String]) -> Option<&Key> {
        self.keys.iter().find(|key| {
            let ordered = matches!(key.kind, KeyKind::Primary | KeyKind::Unique | KeyKind::Plain);
            let parts = key.parts.iter().filter(|part| part.prefix.is_none());
            let parts: Vec<&str> = parts.map_while(|part| part.column()).collect();
            ordered
                && parts.len() >= columns.len()
                && parts.iter().zip(columns).all(|(part, name)| part.eq_ignore_ascii_case(name))
        })
    }

    fn name_keys(&mut self) -> Result<()> {
        let mut names: FxHashSet<String> = FxHashSet::default();
        for key in self.keys.iter().filter(|key| !key.name.is_empty()) {
            if !names.insert(key.name.to_lowercase()) {
                let message = format!("Duplicate key name '{}'", key.name);
                return Err(Error::new(ErrorCode::DuplicateKeyName, message));
            }
        }
        for key in self.keys.iter_mut().filter(|key| key.name.is_empty()) {
            let first = key.parts.first().and_then(|part| part.column());
            let base = first.unwrap_or("functional_index").to_owned();
            let candidates = (2..).map(|number| format!("{base}_{number}"));
            let mut candidates = std::iter::once(base.clone()).chain(candidates);
            let free = candidates.find(|name| names.insert(name.to_lowercase()));
            key.name = free.unwrap_or(base);
        }
        Ok(())
    }

    /// Drops indexes that were made for foreign keys and that a new key makes needless: those with the name and the columns
    /// of a foreign key. One that was named after its column may be the user's own.
    fn drop_needless(&mut self) {
        if !self.adds_keys {
            return;
        }
        for foreign in &self.foreign {
            let made = foreign.name.as_ref().map(|name| {
                let key = Key::over(KeyKind::Plain, name, &foreign.columns);
                self.keys.iter().position(|known| *known == key)
            });
            let Some(place) = made.flatten() else { continue };
            let key = self.keys.remove(place);
            if !self.has_index_over(&foreign.columns) {
                self.keys.insert(place, key);
            }
        }
    }

    fn name_checks(&mut self, table: &TableName) -> Result<()> {
        let mut names: FxHashSet<String> = FxHashSet::default();
        for check in self.checks.iter().filter(|check| !check.name.is_empty()) {
            if !names.insert(check.name.to_lowercase()) {
                let message = format!("Duplicate check constraint name '{}'.", check.name);
                return Err(Error::new(ErrorCode::DuplicateCheck, message));
            }
        }
        for check in self.checks.iter_mut().filter(|check| check.name.is_empty()) {
            let mut candidates = (1..).map(|number| format!("{}_chk_{number}", table.table));
            let free = candidates.find(|name| names.insert(name.to_lowercase()));
            check.name = free.unwrap_or_default();
        }
        for check in &mut self.checks {
            // The condition is printed in its own parentheses.
            if !is_parenthesised(&check.expression) {
                check.expression = format!("({})", check.expression);
            }
        }
        Ok(())
    }

    /// Makes columns of the primary key NOT NULL; columns of other keys must exist.
    fn require_key_columns(&mut self) -> Result<()> {
        let keys = self.keys.clone();
        for key in &keys {
            for name in key.parts.iter().filter_map(|part| part.column()) {
                let place = self.column(name).ok_or_else(|| {
                    let message = format!("Key column '{name}' doesn't exist in table");
                    Error::new(ErrorCode::KeyColumnMissing, message)
                })?;
                let Some(column) = self.columns.get_mut(place) else { continue };
                if key.kind == KeyKind::Primary {
                    let nullable = self.nullable.contains(&column.name.to_lowercase());
                    let is_null = column.spec.default == DefaultSpec::Null;
                    if nullable || is_null && column.id.is_none() {
                        let message = "All parts of a PRIMARY KEY must be NOT NULL; if you need \
                                       NULL in a key, use UNIQUE instead";
                        return Err(Error::new(ErrorCode::PrimaryKeyNull, message));
                    }
                    if column.spec.generated.as_ref().is_some_and(|it| !it.stored) {
                        let message = "'Defining a virtual generated column as primary key' is not \
                                       supported for generated columns.";
                        return Err(Error::new(ErrorCode::GeneratedUnsupported, message));
                    }
                    if is_null {
                        column.spec.default = DefaultSpec::None;
                    }
                    column.spec.not_null = true;
                }
            }
        }
        Ok(())
    }

    /// Checks the expressions of a text index over documents: error 1235 for other expressions, 1054 or
    /// 1283 for a column that is not JSON.
    fn check_texts(&self, key: &Key) -> Result<()> {
        let refused = |what: &str| {
            let mend = "say ((doc->>'$.title'), (doc->>'$.body')), with paths of names into one JSON column";
            Err(Error::unsupported(format!("a text index over {what}: {mend}")))
        };
        let Some((column, paths)) = key.texts_at_paths() else {
            return refused("anything but columns alone, or texts at paths alone");
        };
        let Some(of) = self.column(&column).and_then(|place| self.columns.get(place)) else {
            return Err(Error::unknown_column(column, "functional index"));
        };
        if of.spec.kind.sql != SqlType::Json {
            let message = messages::bad_fulltext_column(&of.name);
            return Err(Error::new(ErrorCode::BadFulltextColumn, message));
        }
        let mut known = Vec::with_capacity(paths.len());
        for path in &paths {
            let names = Path::parse(path)?.names();
            if names.is_none() {
                return refused(&format!("what '{path}' leads to"));
            }
            if known.contains(&names) {
                return refused(&format!("'{path}' twice"));
            }
            known.push(names);
        }
        Ok(())
    }

    fn check_keys(&self) -> Result<()> {
        for key in &self.keys {
            if key.columns().is_none() {
                match key.kind {
                    KeyKind::Plain | KeyKind::Unique => {}
                    KeyKind::Primary => {
                        let message = "The primary key cannot be a functional index";
                        return Err(Error::new(ErrorCode::FunctionalPrimaryKey, message));
                    }
                    KeyKind::Fulltext => self.check_texts(key)?,
                    KeyKind::Spatial | KeyKind::Vector => {
                        let what = "a SPATIAL or VECTOR key over an expression";
                        return Err(Error::unsupported(what));
                    }
                }
            }
            for part in &key.parts {
                let column = part.column().and_then(|name| self.column(name));
                let Some(column) = column.and_then(|place| self.columns.get(place)) else {
                    continue;
                };
                let kind = &column.spec.kind;
                let name = &column.name;
                if key.kind == KeyKind::Fulltext && !kind.is_text() {
                    let message = messages::bad_fulltext_column(name);
                    return Err(Error::new(ErrorCode::BadFulltextColumn, message));
                }
                let needs_length =
                    matches!(key.kind, KeyKind::Primary | KeyKind::Unique | KeyKind::Plain);
                if needs_length && kind.is_blob() && part.prefix.is_none() {
                    let message = format!(
                        "BLOB/TEXT column '{name}' used in key specification without a key length"
                    );
                    return Err(Error::new(ErrorCode::BlobKeyWithoutLength, message));
                }
                if kind.sql == SqlType::Json && needs_length {
                    let message = format!(
                        "JSON column '{name}' supports indexing only via generated columns on a \
                         specified JSON path."
                    );
                    return Err(Error::new(ErrorCode::JsonKey, message));
                }
            }
        }
        Ok(())
    }

    fn check_auto_increment(&self) -> Result<()> {
        let counted: Vec<&DraftColumn> =
            self.columns.iter().filter(|column| column.spec.auto_increment).collect();
        let first_of_key = |column: &DraftColumn| {
            let first =
                |key: &Key| key.parts.first().and_then(|part| part.column().map(str::to_lowercase));
            self.keys.iter().any(|key| first(key) == Some(column.name.to_lowercase()))
        };
        if counted.len() > 1 || counted.iter().any(|column| !first_of_key(column)) {
            let message = "Incorrect table definition; there can be only one auto column and it \
                           must be defined as a key";
            return Err(Error::new(ErrorCode::WrongAutoIncrement, message));
        }
        for column in counted {
            let kind = &column.spec.kind;
            let number = kind.is_integer() || matches!(kind.sql, SqlType::Float | SqlType::Double);
            if !number {
                let message = format!("Incorrect column specifier for column '{}'", column.name);
                return Err(Error::new(ErrorCode::WrongColumnSpecifier, message));
            }
            if column.spec.default != DefaultSpec::None {
                return Err(invalid_default(&column.name));
            }
        }
        Ok(())
    }
}

fn check_column(column: &DraftColumn) -> Result<()> {
    let DraftColumn { name, spec, .. } = column;
    if name.is_empty() || name.ends_with(' ') || name.chars().count() > 64 {
        let message = messages::incorrect_column_name(name);
        return Err(Error::new(ErrorCode::WrongColumnName, message));
    }
    if spec.kind.is_short_year() {
        let message = "Invalid display width. Use YEAR instead.";
        return Err(Error::new(ErrorCode::InvalidYearWidth, message));
    }
    let constant = matches!(spec.default, DefaultSpec::Constant(_) | DefaultSpec::Bits(_));
    let large = spec.kind.is_blob() || matches!(spec.kind.sql, SqlType::Json | SqlType::Geometry);
    if constant && large {
        let message =
            format!("BLOB, TEXT, GEOMETRY or JSON column '{name}' can't have a default value");
        return Err(Error::new(ErrorCode::BlobDefault, message));
    }
    let moment = matches!(spec.kind.sql, SqlType::DateTime(_) | SqlType::Timestamp(_));
    if spec.default == DefaultSpec::Now && !moment
        || spec.default == DefaultSpec::Null && spec.not_null
    {
        return Err(invalid_default(name));
    }
    if spec.on_update_now && !moment {
        let message = format!("Invalid ON UPDATE clause for '{name}' column");
        return Err(Error::new(ErrorCode::InvalidOnUpdate, message));
    }
    if spec.generated.is_some() && spec.default != DefaultSpec::None {
        return Err(Error::new(
            ErrorCode::WrongUsage,
            "Incorrect usage of DEFAULT and generated column",
        ));
    }
    Ok(())
}

/// Error 1067.
pub(super) fn invalid_default(name: &str) -> Error {
    Error::new(ErrorCode::InvalidDefault, messages::invalid_default(name))
}
