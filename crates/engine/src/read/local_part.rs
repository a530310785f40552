//! A part of a distributed table on this server.

use std::sync::Arc;

use super::{
    gathered::{Answer, MAX_FACET_VALUES, Part, PartRows, PartValues},
    reader::Reader,
};
use crate::{
    FacetRequest, KeywordQuery, KeywordStatistics, Result, ScanRequest, Schema, Selection,
    TextQuery, WantedStatistics, interrupt::InterruptCheck,
};

/// Keys in a page.
const PAGE_KEYS: usize = if cfg!(test) { 7 } else { 16_384 };

/// A table of this server, or several as one, at the snapshot of a reader.
pub struct LocalPart {
    reader: Reader,
    table: String,
    name: String,
    schema: Arc<Schema>,
    rows: u64,
    version: String,
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl LocalPart {
    /// A reader's table as a part.
    ///
    /// # Errors
    /// Those of [`Reader::row_count`].
    pub fn new(reader: &Reader, table: &str) -> Result<Self> {
        let version = reader.rows_version(table)?;
        Self::of(reader.clone(), table, version)
    }

    fn of(reader: Reader, table: &str, version: String) -> Result<Self> {
        Ok(Self {
            table: table.to_owned(),
            name: crate::united_names(table).collect::<Vec<_>>().join(","),
            schema: reader.schema(table)?,
            rows: reader.row_count(table)?,
            version,
            ends: reader.key_ends(table)?,
            reader,
        })
    }

    fn reader(&self, unless: &InterruptCheck) -> Reader {
        self.reader.with(unless)
    }
}

impl Part for LocalPart {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn ends(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        self.ends.as_ref()
    }

    fn keys_from(&self, from: &[u8], unless: &InterruptCheck) -> Result<Vec<Vec<u8>>> {
        self.reader(unless).keys_from(&self.table, from, PAGE_KEYS)
    }

    fn hide(&self, keys: &[Vec<u8>], unless: &InterruptCheck) -> Result<Arc<dyn Part>> {
        let reader = self.reader(unless).without_keys(&self.table, keys)?;
        Ok(Arc::new(Self::of(reader, &self.table, self.version.clone())?))
    }

    fn statistics<'a>(
        &'a self,
        asked: &'a KeywordQuery,
        wanted: &'a WantedStatistics,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, KeywordStatistics> {
        Box::new(|| self.reader(unless).keyword_statistics(&self.table, asked, wanted))
    }

    fn count<'a>(
        &'a self,
        mut selection: Selection,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, u64> {
        selection.table.clone_from(&self.table);
        Box::new(move || Ok(self.reader(unless).count(&selection)?.count))
    }

    fn facet<'a>(
        &'a self,
        mut request: FacetRequest,
        unless: &'a InterruptCheck,
    ) -> Answer<'a, PartValues> {
        request.selection.table.clone_from(&self.table);
        (request.limit, request.offset, request.values_only) = (usize::MAX, 0, false);
        Box::new(move || {
            let found = self.reader(unless).facet_few(&request, MAX_FACET_VALUES)?;
            Ok(found.map(|found| found.values))
        })
    }

    fn scan(&self, mut request: ScanRequest, unless: &InterruptCheck) -> Result<PartRows> {
        request.table.clone_from(&self.table);
        let weighed = |text: TextQuery| weighed(text, &self.table);
        request.text = request.text.map(weighed);
        request.scores = request.scores.into_iter().map(weighed).collect();
        let scan = self.reader(unless).scan(request)?;
        Ok(Box::new(scan.map(|batch| batch.map(|batch| batch.to_rows()))))
    }
}

/// The condition with the weight of this table applied to its keyword queries, for a table that is a single part.
/// For several parts the merging reader does it.
fn weighed(text: TextQuery, table: &str) -> TextQuery {
    let each = |texts: Vec<TextQuery>| texts.into_iter().map(|text| weighed(text, table)).collect();
    match text {
        TextQuery::Keywords(asked) => {
            let given = asked.part_weights.iter().rev().find(|(name, _)| name == table);
            match given.map(|(_, weight)| *weight) {
                None | Some(1) => TextQuery::Keywords(asked),
                Some(weight) => {
                    let mut asked = KeywordQuery::clone(&asked);
                    let weight = weight.wrapping_mul(asked.table_weight.unwrap_or(1));
                    (asked.table_weight, asked.part_weights) = (Some(weight), Vec::new());
                    TextQuery::Keywords(Arc::new(asked))
                }
            }
        }
        TextQuery::And(texts) => TextQuery::And(each(texts)),
        TextQuery::Or(texts) => TextQuery::Or(each(texts)),
        TextQuery::Not(text) => TextQuery::Not(Box::new(weighed(*text, table))),
        other => other,
    }
}
