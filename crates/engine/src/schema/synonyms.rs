//! The synonyms of a table by word, normalised once when the table is opened.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use remora_index::text::Normalization;

use crate::Schema;

/// The groups of synonyms in a schema, by normalised word.
#[derive(Default)]
pub(crate) struct Synonyms {
    groups: Vec<Arc<[String]>>,
    /// For each normalisation of the text indexes: the groups that contain a word.
    by_word: Vec<(Normalization, HashMap<String, Vec<u32>>)>,
}

impl Synonyms {
    /// The synonyms of a schema. Cost: every word is normalised once per normalisation.
    pub fn of(schema: &Schema) -> Self {
        if schema.synonyms.is_empty() {
            return Self::default();
        }
        let groups = schema.synonyms.iter().map(|group| Arc::from(group.as_slice()));
        let mut synonyms = Self { groups: groups.collect(), by_word: Vec::new() };
        for text in &schema.texts {
            let known = synonyms.by_word.iter().any(|(one, _)| *one == text.normalization);
            if !known {
                let words = words(&schema.synonyms, text.normalization);
                synonyms.by_word.push((text.normalization, words));
            }
        }
        synonyms
    }

    /// The words of all groups that contain `text`, compared after some text index's normalisation; includes the word
    /// itself. Groups are in the schema's order.
    pub fn of_word(&self, text: &str) -> impl Iterator<Item = &str> {
        let mut found = BTreeSet::new();
        for (normalization, words) in &self.by_word {
            found.extend(words.get(&*normalization.apply(text)).into_iter().flatten().copied());
        }
        let groups = found.into_iter().filter_map(|group| self.groups.get(group as usize));
        groups.flat_map(|group| group.iter()).map(String::as_str)
    }
}

fn words(groups: &[Vec<String>], normalization: Normalization) -> HashMap<String, Vec<u32>> {
    let mut words: HashMap<String, Vec<u32>> = HashMap::new();
    for (number, group) in (0u32..).zip(groups) {
        for word in group {
            words.entry(normalization.apply(word).into_owned()).or_default().push(number);
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TextDef;

    #[test]
    fn words_are_found_however_they_are_written() {
        let mut schema = crate::encode::strategies::table(&[crate::ColumnType::Text]);
        let text = |id, fold_case| TextDef {
            id,
            columns: vec![0],
            delimiter: None,
            normalization: Normalization { fold_case, ..Normalization::default() },
        };
        let group = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        schema.texts = vec![text(0, true), text(1, false)];
        schema.synonyms =
            vec![group(&["Car", "automobile"]), group(&["bike"]), group(&["CAR", "wagon"])];
        let synonyms = Synonyms::of(&schema);
        let of = |word| synonyms.of_word(word).collect::<Vec<_>>();
        assert_eq!(of("ｃａｒ"), ["Car", "automobile", "CAR", "wagon"]);
        assert_eq!(of("bike"), ["bike"]);
        assert_eq!(of("boat"), [""; 0]);
        schema.texts.remove(0);
        let exact = Synonyms::of(&schema);
        assert_eq!(exact.of_word("CAR").collect::<Vec<_>>(), ["CAR", "wagon"]);
    }
}
