//! How documents are written, wherever the rows are: in the database, or in an open transaction.

use std::collections::BTreeSet;

use remora_engine::{Change, Value};
use serde::Serialize;
use serde_json::Value as Json;

use super::{
    Collection, Document, DocumentId, Moment, Version, merge_patch, parse, patch, read, row,
    text_of,
};
use crate::{
    Error, Filter, Result,
    filter::matches,
    handle::Handle,
    json::to_text,
    keyed::{KeyedRows, View},
};

impl<K: DocumentId> Collection<K> {
    /// The rows of the database.
    pub(super) fn rows(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn insert_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        text: String,
    ) -> Result<()> {
        rows.write(&self.name, vec![Change::Insert(row(K::value(id)?, text))])
    }

    pub(crate) fn upsert_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        text: String,
    ) -> Result<()> {
        rows.write(&self.name, vec![Change::Put(row(K::value(id)?, text))])
    }

    pub(crate) fn upsert_many_in<'i, T: Serialize>(
        &self,
        rows: &mut dyn KeyedRows,
        documents: impl IntoIterator<Item = (K::Given<'i>, T)>,
    ) -> Result<()> {
        let put = |(id, document): (K::Given<'i>, T)| {
            let text = to_text(&document).map_err(|error| error.at(format!("document {id:?}")))?;
            Ok(Change::Put(row(K::value(id)?, text)))
        };
        let changes: Vec<Change> = documents.into_iter().map(put).collect::<Result<_>>()?;
        match changes.is_empty() {
            true => Ok(()),
            false => rows.write(&self.name, changes),
        }
    }

    pub(crate) fn replace_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        text: String,
    ) -> Result<()> {
        let key = K::value(id)?;
        let mut put = || Change::Put(row(key.clone(), text.clone()));
        let is_there = rows.change_unread(&self.name, std::slice::from_ref(&key), &mut put)?;
        self.found(id, is_there)
    }

    pub(crate) fn replace_if_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        version: Version,
        text: String,
    ) -> Result<Version> {
        let new = Version::of(&text);
        self.change_in(rows, id, &mut |old| {
            if Version::of(old) != version {
                let message =
                    format!("document {id:?} of {:?} has changed since it was read", self.name);
                return Err(Error::Changed(message.into()));
            }
            Ok(text.clone())
        })?;
        Ok(new)
    }

    pub(crate) fn merge_patch_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        patch: &Json,
    ) -> Result<Json> {
        self.update_in(rows, id, &mut |document| {
            merge_patch::merge(document, patch.clone());
            Ok(())
        })
    }

    pub(crate) fn patch_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        patch: &Json,
    ) -> Result<Json> {
        self.update_in(rows, id, &mut |document| patch::apply(document, patch))
    }

    pub(crate) fn update_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        change: &mut dyn FnMut(&mut Json) -> Result<()>,
    ) -> Result<Json> {
        let mut changed = Json::Null;
        self.change_in(rows, id, &mut |old| {
            changed = parse(id, old)?;
            change(&mut changed)?;
            to_text(&changed)
        })?;
        Ok(changed)
    }

    /// Replaces a document's text by a changed one.
    fn change_in(
        &self,
        rows: &mut dyn KeyedRows,
        id: K::Given<'_>,
        change: &mut dyn FnMut(&str) -> Result<String>,
    ) -> Result<()> {
        let key = K::value(id)?;
        let changed =
            rows.change(&self.name, std::slice::from_ref(&key), &mut |found| match found {
                Some(found) => Ok(Some(Change::Put(row(key.clone(), change(text_of(&found)?)?)))),
                None => Ok(None),
            })?;
        self.found(id, changed)
    }

    pub(crate) fn delete_in(&self, rows: &mut dyn KeyedRows, id: K::Given<'_>) -> Result<bool> {
        let key = [K::sought(id)];
        rows.change_unread(&self.name, &key, &mut || Change::Delete(key.to_vec()))
    }

    /// The documents that satisfy a filter, by id.
    pub(crate) fn found_in(
        &self,
        rows: &mut dyn KeyedRows,
        filter: &Filter,
    ) -> Result<Vec<Document<K>>> {
        let View { reader, changed } = rows.view(&self.name)?;
        let moment = Moment::of(reader, &self.name);
        let mut found = self.find(filter.clone()).at(&moment).run()?.documents;
        if changed.is_empty() {
            return Ok(found);
        }
        let ids: BTreeSet<K> = changed.iter().filter_map(|(key, _)| K::of(key.first()?)).collect();
        found.retain(|document| !ids.contains(&document.id));
        for row in changed.iter().filter_map(|(_, row)| row.as_deref()) {
            let document = read::<K>(row)?;
            if matches(&filter.0, &document.doc) {
                found.push(document);
            }
        }
        found.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// Deletes the documents that satisfy a filter. Returns their number.
    pub(crate) fn delete_found_in(&self, rows: &mut dyn KeyedRows, filter: &Filter) -> Result<u64> {
        let found = self.found_in(rows, filter)?;
        let deletion =
            |document: &Document<K>| Change::Delete(vec![K::sought(document.id.given())]);
        let changes: Vec<Change> = found.iter().map(deletion).collect();
        if !changes.is_empty() {
            rows.write(&self.name, changes)?;
        }
        Ok(found.len() as u64)
    }

    /// Returns an error if the document does not exist.
    fn found(&self, id: K::Given<'_>, is_there: bool) -> Result<()> {
        match is_there {
            true => Ok(()),
            false => {
                let message = format!("there is no document {id:?} in {:?}", self.name);
                Err(Error::NotFound(message.into()))
            }
        }
    }
}

impl Collection {
    pub(crate) fn insert_made_in(&self, rows: &mut dyn KeyedRows, text: String) -> Result<i64> {
        let id = self.reserve_ids(1)?;
        self.insert_in(rows, id, text)?;
        Ok(id)
    }

    pub(crate) fn insert_many_in<T: Serialize>(
        &self,
        rows: &mut dyn KeyedRows,
        documents: impl IntoIterator<Item = T>,
    ) -> Result<Vec<i64>> {
        let text = |(number, document): (usize, T)| {
            to_text(&document).map_err(|error| error.at(format!("document {number} of the given")))
        };
        let texts: Vec<String> = (1..).zip(documents).map(text).collect::<Result<_>>()?;
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let first = self.reserve_ids(texts.len())?;
        let ids: Vec<i64> = (first..).take(texts.len()).collect();
        let changes =
            ids.iter().zip(texts).map(|(id, text)| Change::Insert(row(Value::Int(*id), text)));
        rows.write(&self.name, changes.collect())?;
        Ok(ids)
    }
}
