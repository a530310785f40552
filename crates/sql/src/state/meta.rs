//! Results and cost of the last search, for SHOW META.

use std::sync::Arc;

use remora_engine::{Error as EngineError, QueryReport, Selection, TextQuery, Value};
use remora_mysql::ErrorCode;

use super::SessionState;
use crate::{
    Result,
    agents::AgentOptions,
    error::from_engine,
    parse::{Source, Statement},
};

/// The most keywords that SHOW META lists one by one.
const MAX_WORDS: usize = 64;

/// The last search of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meta {
    /// The number of rows found, if `is_counted`.
    pub total_found: u64,
    /// Whether `total_found` was counted.
    pub is_counted: bool,
    /// Whether the search had a condition of a text index, or no text condition at all, rather than
    /// a keyword query.
    pub is_of_texts: bool,
    /// The statement whose rows were not counted, and the values of its `?`.
    pub statement: Option<(Arc<Source>, Vec<Value>)>,
    /// Or the selection that the engine counts, if the search stopped at the best rows.
    pub uncounted: Option<Selection>,
    /// How many of the rows Sphinx's dialect could have returned (`max_matches`).
    pub most: u64,
    /// The engine's report of the search.
    pub report: QueryReport,
    /// The table that was searched.
    pub table: String,
    /// The options with which other servers were asked. SHOW META asks them again for keyword
    /// statistics.
    pub asked: AgentOptions,
    /// The agents that were left out, which are not asked again; `None` if they are not all known
    /// by name.
    pub without: Option<Vec<String>>,
    /// For CALL PQ, the names and values that are shown instead.
    pub figures: Vec<(String, String)>,
    /// The keywords of the query. Each is counted when it is shown.
    pub words: Vec<TextQuery>,
}

/// A session's last search, for a log of queries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastSearch {
    /// The table, or the first of several.
    pub table: String,
    /// The text of the first keyword query; empty without one.
    pub query: String,
    /// The number of rows found, or where they were not counted, of those returned.
    pub found: u64,
    /// The sum of the numbers of rows that contain each of its keywords; `None` if they are not known here.
    pub documents: Option<u64>,
}

impl Meta {
    /// Whether this describes keyword queries or, in Sphinx's dialect, a SELECT without any.
    pub(crate) fn is_of_keywords(&self) -> bool {
        !self.is_of_texts && self.words.iter().all(|word| matches!(word, TextQuery::Keywords(_)))
    }

    /// How many stored texts the last search read to verify matches.
    #[cfg(test)]
    pub(crate) fn texts_read(&self) -> u64 {
        self.report.texts_read
    }
}

impl SessionState {
    /// Remembers keyword queries for SHOW META, each once. Returns 1317 or 3024 if the statement
    /// must end.
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
        meta.report.keyword_documents = self.warn_of_keywords(&meta)?;
        meta.without = self.missing_agents();
        self.meta = Some(Box::new(meta));
        self.searches += 1;
        Ok(())
    }

    /// The last search, as it was planned.
    pub(crate) fn last_search(&self) -> LastSearch {
        let Some(meta) = &self.meta else { return LastSearch::default() };
        let found = if meta.is_counted { meta.total_found } else { meta.report.returned };
        let query = meta.words.iter().find_map(|query| match query {
            TextQuery::Keywords(query) => Some(query.text.clone()),
            _ => None,
        });
        LastSearch {
            table: meta.table.clone(),
            query: query.unwrap_or_default(),
            found,
            documents: meta.report.keyword_documents,
        }
    }

    /// Warns of keyword queries that were changed before they ran. Returns the sum of the numbers of rows that contain
    /// each of their keywords, if it is known.
    fn warn_of_keywords(&mut self, meta: &Meta) -> Result<Option<u64>> {
        let reader = self.reading_own()?;
        let mut documents = None;
        let mut is_known = true;
        for query in &meta.words {
            let TextQuery::Keywords(query) = query else { continue };
            match reader.keyword_warning(&meta.table, query) {
                Ok((warning, counted)) => {
                    warning.into_iter().for_each(|it| self.warn(ErrorCode::SearchWarning, it));
                    is_known &= counted.is_some();
                    documents = Some(documents.unwrap_or(0) + counted.unwrap_or(0));
                }
                Err(error @ EngineError::Ended(_)) => return Err(from_engine(&error)),
                Err(_) => is_known = false,
            }
        }
        Ok(documents.filter(|_| is_known))
    }

    /// Warns if the remembered search was changed before it ran.
    pub(crate) fn warn_of_search(&mut self) {
        let warning = self.meta.as_ref().and_then(|meta| meta.report.warning.clone());
        if let Some(warning) = warning {
            self.warn(ErrorCode::SearchWarning, warning);
        }
    }

    /// Remembers the statement of the keyword query, whose rows may be counted later. A statement without one changes
    /// nothing.
    pub(crate) fn note_counting(&mut self, statement: &Statement<'_>, most: u64) {
        if let Some(meta) = &mut self.meta
            && meta.is_of_keywords()
            && !meta.is_counted
            && meta.uncounted.is_none()
            && meta.statement.is_none()
        {
            meta.statement = Some((Arc::clone(&statement.source), statement.parameters.to_vec()));
            meta.most = most;
        }
    }

    /// Records how many rows the remembered keyword query returned.
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
        self.searches += 1;
        self.meta = Some(Box::new(Meta {
            total_found,
            is_counted: true,
            is_of_texts: !words.iter().any(|word| matches!(word, TextQuery::Keywords(_))),
            statement: None,
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

    /// Remembers a search that found only the best rows and did not count the others.
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
