//! What a reader says of paths into documents: which are indexed, whether values are unique, and rows in the order of
//! values.

use std::{collections::BTreeSet, ops::ControlFlow};

use remora_index::paths::PathSpec;

use super::{
    columns::path_place,
    path_facet::path_facet,
    path_order::{first_by_path, has_all},
    path_scalars::first_by_scalar,
    reader::Reader,
};
use crate::{
    KeyValues, PathDef, PathFacetReply, PathFacetRequest, PathOrder, PathValue, Result, Row,
    ScalarOrder, ScalarRows,
    encode::{ScalarKind, range_of_kind, scalar_of},
    interrupt::InterruptTicker,
    unique::check_paths,
};

impl Reader {
    /// The paths of a table, by their positions in its definition, that every segment has indexed. Only these can
    /// be used in [`crate::Filter::Path`] and [`crate::Filter::PathTexts`].
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table.
    pub fn ready_paths(&self, table: &str) -> Result<Vec<usize>> {
        let table = self.table(table)?;
        let has = |spec: &PathSpec| table.segments.iter().all(|view| view.segment.has_path(spec));
        Ok((0..table.paths.len())
            .filter(|&place| table.paths.get(place).is_some_and(has))
            .collect())
    }

    /// Whether an index over several paths, by its position in the table's definition, is complete: it has all
    /// combinations of values of every document. Then [`crate::Filter::PathsTogether`] is exact. Cost: one search
    /// for each segment.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Corrupt`] if the index is damaged.
    pub fn has_all_combinations(&self, table: &str, place: usize) -> Result<bool> {
        let table = self.table(table)?;
        let Some(spec) = table.paths.get(place) else { return Ok(false) };
        for view in &table.segments {
            match view.segment.path(spec) {
                Some(index) if has_all(index)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Checks that no two rows have the same value at a path. Cost: reads each value.
    ///
    /// # Errors
    /// [`crate::Error::NotUnique`] names two such rows, [`crate::Error::Conflict`] says that not all rows are indexed
    /// by the path, [`crate::Error::NotFound`] that there is no such table.
    pub fn check_unique(&self, table: &str, path: &PathDef) -> Result<()> {
        let table = self.table(table)?;
        let place = table.schema.paths.iter().position(|one| one.is_along(path));
        check_paths(&table, place.into_iter())
    }

    /// The keys of the first rows in the order of the value at a path: no value, null, false, true, numbers, texts
    /// by bytes, arrays, objects; the reverse if descending. Equal rows are in key order. If several paths are
    /// indexed together, rows are ordered by the first path, then by the second, each in its direction. `None` if the paths
    /// are not indexed in all segments, or a row has several values there. Cost: reads the values up to the last returned
    /// row; rows without a value require reading all of them. A page that begins behind a row begins there. Where the direction changes between paths, two look-ups for
    /// each value of the paths before.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Request`] if the filter is not one,
    /// [`crate::Error::Ended`] if it was interrupted.
    pub fn first_by_path(&self, asked: &PathOrder) -> Result<Option<Vec<KeyValues>>> {
        let found = self.table(&asked.table)?;
        first_by_path(&found, asked, self.ending())
    }

    /// The first rows in the order that SQL gives to the values at a path; equal rows are in key order. Rows without a value are not among them.
    /// `None` if the path is not indexed alone in all segments, if a document has an array, an object or a number of 2^53
    /// or more there (or, for an order of texts, something else, a text that ends with a space or one with a character before the
    /// space), or if reading all rows of the filter is cheaper. Cost: the entries up to the last returned row, and those rows.
    ///
    /// # Errors
    /// Those of [`Reader::first_by_path`], [`crate::Error::Ended`] if it was interrupted.
    pub fn first_by_scalar(&self, asked: &ScalarOrder) -> Result<Option<ScalarRows>> {
        let found = self.table(&asked.table)?;
        let read = |keys: &[KeyValues],
                    columns: &[usize],
                    visit: &mut dyn FnMut(usize, &mut Row) -> Result<()>| {
            self.get_many(&asked.table, keys, columns, visit)
        };
        first_by_scalar(&found, asked, &read, self.ending())
    }

    /// The distinct texts at a path of documents that `is_wanted` accepts, in order, of deleted rows too. `None` if the path is not indexed
    /// alone in all segments, or if more than `most` are accepted. Cost: reads each text of the index.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Corrupt`] if the index is damaged,
    /// [`crate::Error::Ended`] if it was interrupted.
    pub fn texts_at_path(
        &self,
        table: &str,
        (column, path): (&str, &[String]),
        is_wanted: &mut dyn FnMut(&str) -> bool,
        most: usize,
    ) -> Result<Option<Vec<String>>> {
        let found = self.table(table)?;
        let place = path_place(&found.schema, column, path);
        let Some(spec) = place.and_then(|place| found.paths.get(place)) else { return Ok(None) };
        let (mut texts, mut ticker) = (BTreeSet::new(), InterruptTicker::new(self.ending()));
        for view in &found.segments {
            let Some(index) = view.segment.path(spec) else { return Ok(None) };
            let (low, high) = range_of_kind(ScalarKind::Text);
            let within = (low.as_ref().map(Vec::as_slice), high.as_ref().map(Vec::as_slice));
            let (mut last, mut ending) = (Vec::new(), Ok(()));
            index.walk(within, false, &mut |value, _| {
                ending = ticker.step();
                if ending.is_err() {
                    return ControlFlow::Break(());
                }
                if last != value {
                    last = value.to_vec();
                    if let Some(PathValue::Text(text)) = scalar_of(value)
                        && is_wanted(&text)
                    {
                        texts.insert(text);
                    }
                }
                match texts.len() > most {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })?;
            ending?;
            if texts.len() > most {
                return Ok(None);
            }
        }
        Ok(Some(texts.into_iter().collect()))
    }

    /// The most frequent scalars at a path of documents, with the numbers of rows that have them. A row counts once
    /// for each of its distinct values. `None` if the path is not indexed alone in all segments. Cost: reads each entry of the index,
    /// and no row.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if there is no such table, [`crate::Error::Request`] if the filter is not one,
    /// [`crate::Error::Ended`] if it was interrupted.
    pub fn path_facet(&self, asked: &PathFacetRequest) -> Result<Option<PathFacetReply>> {
        let found = self.table(&asked.table)?;
        path_facet(&found, asked, self.ending())
    }
}
