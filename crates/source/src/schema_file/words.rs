//! The words of a table, for ranked search: columns, and settings by Sphinx's names.

use std::collections::BTreeMap;

use remora_engine::WordsDef;
use remora_words::settings::{Files, Settings};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// `[words]`: the columns, in the order of fields, and settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordsFile {
    /// The names of the columns whose words are searched.
    pub columns: Vec<String>,
    /// Settings: `morphology = "stem_en"`, `min_infix_len = 2`.
    #[serde(flatten)]
    pub settings: BTreeMap<String, WordSetting>,
}

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WordSetting {
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
}

impl WordsFile {
    /// The description of declared words over columns of these names.
    pub(super) fn new(words: &WordsDef, columns: Vec<String>) -> Self {
        let setting =
            |(name, value): &(String, String)| (name.clone(), WordSetting::Text(value.clone()));
        Self { columns, settings: words.settings.iter().map(setting).collect() }
    }

    /// The words over the columns at these positions. The files that settings name are read.
    ///
    /// # Errors
    /// A setting is unknown or its value not understood, or a file cannot be read.
    pub(super) fn definition(&self, columns: Vec<usize>) -> Result<WordsDef> {
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            let value = match value {
                WordSetting::Number(number) => number.to_string(),
                WordSetting::Text(text) => text.clone(),
            };
            settings.set(name, &value).map_err(|error| Error::Schema(format!("words: {error}")))?;
        }
        let files = Files::read(&settings, &mut |name| std::fs::read_to_string(name));
        let files = files.map_err(|error| Error::Schema(format!("words: {error}")))?;
        let files = files.iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
        WordsDef::new(0, columns, &settings, files.collect())
            .map_err(|error| Error::Schema(error.to_string()))
    }
}
