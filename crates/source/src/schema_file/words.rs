//! Ranked search in schema descriptions: columns, and settings by Sphinx's names.

use std::{collections::BTreeMap, path::Path};

use remora_engine::WordsDef;
use remora_words::settings::{Files, Settings};
use serde::{Deserialize, Serialize};

use super::DeclaredWords;
use crate::{Error, Result};

/// `[words]`: the columns, in the order of fields, and settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordsFile {
    /// The names of the searched columns.
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
    /// The description of ranked search over columns with these names.
    pub(super) fn new(words: &WordsDef, columns: Vec<String>) -> Self {
        let setting =
            |(name, value): &(String, String)| (name.clone(), WordSetting::Text(value.clone()));
        Self { columns, settings: words.settings.iter().map(setting).collect() }
    }

    /// The definition over the columns at these positions. Files in settings are read.
    ///
    /// # Errors
    /// A setting is unknown or invalid, or a file cannot be read.
    pub(super) fn definition(&self, columns: Vec<usize>) -> Result<WordsDef> {
        let (settings, files) = self.read(Path::new(""))?;
        WordsDef::new(0, columns, &settings, files)
            .map_err(|error| Error::Schema(error.to_string()))
    }

    /// The declaration for a table that a source defines and that is not known yet. Files in settings are read;
    /// relative paths start at `folder`.
    ///
    /// # Errors
    /// No column is named, a setting is unknown or invalid, settings contradict each other, or a file cannot be read.
    pub fn declared(&self, folder: &Path) -> Result<DeclaredWords> {
        if self.columns.is_empty() {
            return Err(Error::Schema("words: columns names no column".to_owned()));
        }
        let (settings, files) = self.read(folder)?;
        // A placeholder column: only the settings are checked.
        WordsDef::new(0, vec![0], &settings, files.clone())
            .map_err(|error| Error::Schema(error.to_string()))?;
        let pairs = settings.to_pairs().into_iter();
        let settings = pairs.map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(DeclaredWords { columns: self.columns.clone(), settings, files })
    }

    /// The settings and their files.
    fn read(&self, folder: &Path) -> Result<(Settings, Vec<(String, String)>)> {
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            let value = match value {
                WordSetting::Number(number) => number.to_string(),
                WordSetting::Text(text) => text.clone(),
            };
            settings.set(name, &value).map_err(|error| Error::Schema(format!("words: {error}")))?;
        }
        let files = Files::read(&settings, &mut |name| std::fs::read_to_string(folder.join(name)));
        let files = files.map_err(|error| Error::Schema(format!("words: {error}")))?;
        let files = files.iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
        Ok((settings, files.collect()))
    }
}
