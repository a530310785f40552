//! The writer's side of watching: it keeps the feed while there are watchers.

use std::sync::{Arc, atomic::Ordering};

use super::{
    feed::{Feed, RecordContext, StagedCursor},
    writer::{Writer, find_table},
};
use crate::{
    Error, Missing, Position, Result,
    shared::{LargeCommit, PreparedBatch, WatchOrder, Watcher},
    storage::{
        catalog,
        feed::{
            Defined, Generation, Registration, WATCH_POSITION, delete_registration,
            put_registration,
        },
        store::StoreBatch,
    },
};

impl Writer<'_> {
    /// Loads the stored feed. If it is damaged, all writing ends: entries cannot be added to it.
    pub(super) fn load_feed(&mut self) {
        let (limit, position) = (self.shared.options.max_watch_bytes, self.position);
        match self.read_store(|store| Feed::load(&**store, limit, position)) {
            Ok(feed) => self.feed = feed,
            Err(error) => _ = self.shared.poison(&error),
        }
    }

    /// Carries out an order of a watcher.
    pub(super) fn watch(&mut self, order: WatchOrder) {
        match order {
            WatchOrder::Begin(name, tables, answer) => {
                // The caller may have stopped waiting.
                let _ = answer.send(self.begin_watching(name, tables));
            }
            WatchOrder::Forget(name, waiter) => waiter.answer(self.forget_watcher(&name)),
        }
    }

    fn begin_watching(
        &mut self,
        name: Option<String>,
        tables: Option<Vec<String>>,
    ) -> Result<Arc<Watcher>> {
        self.finish_feed()?;
        if let Some(there) = name.as_ref().and_then(|name| self.shared.watchers.named(name)) {
            return Ok(there);
        }
        let mut commit = StoreBatch::new();
        let limit = self.shared.options.max_watch_bytes;
        let feed = match &self.feed {
            Some(feed) => feed.clone(),
            None => self.read_store(|store| {
                commit = StoreBatch::new();
                Feed::begin(&**store, limit, self.position, &mut commit)
            })?,
        };
        if let Some(name) = &name {
            let registration = Registration { tables: tables.clone(), since: self.position.0 };
            put_registration(&mut commit, name, &registration)?;
            // Replaces the saved position of an earlier watcher of this name.
            let saved = (format!("{WATCH_POSITION}{name}"), self.position.0.to_string());
            catalog::put_sources(&mut commit, [(&saved.0, &saved.1)].into_iter());
            self.commit_to_store(commit, true)?;
            self.publish_source(&saved);
        } else {
            self.commit_to_store(commit, false)?;
        }
        self.feed = Some(feed);
        let watcher = Arc::new(Watcher::new(name, tables, self.position));
        self.shared.watchers.add(&watcher);
        self.refresh_snapshots()?;
        Ok(watcher)
    }

    fn forget_watcher(&mut self, name: &str) -> Result<Position> {
        let Some(watcher) = self.shared.watchers.named(name) else {
            let message = format!("there is no watcher {name:?}");
            return Err(Error::missing(Missing::Watcher, message));
        };
        if watcher.is_open.load(Ordering::Acquire) {
            let message = format!("watcher {name:?} is open: close it first");
            return Err(Error::Conflict(message));
        }
        let saved = (format!("{WATCH_POSITION}{name}"), String::new());
        let mut commit = StoreBatch::new();
        delete_registration(&mut commit, name);
        catalog::put_sources(&mut commit, [(&saved.0, &saved.1)].into_iter());
        self.commit_to_store(commit, true)?;
        self.shared.watchers.remove(&watcher);
        self.publish_source(&saved);
        self.refresh_snapshots()?;
        self.trim_feed()?;
        Ok(self.position)
    }

    fn publish_source(&self, saved: &(String, String)) {
        self.shared.published.update(|current| {
            let mut changed = current.with_tables(current.tables.clone());
            changed.sources = current.sources.with([(&saved.0, &saved.1)].into_iter());
            Some(changed)
        });
    }

    /// A copy of the feed with the changes of a group of batches. Their entries are added to `commit`.
    pub(super) fn recorded(
        &mut self,
        batches: &[PreparedBatch],
        first: Position,
        commit: &mut StoreBatch,
    ) -> Result<Option<Feed>> {
        self.finish_feed()?;
        let Some(feed) = &self.feed else { return Ok(None) };
        let current = self.shared.published.load();
        let watchers = &self.shared.watchers;
        let (feed, entries) = self.read_store(|store| {
            let (mut feed, mut entries) = (feed.clone(), StoreBatch::new());
            let context = RecordContext { current: &current, store, watchers };
            feed.record(batches, first, &context, &mut entries)?;
            Ok((feed, entries))
        })?;
        commit.append(entries);
        Ok(Some(feed))
    }

    /// The events that a watcher gets.
    pub(super) fn watched_events(&self, events: Vec<Defined>) -> Vec<Defined> {
        if self.feed.is_none() {
            return Vec::new();
        }
        let watchers = &self.shared.watchers;
        let is_wanted = |one: &Defined| one.tables().any(|table| watchers.want(table));
        events.into_iter().filter(is_wanted).collect()
    }

    /// A copy of the feed with changes of definitions. Their entries are added to `commit`.
    pub(super) fn recorded_defined(
        &mut self,
        events: &[Defined],
        position: Position,
        commit: &mut StoreBatch,
    ) -> Result<Option<Feed>> {
        self.finish_feed()?;
        let Some(mut feed) = self.feed.clone() else { return Ok(None) };
        feed.record_defined(events, position, commit)?;
        Ok(Some(feed))
    }

    /// Records a large batch before it is committed, so that its commit makes all of its entries visible. If the
    /// batch is not committed, its entries are removed before the next commit. Other writers wait meanwhile, because
    /// all old rows must come from one snapshot.
    pub(super) fn record_large(&mut self, large: &LargeCommit, position: Position) -> Result<()> {
        self.finish_feed()?;
        let (number, watchers) = (large.number, &self.shared.watchers);
        let current = self.shared.published.load();
        let mut tables = large.tables.keys().filter_map(|&table| find_table(&current, table));
        if !tables.any(|view| watchers.want(&view.schema.name)) {
            return Ok(());
        }
        let mut at = StagedCursor::begin(position);
        let mut has_more = true;
        while let Some(mut feed) = self.feed.clone().filter(|_| has_more) {
            let store = self.store.snapshot();
            let context = RecordContext { current: &current, store: &store, watchers };
            let mut commit = StoreBatch::new();
            has_more = feed.record_staged(number, &mut at, position, &context, &mut commit)?;
            self.commit_to_store(commit, false)?;
            self.feed = Some(feed);
        }
        Ok(())
    }

    /// Replaces the feed by the copy whose commit succeeded, and trims it.
    pub(super) fn keep_feed(&mut self, feed: Option<Feed>) {
        let Some(mut feed) = feed else { return };
        feed.is_unfinished = false;
        self.feed = Some(feed);
        // After a full disk, trimming is tried again with the next commit. Any other error has
        // already ended writing.
        let _ = self.trim_feed();
    }

    /// Removes entries of a large batch that was not committed.
    fn finish_feed(&mut self) -> Result<()> {
        while let Some(feed) = self.feed.as_ref().filter(|feed| feed.is_unfinished) {
            let position = self.position;
            let (feed, commit) = self.read_store(|store| {
                let mut feed = feed.clone();
                let commit = feed.discard(&**store, position)?;
                Ok((feed, commit))
            })?;
            if let Some(commit) = commit {
                self.commit_to_store(commit, false)?;
                self.refresh_snapshots()?;
            }
            self.feed = Some(feed);
        }
        Ok(())
    }

    fn trim_feed(&mut self) -> Result<()> {
        let Some(feed) = &self.feed else { return Ok(()) };
        let sources = self.shared.published.load().sources.clone();
        let passed = self.shared.watchers.passed(&sources);
        let mut kept = feed.clone();
        let trimmed = match passed {
            Some(passed) => kept.trim(passed),
            None => feed.all(),
        };
        if trimmed.is_empty() {
            return Ok(());
        }
        let mut commit = StoreBatch::new();
        trimmed.iter().for_each(|generation| generation.delete(&mut commit));
        self.commit_to_store(commit, false)?;
        self.feed = passed.map(|_| kept);
        self.refresh_snapshots()?;
        trimmed.iter().try_for_each(|Generation { number, .. }| self.drop_rows(*number))
    }
}
