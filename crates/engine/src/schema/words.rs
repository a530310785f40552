//! Keywords of a table: which text columns ranked search reads, and how a text becomes keywords.
//!
//! Each set of settings has a number. A segment stores its keywords under that number, so changed settings get a new
//! number, and segments with the old one are rebuilt.

use std::sync::{Arc, OnceLock};

use remora_index::segment::WordsSpec;
use remora_words::{
    analysis::Analyzer,
    settings::{Files, Settings},
};
use serde::{Deserialize, Serialize};

use crate::{Error, RequestPart, Result};

/// The declaration of a table's keywords.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WordsDef {
    /// Stable number. Changed settings get another number.
    pub id: u32,
    /// Places in `columns`: field 0, 1, and so on.
    pub columns: Vec<usize>,
    /// The settings that differ from their defaults, by Sphinx's names.
    pub settings: Vec<(String, String)>,
    /// The contents of files that settings name, read when the keywords were declared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, String)>,
    #[serde(skip)]
    analyzer: Arc<OnceLock<Arc<Analyzer>>>,
}

impl PartialEq for WordsDef {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.columns == other.columns
            && self.settings == other.settings
            && self.files == other.files
    }
}

/// The bit that distinguishes the numbers of keywords in a segment from those of text indexes.
const WORDS_BIT: u32 = 1 << 31;

impl WordsDef {
    /// Declares the keywords of these columns.
    ///
    /// # Errors
    /// [`Error::Request`] if a setting is unknown or its value is invalid.
    pub fn new(
        id: u32,
        columns: Vec<usize>,
        settings: &Settings,
        files: Vec<(String, String)>,
    ) -> Result<Self> {
        let pairs = settings.to_pairs().into_iter();
        let settings = pairs.map(|(name, value)| (name.to_owned(), value)).collect();
        let words = Self { id, columns, settings, files, analyzer: Arc::default() };
        words.analyzer()?;
        Ok(words)
    }

    /// The same declaration with another number.
    #[must_use]
    pub fn with_id(self, id: u32) -> Self {
        Self { id, ..self }
    }

    /// The parsed settings.
    ///
    /// # Errors
    /// [`Error::Request`] if a setting is unknown or its value is invalid.
    pub fn settings(&self) -> Result<Settings> {
        let mut settings = Settings::default();
        for (name, value) in &self.settings {
            settings.set(name, value).map_err(refused)?;
        }
        Ok(settings)
    }

    /// The analyzer that makes keywords of texts and queries; created once.
    ///
    /// # Errors
    /// [`Error::Request`] if a setting or a file is invalid.
    pub fn analyzer(&self) -> Result<Arc<Analyzer>> {
        if let Some(analyzer) = self.analyzer.get() {
            return Ok(Arc::clone(analyzer));
        }
        let settings = self.settings()?;
        let files = Files::read(&settings, &mut |name| {
            let file = self.files.iter().find(|(other, _)| other == name);
            file.map(|(_, text)| text.clone()).ok_or_else(|| std::io::ErrorKind::NotFound.into())
        });
        let files = files.map_err(refused)?;
        let analyzer = Arc::new(Analyzer::new(&settings, &files).map_err(refused)?);
        Ok(Arc::clone(self.analyzer.get_or_init(|| analyzer)))
    }

    /// The number of the keywords in segments.
    pub(crate) fn segment_id(&self) -> u32 {
        self.id | WORDS_BIT
    }

    /// How segments build their keywords; `None` if the analyzer cannot be created.
    pub(crate) fn spec(&self) -> Option<WordsSpec> {
        let analyzer = self.analyzer().ok()?;
        Some(WordsSpec { id: self.segment_id(), fields: self.columns.len(), analyzer })
    }
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::request(RequestPart::Schema, error.to_string())
}
