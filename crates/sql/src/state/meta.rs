//! What the last search found and took, for SHOW META.

use remora_engine::{Error as EngineError, QueryReport, Selection, TextQuery};
use remora_mysql::ErrorCode;

use super::SessionState;
use crate::{Result, agents::AgentOptions, error::from_engine, parse::CountQuery};

/// Most words that are told of one by one.
const MAX_WORDS: usize = 64;

/// The last search of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    /// How many rows it found.
    pub total_found: u64,
    /// Whether that was counted.
    pub is_counted: bool,
    /// Whether the engine was asked for texts, or for rows without any.
    pub is_of_texts: bool,
    /// What counts them, where it was not counted.
    pub count_query: Option<CountQuery>,
    /// Or what the engine counts, where it found the best rows alone.
    pub uncounted: Option<Selection>,
    /// How many of them could be shown, in Sphinx's dialect.
    pub most: u64,
    /// What it took.
    pub report: QueryReport,
    /// The table that was searched.
    pub table: String,
    /// How other servers were asked for it, which are asked again for its words.
    pub asked: AgentOptions,
    /// Those that were left out then, if that is known of each, and are not asked.
    pub without: Option<Vec<String>>,
    /// What is shown instead, of CALL PQ: names and values.
    pub figures: Vec<(String, String)>,
    /// Its words, of which each is counted when they are shown.
    pub words: Vec<TextQuery>,
}

impl Meta {
    /// Whether it is of queries by keywords, or, in Sphinx's dialect, of a SELECT without any.
    pub(crate) fn is_of_keywords(&self) -> bool {
        !self.is_of_texts && self.words.iter().all(|word| matches!(word, TextQuery::Keywords(_)))
    }

    /// How many texts the last search read back.
    #[cfg(test)]
    pub(crate) fn texts_read(&self) -> u64 {
        self.report.texts_read
    }
}

impl SessionState {
    /// Remembers queries by keywords for SHOW META, each once. 1317 and 3024 if the statement is to end.
    pub(crate) fn note_keywords(&mut self, searched: Vec<(String, TextQuery)>) -> Result<()> {
        let mut meta = Meta { asked: self.asked_of_agents(), ..Meta::default() };
        for (table, query) in searched {
            let text = |query: &TextQuery| match query {
                TextQuery::Keywords(query) => query.text.clone(),
                _ => String::new(),
            };
            let is_known = meta.words.iter().any(|known| text(known) == text(&query));
            if !is_known && (meta.table.is_empty() || meta.table == table) {
                meta.table = table;
                meta.words.push(query);
            }
        }
        self.warn_of_keywords(&meta)?;
        meta.without = self.missing_agents();
        self.meta = Some(Box::new(meta));
        Ok(())
    }

    /// Warns of what is changed of queries by keywords.
    fn warn_of_keywords(&mut self, meta: &Meta) -> Result<()> {
        let reader = self.reading();
        for query in &meta.words {
            let TextQuery::Keywords(query) = query else { continue };
            match reader.keyword_warning(&meta.table, query) {
                Ok(Some(warning)) => self.warn(ErrorCode::SearchWarning, warning),
                Err(error @ EngineError::Ended(_)) => return Err(from_engine(&error)),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Warns of what was changed of the search that is remembered.
    pub(crate) fn warn_of_search(&mut self) {
        let warning = self.meta.as_ref().and_then(|meta| meta.report.warning.clone());
        if let Some(warning) = warning {
            self.warn(ErrorCode::SearchWarning, warning);
        }
    }

    /// Remembers how the rows are counted that the query by keywords finds.
    pub(crate) fn note_counting(
        &mut self,
        count_query: impl FnOnce() -> Option<CountQuery>,
        most: u64,
    ) {
        if let Some(meta) = &mut self.meta
            && meta.is_of_keywords()
            && !meta.is_counted
            && meta.uncounted.is_none()
        {
            meta.count_query = count_query();
            meta.most = most;
        }
    }

    /// How many rows the query by keywords gave that was remembered.
    pub(crate) fn note_returned(&mut self, rows: u64) {
        if let Some(meta) = &mut self.meta
            && meta.is_of_keywords()
        {
            meta.report.returned = rows;
        }
    }

    /// Remembers a search for SHOW META.
    pub(crate) fn note_search(
        &mut self,
        selection: &Selection,
        report: &QueryReport,
        total_found: u64,
    ) {
        let mut words = Vec::new();
        if let Some(text) = &selection.text {
            collect(text, &mut words);
        }
        let table = selection.table.clone();
        self.meta = Some(Box::new(Meta {
            total_found,
            is_counted: true,
            is_of_texts: !words.iter().any(|word| matches!(word, TextQuery::Keywords(_))),
            count_query: None,
            uncounted: None,
            most: u64::MAX,
            report: report.clone(),
            table,
            asked: self.asked_of_agents(),
            without: self.missing_agents(),
            figures: Vec::new(),
            words,
        }));
    }

    /// Remembers a search for SHOW META that found the best rows and did not count the others.
    pub(crate) fn note_best(&mut self, selection: &Selection, report: &QueryReport) {
        self.note_search(selection, report, 0);
        if let Some(meta) = &mut self.meta {
            (meta.is_counted, meta.uncounted) = (false, Some(selection.clone()));
        }
    }
}

fn collect(query: &TextQuery, words: &mut Vec<TextQuery>) {
    match query {
        TextQuery::And(parts) | TextQuery::Or(parts) => {
            parts.iter().for_each(|part| collect(part, words));
        }
        TextQuery::Not(part) => collect(part, words),
        TextQuery::Term(_) | TextQuery::Piece(_) | TextQuery::Keywords(_) => {
            if words.len() < MAX_WORDS && !words.contains(query) {
                words.push(query.clone());
            }
        }
    }
}
