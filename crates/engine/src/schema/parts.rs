//! The parts of a distributed table, and whether their definitions agree.

use super::{ColumnDef, ColumnType, DeclaredTable, HIDDEN_KEY, IndexDef, Schema, validate::ensure};
use crate::{Error, RequestPart, Result};

/// Separates the tables in a name that stands for several; no table name contains it.
const BETWEEN: char = '\0';

/// The most tables read as one.
pub const MAX_PARTS: usize = 64;

/// The most bytes of the declaration of one agent.
const MAX_AGENT_BYTES: usize = 4_096;

/// The name under which a [`crate::Reader`] reads these tables as one, like a table that declares them as its parts.
/// If several have a key, the last one's row counts.
pub fn united_name<'n>(tables: impl IntoIterator<Item = &'n str>) -> String {
    let tables: Vec<&str> = tables.into_iter().collect();
    tables.join("\0")
}

/// The tables in a name made by [`united_name`]; any other name yields itself.
pub fn united_names(name: &str) -> impl Iterator<Item = &str> {
    name.split(BETWEEN)
}

/// Whether a name stands for several tables.
pub(crate) fn is_united(name: &str) -> bool {
    name.contains(BETWEEN)
}

impl Schema {
    /// The definition of a distributed table over these parts, whatever their definitions are at the time of a read.
    pub fn distributed(name: impl Into<String>, parts: Vec<String>) -> Self {
        let key = ColumnDef {
            id: 0,
            name: HIDDEN_KEY.to_owned(),
            kind: ColumnType::Uint(64),
            nullable: false,
            indexed: true,
            declared: None,
        };
        Self {
            declared: Some(DeclaredTable { parts, ..DeclaredTable::default() }),
            ..Self::over(name, vec![key], vec![0])
        }
    }

    /// Adds tables of other servers, and the settings for querying them.
    #[must_use]
    pub fn with_agents(mut self, agents: Vec<String>, settings: Vec<(String, String)>) -> Self {
        let mut declared = self.declared.take().unwrap_or_default();
        (declared.agents, declared.agent_settings) = (agents, settings);
        Self { declared: Some(declared), ..self }
    }

    /// Whether its rows are those of other tables, here or on other servers.
    pub fn is_distributed(&self) -> bool {
        !self.parts().is_empty() || !self.agents().is_empty()
    }

    /// The tables of other servers whose rows it has, as SQL names them; empty if there are none.
    pub fn agents(&self) -> &[String] {
        self.declared.as_ref().map_or(&[], |declared| &declared.agents)
    }

    /// How those servers are queried, by the names of settings.
    pub fn agent_settings(&self) -> &[(String, String)] {
        self.declared.as_ref().map_or(&[], |declared| &declared.agent_settings)
    }

    /// The tables of this server whose rows it has instead of its own; empty if there are none.
    pub fn parts(&self) -> &[String] {
        self.declared.as_ref().map_or(&[], |declared| &declared.parts)
    }

    /// The definition for reading tables as one: that of the first, with the indexes that all of them have. Computed
    /// columns are left out, because a table may lack them or have computed them in another way.
    ///
    /// # Errors
    /// [`Error::Request`] if they do not agree, with the tables and the difference.
    pub(crate) fn united(name: &str, parts: &[&Schema]) -> Result<Self> {
        let Some((first, others)) = parts.split_first() else {
            return Err(refused(format!("table {name:?} has no parts")));
        };
        if first.hidden_key().is_some() {
            let message = format!(
                "table {:?} declares no key, so its rows cannot be told apart from those of \
                 other tables: it cannot be part of a distributed table",
                first.name
            );
            return Err(refused(message));
        }
        let given = first.given_columns();
        if let Some(part) =
            parts.iter().find(|part| (0..part.given_columns()).any(|place| part.is_computed(place)))
        {
            let message = format!(
                "table {:?} has columns after those computed for its keys over expressions: it \
                 cannot be part of a distributed table",
                part.name
            );
            return Err(refused(message));
        }
        for other in others {
            if let Some(what) = first.difference(other) {
                let message = format!(
                    "tables {:?} and {:?} cannot be read as one: {what}; their keys, columns, words and text \
                     indexes must be the same",
                    first.name, other.name
                );
                return Err(refused(message));
            }
        }
        let mut schema = Schema { name: name.to_owned(), ..Schema::clone(first) };
        schema.columns.truncate(given);
        let is_shown = |index: &IndexDef| index.columns.iter().all(|part| part.column < given);
        schema.indexes.retain(|index| {
            is_shown(index) && others.iter().all(|other| other.indexes.contains(index))
        });
        schema.paths.retain(|path| others.iter().all(|other| other.paths.contains(path)));
        let mut declared = schema.declared.take().unwrap_or_default();
        // Values that are unique in each part may repeat across parts, except the key.
        declared.keys.retain(|line| {
            ["PRIMARY KEY", "KEY", "FULLTEXT KEY"].iter().any(|kind| line.starts_with(kind))
        });
        declared.parts = parts.iter().map(|part| part.name.clone()).collect();
        Ok(Schema { declared: Some(declared), ..schema })
    }

    /// The definition for reading this distributed table over parts with these definitions, here and on other
    /// servers: that of the first, without indexes, which belong to each server.
    ///
    /// # Errors
    /// [`Error::Request`] if they do not agree, with the tables and the difference.
    pub(crate) fn gathered(&self, parts: &[Schema]) -> Result<Self> {
        let plain: Vec<Schema> = parts.iter().map(Schema::plain).collect();
        let plain: Vec<&Schema> = plain.iter().collect();
        let mut schema = Self::united(&self.name, &plain)?;
        let mut declared = schema.declared.take().unwrap_or_default();
        declared.keys.retain(|line| line.starts_with("PRIMARY KEY"));
        declared.parts = self.parts().to_vec();
        declared.agents = self.agents().to_vec();
        declared.agent_settings = self.agent_settings().to_vec();
        Ok(Self { declared: Some(declared), ..schema })
    }

    /// The definition without what differs between servers: numbers and indexes.
    fn plain(&self) -> Self {
        let mut plain = self.clone();
        for (column, number) in plain.columns.iter_mut().zip(0..) {
            column.id = number;
        }
        plain.words = plain.words.map(|words| words.with_id(0));
        plain.texts.clear();
        plain.indexes.clear();
        plain.paths.clear();
        plain.synonyms.clear();
        plain.required = None;
        plain
    }

    /// The first difference from another table, if there is one.
    fn difference(&self, other: &Self) -> Option<String> {
        if other.hidden_key().is_some() {
            return Some(format!("{:?} declares no key", other.name));
        }
        let (mine, theirs) = (self.given_columns(), other.given_columns());
        if mine != theirs {
            return Some(format!(
                "{:?} has {theirs} columns and {:?} {mine}",
                other.name, self.name
            ));
        }
        let mut columns = self.columns.iter().zip(&other.columns).take(mine).enumerate();
        let of_columns = columns.find_map(|(place, (mine, theirs))| {
            column_difference(mine, theirs).map(|what| format!("column {}: {what}", place + 1))
        });
        if of_columns.is_some() {
            return of_columns;
        }
        let words = |schema: &Self| schema.words.clone().map(|words| words.with_id(0));
        let same = [
            (self.primary_key == other.primary_key, "the keys are of other columns"),
            (words(self) == words(other), "the settings of the words differ"),
            (self.words == other.words, "the words were declared again (they have another number)"),
            (self.texts == other.texts, "the text indexes differ"),
            (self.required == other.required, "the required rows differ"),
            (self.synonyms == other.synonyms, "the synonyms differ"),
            (text_rules(self) == text_rules(other), "the collations of the tables differ"),
        ];
        let differs = same.iter().find(|(is_same, _)| !is_same);
        differs.map(|(_, what)| (*what).to_owned())
    }

    pub(super) fn check_parts(&self) -> Result<()> {
        let parts = self.parts();
        ensure(parts.len() <= MAX_PARTS, || {
            format!("table {:?} has {} parts: give up to {MAX_PARTS}", self.name, parts.len())
        })?;
        for (place, part) in parts.iter().enumerate() {
            ensure(!part.is_empty() && !is_united(part), || format!("{part:?} is no table name"))?;
            ensure(*part != self.name, || format!("table {part:?} is a part of itself"))?;
            ensure(!parts.iter().take(place).any(|other| other == part), || {
                format!("table {:?} has the part {part:?} twice", self.name)
            })?;
        }
        let agents = self.agents();
        ensure(agents.len() <= MAX_PARTS, || {
            format!("table {:?} has {} agents: give up to {MAX_PARTS}", self.name, agents.len())
        })?;
        let settings = self.agent_settings();
        let long = agents.iter().chain(settings.iter().map(|(_, value)| value));
        ensure(
            settings.len() <= MAX_PARTS && long.clone().all(|it| it.len() <= MAX_AGENT_BYTES),
            || {
                format!(
                    "the definition of the agents of table {:?} takes more than {MAX_AGENT_BYTES} bytes",
                    self.name
                )
            },
        )
    }
}

fn column_difference(mine: &ColumnDef, theirs: &ColumnDef) -> Option<String> {
    if mine.name != theirs.name {
        return Some(format!("it is called {:?} and {:?}", mine.name, theirs.name));
    }
    let ColumnDef { id, kind, nullable, indexed, declared, name } = mine;
    let what = if (*kind, *nullable, declared) != (theirs.kind, theirs.nullable, &theirs.declared) {
        "has another type or declaration"
    } else if *indexed != theirs.indexed {
        "is indexed in only one of them"
    } else if *id != theirs.id {
        "was declared again (it has another number)"
    } else {
        return None;
    };
    Some(format!("{name:?} {what}"))
}

/// The charset and collation in the table's options: defaults for its text columns.
fn text_rules(schema: &Schema) -> Vec<&str> {
    let options = schema.declared.as_ref().map_or("", |declared: &DeclaredTable| &declared.options);
    let before_texts = options.split('\'').next().unwrap_or_default();
    let words = before_texts.split_whitespace();
    words.filter(|word| word.starts_with("CHARSET=") || word.starts_with("COLLATE=")).collect()
}

fn refused(message: String) -> Error {
    Error::request(RequestPart::Schema, message)
}
