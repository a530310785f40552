//! Words that are declared for a table by the names of its columns, and what of them a table can have.

use remora_engine::{ColumnType, HIDDEN_KEY, Schema, WordsDef};
use remora_words::settings::Settings;

/// The words of a table whose columns somebody else defines: a source that is followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredWords {
    /// The names of the columns whose words are searched, in the order of fields.
    pub columns: Vec<String>,
    /// Settings by Sphinx's names.
    pub settings: Vec<(String, String)>,
    /// The files that settings name, and what stands in them.
    pub files: Vec<(String, String)>,
}

/// What of declared words a table has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundWords {
    /// The words; `None` if it has none of the columns, or they cannot be made.
    pub words: Option<WordsDef>,
    /// What is declared and cannot be had, for people.
    pub missing: Vec<String>,
}

impl DeclaredWords {
    /// The words that a table has, as they would be declared.
    pub fn of_schema(schema: &Schema) -> Option<Self> {
        let words = schema.words.as_ref()?;
        let columns = words.columns.iter().filter_map(|&place| schema.columns.get(place));
        Some(Self {
            columns: columns.map(|column| column.name.clone()).collect(),
            settings: words.settings.clone(),
            files: words.files.clone(),
        })
    }

    /// The words that a table of this definition has of them: of those of the columns that it has as texts.
    /// Those that mean what the words of `previous` mean, the same table before, have their number; others
    /// have the next.
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
        // How many columns there may be, and that none is named twice.
        Schema { words: Some(words.clone()), ..schema.clone() }.validate()?;
        Ok(words)
    }
}

/// The place of the column of this name, without regard to case, if it is one of text.
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

/// The stable numbers of the columns at these places.
fn numbers(schema: &Schema, places: &[usize]) -> Vec<u32> {
    let columns = places.iter().filter_map(|&place| schema.columns.get(place));
    columns.map(|column| column.id).collect()
}

#[cfg(test)]
mod tests {
    use remora_engine::ColumnDef;

    use super::*;

    /// A table of these columns, by their numbers, names and types; the first is its key.
    fn table(columns: &[(u32, &str, ColumnType)]) -> Schema {
        let columns = columns.iter().enumerate().map(|(place, (id, name, kind))| ColumnDef {
            id: *id,
            name: (*name).to_owned(),
            kind: *kind,
            nullable: place > 0,
            indexed: place == 0,
            declared: None,
        });
        Schema {
            name: "shop.articles".to_owned(),
            columns: columns.collect(),
            primary_key: vec![0],
            texts: Vec::new(),
            indexes: Vec::new(),
            required: None,
            synonyms: Vec::new(),
            words: None,
            paths: Vec::new(),
            declared: None,
        }
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
    fn columns_are_found_by_name_in_the_order_of_fields() {
        let found = declared(&["body", "TITLE"], &[("morphology", "stem_en")]);
        let found = found.on(&table(&ARTICLES), None);
        let words = found.words.unwrap();
        assert_eq!((words.id, words.columns), (0, vec![3, 1]));
        assert_eq!(words.settings, [("morphology".to_owned(), "stem_en".to_owned())]);
        assert!(found.missing.is_empty());
    }

    #[test]
    fn what_cannot_be_had_is_named() {
        let found = declared(&["title", "text", "year"], &[]).on(&table(&ARTICLES), None);
        assert_eq!(found.words.unwrap().columns, [1]);
        let told = found.missing.join("; ");
        assert!(told.contains("no column \"text\""), "{told}");
        assert!(told.contains("column \"year\" is Int(16) and no text"), "{told}");
        for (declared, part) in [
            (declared(&["year"], &[]), "no column is left"),
            (declared(&["title", "Title"], &[]), "twice"),
            (declared(&["title"], &[("morphology", "latin")]), "latin"),
            (declared(&["title"], &[("stopwords", "gone.txt")]), "gone.txt"),
        ] {
            let found = declared.on(&table(&ARTICLES), None);
            assert_eq!(found.words, None, "{part}");
            let told = found.missing.join("; ");
            assert!(told.contains(part), "{told} / {part}");
        }
    }

    /// Another number has the engine index the rows anew, the same lets the segments stand.
    #[test]
    fn the_number_is_another_where_the_words_are() {
        let words = declared(&["title", "body"], &[]);
        let mut before = table(&ARTICLES);
        before.words = words.on(&before, None).words.map(|made| made.with_id(7));
        let number = |words: &DeclaredWords, after: &Schema| {
            words.on(after, Some(&before)).words.map(|made| made.id)
        };
        assert_eq!(number(&words, &before), Some(7));
        // Renamed, moved, and one more beside.
        let moved = table(&[
            (1, "id", ColumnType::Int(32)),
            (9, "note", ColumnType::Text),
            (4, "Body", ColumnType::Text),
            (2, "headline", ColumnType::Text),
        ]);
        let renamed = declared(&["headline", "body"], &[]);
        assert_eq!(number(&renamed, &moved), Some(7));
        assert_eq!(renamed.on(&moved, Some(&before)).words.unwrap().columns, [3, 2]);
        // A column that is left, another column of the old name, other settings.
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
    fn what_a_table_has_can_be_declared_again() {
        let words = declared(&["Body", "title"], &[("min_prefix_len", "2")]);
        let mut schema = table(&ARTICLES);
        assert_eq!(DeclaredWords::of_schema(&schema), None);
        schema.words = words.on(&schema, None).words;
        assert_eq!(DeclaredWords::of_schema(&schema), Some(words));
    }
}
