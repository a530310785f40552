//! The definition of a table.

use remora_engine::{ColumnDef, ColumnType, IndexColumn, Normalization, Schema, TextDef};

use crate::{Error, Result};

/// The definition of a new table: columns in their order, each followed by its properties.
///
/// `text` is for long texts, which are searched and stored only in the row store. `short_text` is
/// stored in columns: it can be filtered, sorted and counted by value, and `searchable()` after it
/// also makes it searched. A table needs a key.
///
/// ```
/// # let db = remora::Database::in_memory()?;
/// let orders = db.create_table("orders", |t| {
///     t.uint("id").key()
///         .short_text("status").required()
///         .short_text("customer").searchable()
///         .decimal("total", 10, 2).float("weight").int("pieces").bool("paid")
///         .datetime("created").timestamp("sent").date("due").time("took")
///         .text("note")
///         .json("data").bytes("label")
///         .index(["status", "-created"])
/// })?;
/// orders.insert(&serde_json::json!({
///     "id": 1, "status": "open", "customer": "Ann", "total": "9.50", "created": "2024-05-31 12:30:00",
/// }))?;
/// assert_eq!(orders.search("ann").filter("total < 10 AND status = 'open'").count()?, 1);
/// # Ok::<(), remora::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TableBuilder {
    schema: Schema,
    indexes: Vec<Vec<String>>,
    /// The first mistake. It is reported when the table is created.
    wrong: Option<String>,
}

macro_rules! column_methods {
    ($($(#[$doc:meta])* $name:ident: $kind:expr, $indexed:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(self, name: &str) -> Self {
            self.column(name, $kind, $indexed)
        }
    )*};
}

impl TableBuilder {
    pub(crate) fn new(name: &str) -> Self {
        let schema = Schema::over(name, Vec::new(), Vec::new());
        Self { schema, indexes: Vec::new(), wrong: None }
    }

    column_methods! {
        /// Signed 64-bit integers.
        int: ColumnType::Int(64), true;
        /// Unsigned 64-bit integers.
        uint: ColumnType::Uint(64), true;
        /// 64-bit floats.
        float: ColumnType::Double, true;
        /// True or false.
        bool: ColumnType::Bool, true;
        /// Short texts, up to 1 MiB each, which can be filtered, sorted and counted by value.
        short_text: ColumnType::Text, true;
        /// Bytes of any length, stored only in the row store.
        bytes: ColumnType::Bytes, false;
        /// Dates, given as text such as `2024-05-31`.
        date: ColumnType::Date, true;
        /// Durations, given as text such as `-12:34:56.789`.
        time: ColumnType::Time, true;
        /// Dates with a time of day and no time zone, given as text such as
        /// `2024-05-31 12:34:56.789`.
        datetime: ColumnType::DateTime, true;
        /// Points in time, given as text such as `2024-05-31T12:34:56.789Z`, or as seconds since
        /// 1970.
        timestamp: ColumnType::Timestamp, true;
        /// JSON documents: any value that can be serialized.
        json: ColumnType::Json, false;
    }

    /// Texts of any length, which are searched.
    #[must_use]
    pub fn text(self, name: &str) -> Self {
        self.column(name, ColumnType::Text, false).searchable()
    }

    /// Exact decimals with this many digits in total (1 to 65) and after the point (0 to 38).
    #[must_use]
    pub fn decimal(self, name: &str, digits: u8, scale: u8) -> Self {
        self.column(name, ColumnType::Decimal(digits, scale), true)
    }

    fn column(mut self, name: &str, kind: ColumnType, indexed: bool) -> Self {
        let id = u32::try_from(self.schema.columns.len()).unwrap_or(u32::MAX).saturating_add(1);
        let name = name.to_owned();
        self.schema.columns.push(ColumnDef {
            id,
            name,
            kind,
            nullable: true,
            indexed,
            declared: None,
        });
        self
    }

    /// Makes the last column the key, or the next part of it. Rows are sorted by key.
    #[must_use]
    pub fn key(mut self) -> Self {
        match self.schema.columns.len().checked_sub(1) {
            Some(last) => {
                self.schema.primary_key.push(last);
                self.required()
            }
            None => {
                self.wrong = Some("key() must follow a column".to_owned());
                self
            }
        }
    }

    /// Makes the last column NOT NULL.
    #[must_use]
    pub fn required(mut self) -> Self {
        match self.schema.columns.last_mut() {
            Some(column) => column.nullable = false,
            None => self.wrong = Some("required() must follow a column".to_owned()),
        }
        self
    }

    /// Makes the texts of the last column searched.
    #[must_use]
    pub fn searchable(mut self) -> Self {
        let last = self.schema.columns.len().checked_sub(1);
        let columns: Vec<usize> = last.into_iter().collect();
        let id = u32::try_from(self.schema.texts.len()).unwrap_or(u32::MAX).saturating_add(1);
        if self.schema.texts.iter().all(|text| text.columns != columns) {
            let normalization = Normalization::default();
            self.schema.texts.push(TextDef { id, columns, delimiter: None, normalization });
        }
        self
    }

    /// Adds an index over columns, for equalities, ranges and sort orders that begin with them. `-`
    /// before a name means descending. Without an index, conditions are answered by the columns
    /// themselves.
    #[must_use]
    pub fn index<'c>(mut self, columns: impl IntoIterator<Item = &'c str>) -> Self {
        self.indexes.push(columns.into_iter().map(str::to_owned).collect());
        self
    }

    /// The definition. Mistakes that the engine would not report are reported here.
    pub(crate) fn finish(mut self) -> Result<Schema> {
        if let Some(wrong) = self.wrong {
            return Err(Error::request(format!("table {:?}: {wrong}", self.schema.name)));
        }
        if self.schema.primary_key.is_empty() {
            let message = format!(
                "table {:?} has no key: call .key() after the column that identifies its rows",
                self.schema.name
            );
            return Err(Error::request(message));
        }
        for index in &self.indexes {
            let parts: Result<Vec<IndexColumn>> =
                index.iter().map(|name| index_column(&self.schema, name)).collect();
            let parts = parts?;
            self.schema.add_index(parts);
        }
        Ok(self.schema)
    }
}

fn index_column(schema: &Schema, said: &str) -> Result<IndexColumn> {
    let (descending, name) = match said.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, said),
    };
    let place = schema.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
    let refused = |what: &str| {
        Error::request(format!("an index of table {:?} names {name:?}, which {what}", schema.name))
    };
    let column = place.ok_or_else(|| refused("is no column"))?;
    match schema.columns.get(column) {
        Some(found) if found.indexed => {
            Ok(IndexColumn { column, descending, order: None, prefix: None })
        }
        _ => Err(refused("is kept on the disk only: use short_text for texts")),
    }
}
