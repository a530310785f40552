//! Turns a finished draft into the engine's definition.

use std::sync::Arc;

use remora_engine::{
    ColumnDef, ColumnType, DeclaredTable, IndexColumn, Normalization, Schema, TextDef, WordsDef,
    prefix_size,
};

use remora_mysql::ErrorCode;

use super::{
    draft::{Draft, DraftColumn, invalid_default},
    key_columns::{collection_paths, declared_paths},
};
use crate::{
    Error, Result, SqlType,
    catalog::{
        DefaultSpec, Key, KeyKind, KeyPart, PartOf, SqlTable, TableLine, TypeSpec, WORDS,
        key_column, row_number_column,
    },
    meaning::collation,
    state::SessionState,
    write::convert::{Converter, TargetColumn, text_of},
};

/// The most characters or bytes of a column that segments hold for filters and sorting.
const SHORT: u64 = 255;

impl Draft {
    /// Converts constant defaults to their columns' types; error 1067 if one does not fit.
    pub(super) fn settle_defaults(&mut self, session: &SessionState) -> Result<()> {
        let converter = Converter::quiet(session);
        for column in &mut self.columns {
            let given = match &column.spec.default {
                DefaultSpec::Constant(text) => match std::str::from_utf8(text) {
                    Ok(text) => remora_engine::Value::Text(text.into()),
                    Err(_) => remora_engine::Value::Bytes(text.as_slice().into()),
                },
                DefaultSpec::Bits(text) => {
                    let given = crate::parse::read(text, |tokens| {
                        let none = crate::write::rows::literal::Parameters {
                            values: &[],
                            places: Vec::new(),
                        };
                        crate::write::rows::literal::given(tokens, &none, |_| false)
                    });
                    given?.value(&column.spec.kind)?
                }
                _ => continue,
            };
            let is_bits = matches!(column.spec.kind.sql, SqlType::Bit(_));
            let given = match (&given, is_bits) {
                // The number itself, not its characters.
                (remora_engine::Value::Text(text), true) => match text.parse() {
                    Ok(number) => remora_engine::Value::Uint(number),
                    Err(_) => given,
                },
                _ => given,
            };
            let slot = TargetColumn { name: &column.name, kind: &column.spec.kind, row: 1 };
            let fitted = converter.fit(slot, given).map_err(|_| invalid_default(&column.name))?;
            column.spec.default = settled(session, &column.spec.kind, &fitted);
        }
        Ok(())
    }

    /// The engine's definition under a name. `highest` is the highest column number that the table has ever used.
    /// `previous` is the current definition.
    pub(super) fn build(
        &self,
        name: String,
        previous: Option<&SqlTable>,
        mut highest: Option<u32>,
    ) -> Schema {
        let mut next = || {
            let id = highest.map_or(0, |highest| highest + 1);
            highest = Some(id);
            id
        };
        let collation = self.options.collation;
        let mut columns: Vec<ColumnDef> = self
            .columns
            .iter()
            .map(|column| ColumnDef {
                id: column.id.unwrap_or_else(&mut next),
                name: column.name.clone(),
                kind: column.spec.kind.engine_type(),
                nullable: !column.spec.not_null,
                indexed: self.is_indexed(&column.name, &column.spec.kind),
                declared: Some(column.spec.written(collation)),
            })
            .collect();
        let place = |name: &str| self.column(name);
        let primary = self.keys.iter().find(|key| key.kind == KeyKind::Primary);
        let primary_key = match primary {
            Some(key) => key.parts.iter().filter_map(|part| place(part.column()?)).collect(),
            None => {
                columns.push(row_number_column(self.row_number.unwrap_or_else(next)));
                vec![columns.len() - 1]
            }
        };
        let mut paths = declared_paths(self);
        for path in previous.map(|it| collection_paths(it, &columns)).unwrap_or_default() {
            match paths.iter_mut().find(|one| one.is_along(&path)) {
                Some(declared) => *declared = path,
                None => paths.push(path),
            }
        }
        let previous = previous.map(|table| Arc::clone(&table.schema));
        let mut schema = Schema {
            texts: self.texts(previous.as_deref(), &columns),
            required: previous.as_ref().and_then(|schema| schema.required.clone()),
            synonyms: previous.as_ref().map(|it| it.synonyms.clone()).unwrap_or_default(),
            paths,
            declared: Some(self.declared()),
            ..Schema::over(name, columns, primary_key)
        };
        schema.words = self.words(previous.as_deref(), &schema);
        let declared = self.keys.iter();
        let ordered = [KeyKind::Primary, KeyKind::Unique, KeyKind::Plain];
        let declared = declared.filter(|key| ordered.contains(&key.kind));
        declared.for_each(|key| schema.add_index(self.index_columns(key)));
        schema
    }

    /// The leading columns of a key that the engine orders as SQL does, including hidden columns of expressions. Of a
    /// column that segments hold, the whole text or bytes are indexed, and a prefix length is ignored.
    fn index_columns(&self, key: &Key) -> Vec<IndexColumn> {
        let columns = key.parts.iter().enumerate().map_while(|(nth, part)| {
            let column = match &part.of {
                PartOf::Column(name) => self.column(name)?,
                PartOf::Expression(_) => self.column(&key_column(&key.name, nth))?,
            };
            index_column(column, &self.columns.get(column)?.spec.kind, part)
        });
        columns.collect()
    }

    /// Whether segments hold a column: if it is short, or part of a key.
    fn is_indexed(&self, name: &str, kind: &TypeSpec) -> bool {
        let of_key = |key: &Key| {
            key.kind == KeyKind::Primary
                && key
                    .parts
                    .iter()
                    .any(|part| part.column().is_some_and(|c| c.eq_ignore_ascii_case(name)))
        };
        is_short(kind) || self.keys.iter().any(of_key)
    }

    /// The ranked search that the options declare, over the columns they name or over all text columns. It gets a new
    /// number if its meaning has changed.
    fn words(&self, previous: Option<&Schema>, schema: &Schema) -> Option<WordsDef> {
        if self.options.words.is_empty() {
            return None;
        }
        let columns = self.word_columns().ok()?;
        let settings = self.options.word_settings().ok()?;
        let before = previous.and_then(|before| Some((before, before.words.as_ref()?)));
        let made = |id: u32| WordsDef::new(id, columns.clone(), &settings, Vec::new()).ok();
        let ids = |places: &[usize], of: &Schema| -> Vec<u32> {
            places.iter().filter_map(|&place| of.columns.get(place)).map(|it| it.id).collect()
        };
        match before {
            None => made(0),
            Some((table, words)) => {
                let made = made(words.id)?;
                let is_same = made.settings == words.settings
                    && ids(&made.columns, schema) == ids(&words.columns, table);
                Some(if is_same { made } else { made.with_id(words.id + 1) })
            }
        }
    }

    /// Checks the settings of ranked search.
    pub(super) fn check_words(&self) -> Result<()> {
        let columns = self.word_columns()?;
        if columns.is_empty() {
            return Ok(());
        }
        let settings = self.options.word_settings()?;
        let made = WordsDef::new(0, columns, &settings, Vec::new());
        made.map(drop).map_err(|error| Error::new(ErrorCode::ParseError, error.to_string()))
    }

    /// The columns of ranked search.
    ///
    /// # Errors
    /// 1072 if a named column does not exist or is not text, or if there are no text columns.
    pub(super) fn word_columns(&self) -> Result<Vec<usize>> {
        let options = &self.options.words;
        if options.is_empty() {
            return Ok(Vec::new());
        }
        let is_text = |column: &DraftColumn| {
            column.spec.kind.is_text() && column.spec.kind.engine_type() == ColumnType::Text
        };
        let missing = |name: &str| {
            let message = format!(
                "words name '{name}', which is no column of text of the table: change words='…'"
            );
            Error::new(ErrorCode::KeyColumnMissing, message)
        };
        if let Some((_, names)) = options.iter().find(|(name, _)| name == WORDS) {
            let place = |name: &str| {
                let place = self.column(name.trim());
                let place = place.filter(|&place| self.columns.get(place).is_some_and(is_text));
                place.ok_or_else(|| missing(name.trim()))
            };
            return names.split(',').map(place).collect();
        }
        let places = self.columns.iter().enumerate().filter(|(_, column)| is_text(column));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        if places.is_empty() { Err(missing("text")) } else { Ok(places) }
    }

    fn texts(&self, previous: Option<&Schema>, columns: &[ColumnDef]) -> Vec<TextDef> {
        let known = previous.map(|schema| schema.texts.as_slice()).unwrap_or_default();
        // A text index is identified by the numbers of its columns.
        let ids = |places: &[usize], columns: &[ColumnDef]| -> Vec<u32> {
            places.iter().filter_map(|&place| columns.get(place)).map(|column| column.id).collect()
        };
        let mut next = known.iter().map(|text| text.id + 1).max().unwrap_or(0);
        // Text indexes over documents are declared as paths.
        let is_of_columns = |key: &&Key| key.kind == KeyKind::Fulltext && key.columns().is_some();
        let keys = self.keys.iter().filter(is_of_columns);
        let mut taken = Vec::new();
        keys.map(|key| {
            let parts = key.parts.iter();
            let places: Vec<usize> = parts.filter_map(|part| self.column(part.column()?)).collect();
            let same = known.iter().find(|text| {
                let before = previous.map(|schema| ids(&text.columns, &schema.columns));
                before == Some(ids(&places, columns)) && !taken.contains(&text.id)
            });
            let id = same.map_or(next, |text| text.id);
            next += u32::from(same.is_none());
            taken.push(id);
            TextDef {
                id,
                columns: places,
                delimiter: None,
                normalization: same.map_or(Normalization::default(), |text| text.normalization),
            }
        })
        .collect()
    }

    fn declared(&self) -> DeclaredTable {
        let keys = self.keys.iter().cloned().map(TableLine::Key);
        let checks = self.checks.iter().cloned().map(TableLine::Check);
        let foreign = self.foreign.iter().cloned().map(TableLine::Foreign);
        let lines = keys.chain(foreign).chain(checks);
        let keys = lines.map(|line| line.written()).collect();
        let documents = self.documents.clone().map(Box::new);
        let options = self.options.written(None);
        DeclaredTable { keys, options, documents, ..DeclaredTable::default() }
    }
}

/// Whether values of a type are short enough for segments to hold.
pub(super) fn is_short(kind: &TypeSpec) -> bool {
    match kind.sql {
        SqlType::Json | SqlType::Geometry | SqlType::Vector => false,
        SqlType::Char | SqlType::VarChar => kind.length <= SHORT,
        _ => !kind.is_blob() || kind.length <= SHORT,
    }
}

/// An index column; `None` if the engine does not order its values as SQL does.
pub(super) fn index_column(column: usize, kind: &TypeSpec, part: &KeyPart) -> Option<IndexColumn> {
    let collation = kind.collation;
    if matches!(kind.sql, SqlType::Geometry | SqlType::Vector) {
        return None;
    }
    let order = match kind.engine_type() {
        ColumnType::Text if !kind.is_text() => return None,
        ColumnType::Text if !collation::is_bytes(collation) => Some(collation.0.into()),
        ColumnType::Text => None,
        ColumnType::Json => return None,
        _ => None,
    };
    let prefix = (!is_short(kind)).then(|| prefix_size(part.prefix, kind.is_text()));
    Some(IndexColumn { column, descending: part.descending, order, prefix })
}

/// A default in declared form.
fn settled(session: &SessionState, kind: &TypeSpec, value: &remora_engine::Value) -> DefaultSpec {
    use remora_engine::Value;
    let digits = kind.fraction_digits();
    let text = match value {
        Value::Uint(bits) if matches!(kind.sql, SqlType::Bit(_)) => {
            return DefaultSpec::Bits(format!("b'{bits:b}'"));
        }
        Value::Uint(year) if kind.sql == SqlType::Year => format!("{year:04}"),
        Value::Bytes(bytes) => return DefaultSpec::Constant(bytes.to_vec()),
        Value::Time(micros) => crate::meaning::temporal::time_text(*micros, digits),
        Value::Timestamp(micros) => {
            let zone = &session.variables.time_zone.zone;
            match crate::meaning::temporal::local_of_utc(*micros, zone) {
                Some(moment) => moment.text(digits),
                None => "0000-00-00 00:00:00".to_owned(),
            }
        }
        Value::DateTime(moment) => {
            let remora_engine::Date { year, month, day } = moment.date;
            let date = crate::meaning::temporal::Moment::date(year, month, day);
            let micros = i64::try_from(moment.micros).unwrap_or(0);
            crate::meaning::temporal::Moment { micros, ..date }.text(digits)
        }
        other => match (other, kind.digits) {
            (Value::Float(number), Some((_, scale))) => {
                format!("{number:.scale$}", scale = usize::from(scale))
            }
            _ => text_of(other),
        },
    };
    DefaultSpec::Constant(text.into_bytes())
}
