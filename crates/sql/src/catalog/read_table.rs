//! Reads the declaration of a table from the engine's definition.

use std::sync::{Arc, LazyLock, Weak};

use parking_lot::RwLock;
use remora_engine::{ColumnDef, DeclaredTable, Schema};
use remora_mysql::Collation;
use rustc_hash::FxHashMap;

use super::{ColumnSpec, ExpressionKey, RoundedKey, SqlTable, TableOptions, TypeSpec};
use crate::{
    ColumnKeys,
    parse::define::{Key, KeyKind, TableLine, stored_column, stored_line, stored_options},
};

impl SqlTable {
    /// The declaration of a table. Cheap after the first call for a schema.
    pub(crate) fn of(schema: &Arc<Schema>) -> Arc<Self> {
        type KnownTables = FxHashMap<usize, (Weak<Schema>, Arc<SqlTable>)>;
        static KNOWN: LazyLock<RwLock<KnownTables>> = LazyLock::new(RwLock::default);
        let address = Arc::as_ptr(schema) as usize;
        if let Some((known, table)) = KNOWN.read().get(&address)
            && known.as_ptr() == Arc::as_ptr(schema)
            && known.strong_count() > 0
        {
            return Arc::clone(table);
        }
        let table = Arc::new(Self::read(schema));
        let mut known = KNOWN.write();
        // Entries of schemas that nobody else holds are dropped, because their addresses may be reused.
        known.retain(|_, (schema, _)| schema.strong_count() > 1);
        known.insert(address, (Arc::downgrade(schema), Arc::clone(&table)));
        table
    }

    /// Parses a declaration without caching it.
    pub(crate) fn once(schema: Schema) -> Arc<Self> {
        Arc::new(Self::read(&Arc::new(schema)))
    }

    /// Parses the declaration. Anything that cannot be parsed counts as not declared.
    fn read(schema: &Arc<Schema>) -> Self {
        let declared = schema.declared.as_ref();
        let (lines, mut options) = declared.map(read_table).unwrap_or_default();
        if let Some(words) = schema.words.as_ref().filter(|_| options.words.is_empty()) {
            // Declared elsewhere: by a followed table's settings.
            options.words = TableOptions::of_words(words, &schema.columns);
        }
        let columns = schema.columns.iter().map(|column| read_column(column, options.collation));
        let mut table = Self {
            columns: columns.collect(),
            row_number: schema.hidden_key(),
            schema: Arc::clone(schema),
            keys: Vec::new(),
            checks: Vec::new(),
            foreign: Vec::new(),
            options,
            expressions: Vec::new(),
            rounded: Vec::new(),
            column_keys: Vec::new(),
        };
        for line in lines {
            match line {
                TableLine::Key(key) => table.keys.push(key),
                TableLine::Check(check) => table.checks.push(check),
                TableLine::Foreign(key) => table.foreign.push(key),
            }
        }
        // A distributed table has nothing declared but its parts.
        if declared.is_none_or(|it| it.options.is_empty() && it.keys.is_empty()) {
            table.derive_keys();
        }
        table.expressions = ExpressionKey::all(&table);
        table.rounded = RoundedKey::all(&table);
        table.column_keys = ColumnKeys::all(&table);
        table
    }

    /// Derives the keys from the engine's definition.
    fn derive_keys(&mut self) {
        let schema = Arc::clone(&self.schema);
        let name = |&column: &usize| schema.columns.get(column).map(|column| column.name.clone());
        let mut add = |kind, key_name: &str, columns: &[usize]| {
            let names: Vec<String> = columns.iter().filter_map(name).collect();
            self.keys.push(Key::over(kind, key_name, &names));
        };
        if self.row_number.is_none() {
            add(KeyKind::Primary, "PRIMARY", &schema.primary_key);
        }
        for text in &schema.texts {
            let first = text.columns.first().and_then(name).unwrap_or_default();
            add(KeyKind::Fulltext, &first, &text.columns);
        }
        let key = &schema.primary_key;
        for (position, column) in self.columns.iter_mut().enumerate() {
            let nullable = schema.columns.get(position).is_some_and(|column| column.nullable);
            column.not_null |= !nullable || key.contains(&position);
        }
    }
}

fn read_column(column: &ColumnDef, collation: Collation) -> ColumnSpec {
    let declared = column.declared.as_deref().and_then(|text| parse_column(text, collation));
    // A declaration that contradicts the engine's type belongs to another column.
    match declared.filter(|spec| spec.kind.engine_type() == column.kind) {
        Some(spec) => spec,
        None => ColumnSpec {
            not_null: !column.nullable,
            ..ColumnSpec::plain(TypeSpec::of_engine(column.kind))
        },
    }
}

/// Parses a column's declaration, in a table with this collation.
pub(crate) fn parse_column(text: &str, collation: Collation) -> Option<ColumnSpec> {
    ColumnSpec::accepted(&stored_column("", text).ok()?, collation).ok()
}

/// Parses the declaration of a table. Unknown lines are skipped.
fn read_table(declared: &DeclaredTable) -> (Vec<TableLine>, TableOptions) {
    let lines = declared.keys.iter().filter_map(|line| stored_line(line));
    let mut options = TableOptions::default();
    options.set_stored(&stored_options(&declared.options));
    (lines.collect(), options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(declared: &str, collation: Collation) {
        let spec = parse_column(declared, collation).unwrap_or_else(|| panic!("{declared}"));
        assert_eq!(spec.written(collation), declared);
    }

    #[test]
    fn declarations_are_written_as_they_were_read() {
        for declared in [
            "int NOT NULL AUTO_INCREMENT",
            "tinyint(1) DEFAULT '1'",
            "smallint(5) unsigned zerofill DEFAULT NULL",
            "bigint unsigned NOT NULL DEFAULT '0'",
            "decimal(6,2) NOT NULL DEFAULT '0.00'",
            "varchar(30) CHARACTER SET latin1 COLLATE latin1_swedish_ci DEFAULT 'x'",
            "varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL",
            "text",
            "mediumtext NOT NULL",
            "blob",
            "datetime(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)",
            "timestamp NULL DEFAULT NULL",
            "timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP",
            "enum('a','b''c') DEFAULT 'a'",
            "set('x','y') NOT NULL",
            "json DEFAULT NULL",
            "bit(3) DEFAULT b'101'",
            "year DEFAULT NULL",
            "double(8,3) DEFAULT NULL",
            "binary(4) DEFAULT NULL",
            "varbinary(9) DEFAULT NULL",
            "int GENERATED ALWAYS AS ((`d` + 1)) VIRTUAL",
            "int GENERATED ALWAYS AS ((`a` * 2)) STORED NOT NULL",
            "varchar(40) DEFAULT (uuid()) COMMENT 'it''s'",
            "int DEFAULT '5' /*!80023 INVISIBLE */",
            "varchar(10) DEFAULT 'a\\nb'",
            "vector(3) DEFAULT NULL",
            "point NOT NULL",
            "time(2) DEFAULT '10:00:00.55'",
        ] {
            round_trip(declared, Collation::UTF8MB4_0900_AI_CI);
        }
        round_trip("char(3) COLLATE utf8mb4_general_ci DEFAULT NULL", Collation(45));
    }

    #[test]
    fn short_names_mean_long_ones() {
        let written = |text: &str| {
            let collation = Collation::UTF8MB4_0900_AI_CI;
            parse_column(text, collation).map(|spec| spec.written(collation)).unwrap_or_default()
        };
        assert_eq!(written("INTEGER(11)"), "int DEFAULT NULL");
        assert_eq!(written("bool not null default true"), "tinyint(1) NOT NULL DEFAULT '1'");
        assert_eq!(written("serial"), "bigint unsigned NOT NULL AUTO_INCREMENT");
        assert_eq!(written("double precision"), "double DEFAULT NULL");
        assert_eq!(written("character varying(3)"), "varchar(3) DEFAULT NULL");
        assert_eq!(written("dec(5)"), "decimal(5,0) DEFAULT NULL");
        assert_eq!(written("text(300)"), "text");
        assert_eq!(written("text(100000)"), "mediumtext");
        assert_eq!(written("blob(10)"), "tinyblob");
        assert_eq!(written("long varbinary"), "mediumblob");
        assert_eq!(written("text charset binary"), "blob");
        assert_eq!(written("float(30)"), "double DEFAULT NULL");
        assert_eq!(
            written("timestamp default current_timestamp() on update now()"),
            "timestamp NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
        );
        assert_eq!(written("varchar"), "");
        assert_eq!(written("int primary"), "int NOT NULL");
    }

    #[test]
    fn lines_and_options_are_written_as_they_were_read() {
        let keys = [
            "PRIMARY KEY (`id`)",
            "UNIQUE KEY `u1` (`f`)",
            "KEY `k1` (`e`(5),`d` DESC)",
            "KEY `x` ((upper(`a`))) USING BTREE",
            "FULLTEXT KEY `ft` (`h`)",
            "CONSTRAINT `f1` FOREIGN KEY (`a`) REFERENCES `b` (`c`) ON DELETE CASCADE",
            "CONSTRAINT `a_chk_1` CHECK ((`w` > 0))",
        ];
        let options = "ENGINE=InnoDB DEFAULT CHARSET=latin1 ROW_FORMAT=DYNAMIC COMMENT='hello'";
        let keys: Vec<String> = keys.map(str::to_owned).into();
        let declared = DeclaredTable {
            keys: keys.clone(),
            options: options.to_owned(),
            ..DeclaredTable::default()
        };
        let (lines, read) = read_table(&declared);
        let written: Vec<String> = lines.iter().map(TableLine::written).collect();
        assert_eq!(written, keys);
        assert_eq!(read.written(None), options);
        assert_eq!(read.written(Some(7)).find("AUTO_INCREMENT=7"), Some(14));
        let declared = DeclaredTable { options: "CHARSET=utf8mb4".to_owned(), ..declared };
        assert_eq!(read_table(&declared).1.collation, Collation::UTF8MB4_0900_AI_CI);
    }
}
