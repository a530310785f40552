//! A search of documents, prepared to read at one moment.

use std::sync::Arc;

use remora_engine::{
    Comparison, Filter as EngineFilter, KeyValues, Literal, PathDef, PathOrder, PathStart, Reader,
    ScanRequest, Selection, Value,
};

use super::{BATCH_ROWS, DOC, DOC_PLACE, Document, DocumentId, ID, each_document, other_row, read};
use crate::{
    Field, Result,
    filter::{Condition, PathFilter, ReadyPath, constrains, equal_value, matches, path_filter},
};

/// A search, prepared to read at one moment.
pub(super) struct PreparedFind {
    pub reader: Reader,
    pub collection: Arc<str>,
    pub condition: Option<Condition>,
    /// The part of the condition that indexes answer.
    pub path_filter: Option<PathFilter>,
    /// The indexes of values, if an order or a facet may use them.
    indexes: Vec<PathDef>,
}

impl PreparedFind {
    /// Chooses the indexes that answer the condition.
    pub fn new(
        reader: Reader,
        collection: Arc<str>,
        condition: Option<Condition>,
        needs_indexes: bool,
    ) -> Result<Self> {
        let schema = reader.schema(&collection)?;
        let ready = match schema.paths.is_empty() {
            true => Vec::new(),
            false => reader.ready_paths(&collection)?,
        };
        let mut indexes = Vec::with_capacity(ready.len());
        for place in ready {
            let path = schema.paths.get(place).filter(|path| path.column == DOC_PLACE);
            let Some(path) = path else { continue };
            // Finding out whether an index is complete looks at every segment, so only do it for
            // indexes that the condition uses.
            let is_asked = || condition.as_ref().is_some_and(|it| constrains(it, &path.names));
            let is_whole = !path.is_joint()
                || is_asked() && reader.has_all_combinations(&collection, place)?;
            indexes.push(ReadyPath { path, is_whole });
        }
        let path_filter = condition.as_ref().and_then(|it| path_filter(it, DOC, &indexes));
        let of_values = indexes.iter().map(|index| index.path).filter(|path| !path.texts);
        let indexes = if needs_indexes { of_values.cloned().collect() } else { Vec::new() };
        Ok(Self { reader, collection, condition, path_filter, indexes })
    }

    /// Whether there is a condition.
    pub fn has_condition(&self) -> bool {
        self.condition.is_some()
    }

    /// Whether the indexes answer the condition exactly, so that no document has to be tested.
    pub fn is_exact(&self) -> bool {
        match (&self.condition, &self.path_filter) {
            (None, _) => true,
            (Some(_), path_filter) => path_filter.as_ref().is_some_and(|it| it.is_exact),
        }
    }

    /// The condition, if documents have to be tested.
    pub fn open_condition(&self) -> Option<&Condition> {
        if self.is_exact() { None } else { self.condition.as_ref() }
    }

    /// Whether this path has an index of its own.
    pub fn has_plain_index(&self, names: &[String]) -> bool {
        self.indexes.iter().any(|index| index.is_plain() && index.names == names)
    }

    /// What the indexes answer.
    pub fn filter(&self) -> Option<EngineFilter> {
        self.path_filter.as_ref().map(|it| it.filter.clone())
    }

    /// The number of documents that the indexes find.
    pub fn count(&self) -> Result<u64> {
        let (table, filter) = (self.collection.to_string(), self.filter());
        Ok(self.reader.count(&Selection { table, filter, ..Selection::default() })?.count)
    }

    /// The keys of the first documents in a sort order behind `after`, and the index that provides it; `None` if
    /// none does.
    pub fn first(
        &self,
        sort: &[(Field, bool)],
        after: Option<&PathStart>,
        wanted: usize,
    ) -> Result<Option<(&PathDef, Vec<KeyValues>)>> {
        if !self.is_exact() || wanted == usize::MAX {
            return Ok(None);
        }
        for index in &self.indexes {
            let Some(mut order) = self.order_by(index, sort, wanted) else { continue };
            order.after = after.cloned();
            if let Some(keys) = self.reader.first_by_path(&order)? {
                return Ok(Some((index, keys)));
            }
        }
        Ok(None)
    }

    /// The sort order by this index. Its last paths must be the sorted ones, and each path before
    /// them must lead to one value that the condition requires.
    fn order_by(&self, index: &PathDef, sort: &[(Field, bool)], limit: usize) -> Option<PathOrder> {
        let paths: Vec<Vec<String>> = index.paths().map(<[String]>::to_vec).collect();
        let (leading, behind) = paths.split_at(paths.len().checked_sub(sort.len())?);
        let mut ordered = behind.iter().zip(sort);
        if sort.is_empty() || !ordered.all(|(names, (field, _))| *names == field.parts) {
            return None;
        }
        let equal = leading.iter().map(|names| equal_value(self.condition.as_ref()?, names));
        Some(PathOrder {
            table: self.collection.to_string(),
            column: DOC.to_owned(),
            equal: equal.collect::<Option<_>>()?,
            filter: self.filter(),
            descending: sort.iter().map(|(_, descending)| *descending).collect(),
            after: None,
            limit,
            paths,
        })
    }

    /// The document with a key that exists at this moment.
    pub fn document<K: DocumentId>(&self, key: &[Value]) -> Result<Document<K>> {
        read(&self.reader.get(&self.collection, key)?.ok_or_else(other_row)?)
    }

    /// Visits the documents that satisfy the condition, by id, from behind the id `after` on. The first error ends it.
    pub fn matching<K: DocumentId>(
        &self,
        after: Option<&K>,
        visit: &mut dyn FnMut(Document<K>) -> Result<()>,
    ) -> Result<()> {
        let open = self.open_condition();
        let request = self.request(vec![0, DOC_PLACE], after, None);
        each_document(&self.reader, request, &mut |document: Document<K>| match open
            .is_none_or(|condition| matches(condition, &document.doc))
        {
            true => visit(document),
            false => Ok(()),
        })
    }

    /// The first documents that the indexes find, by id, from behind the id `after` on.
    pub fn documents<K: DocumentId>(
        &self,
        after: Option<&K>,
        limit: usize,
    ) -> Result<Vec<Document<K>>> {
        let request = self.request(vec![0, DOC_PLACE], after, Some(limit as u64));
        let mut documents = Vec::new();
        each_document(&self.reader, request, &mut |document| {
            documents.push(document);
            Ok(())
        })?;
        Ok(documents)
    }

    /// The first ids that the indexes find, from behind the id `after` on.
    pub fn ids<K: DocumentId>(mut self, after: Option<&K>, limit: usize) -> Result<Vec<K>> {
        let mut ids = Vec::new();
        let filter = self.path_filter.take().map(|it| it.filter);
        let request = self.request_of(filter, vec![0], (after, Some(limit as u64)));
        for batch in self.reader.scan(request)? {
            self.reader.ending().check()?;
            let batch = batch?;
            for place in 0..batch.rows {
                let id = batch.columns.first().map(|column| column.value(place));
                ids.push(id.and_then(|id| K::of(&id)).ok_or_else(other_row)?);
            }
        }
        Ok(ids)
    }

    /// A scan of what the indexes find, by id, from behind the id `after` on.
    pub fn request<K: DocumentId>(
        &self,
        columns: Vec<usize>,
        after: Option<&K>,
        limit: Option<u64>,
    ) -> ScanRequest {
        self.request_of(self.filter(), columns, (after, limit))
    }

    /// As [`PreparedFind::request`], of what this condition finds.
    fn request_of<K: DocumentId>(
        &self,
        filter: Option<EngineFilter>,
        columns: Vec<usize>,
        (after, limit): (Option<&K>, Option<u64>),
    ) -> ScanRequest {
        let behind = |id: &K| EngineFilter::Compare {
            column: ID.to_owned(),
            comparison: Comparison::Greater,
            literal: Literal::Value(K::sought(id.given())),
        };
        let filters = after.map(behind).into_iter().chain(filter);
        ScanRequest {
            table: self.collection.to_string(),
            filter: EngineFilter::all_of(filters.collect()),
            columns,
            batch_rows: BATCH_ROWS,
            in_key_order: true,
            limit,
            ..ScanRequest::default()
        }
    }
}
