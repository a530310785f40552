//! Ranked search that is declared by column names, and the part of it that a table can have.

use remora_engine::{ColumnType, HIDDEN_KEY, Schema, WordsDef};
use remora_words::settings::Settings;

/// Ranked search for a table that a followed source defines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredWords {
    /// The names of the searched columns, in the order of fields.
    pub columns: Vec<String>,
    /// Settings by Sphinx's names.
    pub settings: Vec<(String, String)>,
    /// The files that settings name, with their contents.
    pub files: Vec<(String, String)>,
}

/// The available part of a declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundWords {
    /// The ranked search; `None` if no column exists or the settings are invalid.
    pub words: Option<WordsDef>,
    /// The unavailable parts, as messages.
    pub missing: Vec<String>,
}

impl DeclaredWords {
    /// A table's ranked search as a declaration.
    pub fn of_schema(schema: &Schema) -> Option<Self> {
        let words = schema.words.as_ref()?;
        let columns = words.columns.iter().filter_map(|&place| schema.columns.get(place));
        Some(Self {
            columns: columns.map(|column| column.name.clone()).collect(),
            settings: words.settings.clone(),
            files: words.files.clone(),
        })
    }

    /// The ranked search of a table with this definition, over the declared columns that exist and are text. If it has
    /// the same meaning as that of `previous`, the table's previous definition, it keeps the number; otherwise it gets
    /// the next one.
    pub fn on(&self, schema: &Schema, previous: Option<&Schema>) -> FoundWords {
        let mut found = FoundWords::default();
        let mut places = Vec::with_capacity(self.columns.len());
        for name in &self.columns {
            match text_column(schema, name) {
                Ok(place) => places.push(place),
                Err(why) => found.missing.push(why),
            }
        }
        if places.is_empty() {
            found.missing.push("no column is left, so the table has no words".to_owned());
            return found;
        }
        match self.made(schema, places, previous) {
            Ok(words) => found.words = Some(words),
            Err(error) => found.missing.push(error.to_string()),
        }
        found
    }

    fn made(
        &self,
        schema: &Schema,
        places: Vec<usize>,
        previous: Option<&Schema>,
    ) -> remora_engine::Result<WordsDef> {
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            settings.set(name, value).map_err(|error| {
                remora_engine::Error::request(remora_engine::RequestPart::Schema, error.to_string())
            })?;
        }
        let words = WordsDef::new(0, places, &settings, self.files.clone())?;
        let words = match previous.and_then(|before| Some((before, before.words.as_ref()?))) {
            None => words,
            Some((before, old)) => {
                let is_same = words.settings == old.settings
                    && words.files == old.files
                    && numbers(schema, &words.columns) == numbers(before, &old.columns);
                let id = if is_same { old.id } else { old.id.saturating_add(1) };
                words.with_id(id)
            }
        };
        // Checks the number of columns and duplicates.
        Schema { words: Some(words.clone()), ..schema.clone() }.validate()?;
        Ok(words)
    }
}

/// The position of the text column of this name, case-insensitively.
fn text_column(schema: &Schema, name: &str) -> Result<usize, String> {
    let wanted = name.to_lowercase();
    let mut columns = schema.columns.iter().enumerate();
    let found = columns
        .find(|(_, column)| column.name.to_lowercase() == wanted && column.name != HIDDEN_KEY);
    match found {
        None => Err(format!("the table has no column {name:?}")),
        Some((_, column)) if column.kind != ColumnType::Text => {
            Err(format!("column {:?} is {:?} and no text", column.name, column.kind))
        }
        Some((place, _)) => Ok(place),
    }
}

/// The column numbers at these positions.
fn numbers(schema: &Schema, places: &[usize]) -> Vec<u32> {
    let columns = places.iter().filter_map(|&place| schema.columns.get(place));
    columns.map(|column| column.id).collect()
}

#[cfg(test)]
mod tests {
    use remora_engine::ColumnDef;

    use super::*;

    /// A table with these columns (number, name, type); the first is its key.
    fn table(columns: &[(u32, &str, ColumnType)]) -> Schema {
        let columns = columns.iter().enumerate().map(|(place, (id, name, kind))| ColumnDef {
            id: *id,
            name: (*name).to_owned(),
            kind: *kind,
            nullable: place > 0,
            indexed: place == 0,
            declared: None,
        });
        Schema::over("shop.articles", columns.collect(), vec![0])
    }

    fn declared(columns: &[&str], settings: &[(&str, &str)]) -> DeclaredWords {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        DeclaredWords {
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            settings: settings.iter().map(pair).collect(),
            files: Vec::new(),
        }
    }

    const ARTICLES: [(u32, &str, ColumnType); 4] = [
        (1, "id", ColumnType::Int(32)),
        (2, "title", ColumnType::Text),
        (3, "year", ColumnType::Int(16)),
        (4, "Body", ColumnType::Text),
    ];

    #[test]
    fn columns_are_found_by_name_in_field_order() {
        let found = declared(&["body", "TITLE"], &[("morphology", "stem_en")]);
        let found = found.on(&table(&ARTICLES), None);
        let words = found.words.unwrap();
        assert_eq!((words.id, words.columns), (0, vec![3, 1]));
        assert_eq!(words.settings, [("morphology".to_owned(), "stem_en".to_owned())]);
        assert!(found.missing.is_empty());
    }

    #[test]
    fn unavailable_columns_are_named() {
        let found = declared(&["title", "text", "year"], &[]).on(&table(&ARTICLES), None);
        assert_eq!(found.words.unwrap().columns, [1]);
        let missing = found.missing.join("; ");
        assert!(missing.contains("no column \"text\""), "{missing}");
        assert!(missing.contains("column \"year\" is Int(16) and no text"), "{missing}");
        for (declared, part) in [
            (declared(&["year"], &[]), "no column is left"),
            (declared(&["title", "Title"], &[]), "twice"),
            (declared(&["title"], &[("morphology", "latin")]), "latin"),
            (declared(&["title"], &[("stopwords", "gone.txt")]), "gone.txt"),
        ] {
            let found = declared.on(&table(&ARTICLES), None);
            assert_eq!(found.words, None, "{part}");
            let missing = found.missing.join("; ");
            assert!(missing.contains(part), "{missing} / {part}");
        }
    }

    /// Another number makes the engine index the rows again; the same number keeps the segments.
    #[test]
    fn changed_ranked_search_gets_a_new_number() {
        let words = declared(&["title", "body"], &[]);
        let mut before = table(&ARTICLES);
        before.words = words.on(&before, None).words.map(|made| made.with_id(7));
        let number = |words: &DeclaredWords, after: &Schema| {
            words.on(after, Some(&before)).words.map(|made| made.id)
        };
        assert_eq!(number(&words, &before), Some(7));
        // A column is renamed, one moved, and one added.
        let moved = table(&[
            (1, "id", ColumnType::Int(32)),
            (9, "note", ColumnType::Text),
            (4, "Body", ColumnType::Text),
            (2, "headline", ColumnType::Text),
        ]);
        let renamed = declared(&["headline", "body"], &[]);
        assert_eq!(number(&renamed, &moved), Some(7));
        assert_eq!(renamed.on(&moved, Some(&before)).words.unwrap().columns, [3, 2]);
        // A column is dropped, another column has the old name, and settings differ.
        let dropped = table(&[ARTICLES[0], ARTICLES[1]]);
        assert_eq!(number(&words, &dropped), Some(8));
        let anew = table(&[ARTICLES[0], (9, "title", ColumnType::Text), ARTICLES[3]]);
        assert_eq!(number(&words, &anew), Some(8));
        let other = declared(&["title", "body"], &[("min_infix_len", "3")]);
        assert_eq!(number(&other, &before), Some(8));
        assert_eq!(number(&declared(&["body", "title"], &[]), &before), Some(8));
        assert_eq!(number(&words, &table(&ARTICLES[..1])), None);
    }

    #[test]
    fn ranked_search_of_a_table_can_be_redeclared() {
        let words = declared(&["Body", "title"], &[("min_prefix_len", "2")]);
        let mut schema = table(&ARTICLES);
        assert_eq!(DeclaredWords::of_schema(&schema), None);
        schema.words = words.on(&schema, None).words;
        assert_eq!(DeclaredWords::of_schema(&schema), Some(words));
    }
}
