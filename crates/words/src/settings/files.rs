//! The files named by settings, read once by the code that builds an analyzer.

use std::{collections::BTreeMap, io};

use super::Settings;
use crate::{Result, WordsError};

/// The contents of the files that settings name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Files {
    texts: BTreeMap<String, String>,
}

impl Files {
    /// No files, for settings that name none.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads each file that the settings name, once.
    ///
    /// # Errors
    /// [`WordsError::Setting`] if a file is missing or cannot be read.
    pub fn read(
        settings: &Settings,
        read: &mut dyn FnMut(&str) -> io::Result<String>,
    ) -> Result<Self> {
        let mut files = Self::default();
        for (setting, names) in settings.file_names() {
            for name in names {
                if files.texts.contains_key(name) {
                    continue;
                }
                let text = read(name).map_err(|error| WordsError::Setting {
                    setting: setting.to_owned(),
                    message: format!("file '{name}': {error}"),
                })?;
                files.texts.insert(name.clone(), text);
            }
        }
        Ok(files)
    }

    /// The name and content of each file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The contents of these files.
    pub(crate) fn texts(&self, setting: &str, names: &[String]) -> Result<Vec<&str>> {
        let text = |name: &String| {
            self.texts.get(name).map(String::as_str).ok_or_else(|| WordsError::Setting {
                setting: setting.to_owned(),
                message: format!("file '{name}' was not read: name a file that is there"),
            })
        };
        names.iter().map(text).collect()
    }
}
