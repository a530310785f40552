//! The applier: turns transactions of the stream into batches, in order and atomically.
//!
//! Batches are submitted asynchronously, at most [`IN_FLIGHT`] at a time while more events arrive. So a transaction of
//! an idle stream is submitted at once, and those of a busy stream are combined while the engine writes, at least for
//! as long as the [`Pace`] wants. A transaction larger than a batch is applied in parts as one large batch. After a
//! failed batch nothing is applied: batches go through one pipeline, and other writes wait until they are visible.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use crossbeam_channel::Sender;
use remora_engine::{ChangeBatch, Definition, LargeBatch, Pending, Pipeline, PrebuiltSegments};
use rustc_hash::FxHashMap;

use super::{
    batch::Batch,
    history_loss::{check_all_named, check_file},
    merged::Merged,
    occurrences::Occurrences,
    pace::Pace,
    positions::{BinlogFile, Stored, binlog_key},
    received::ReceivedEvents,
    references::Rereading,
    rows::{Routes, failed_again},
    shared::{FollowState, RequestedState},
    statement::Statement,
    status::{count, now_us},
    table::FollowedTable,
    temporary::Temporary,
};
use crate::{
    Error, Result,
    mysql::{
        binlog::{Query, SourceEvent},
        connection::Connection,
        coordinates::Coordinates,
        copy::CopyQueue,
        gtid::{Gtid, GtidSet},
        inbox::{Inbox, Message, deadline_after},
        table_name::TableName,
    },
};

/// The most submitted batches that are not visible yet. Further transactions are combined meanwhile.
const IN_FLIGHT: usize = 2;
/// The delay before a position without changes is stored.
const POSITION_DELAY: Duration = Duration::from_millis(20);
/// The most bytes of events that are received before they are applied.
const MAX_AHEAD: usize = 64 << 20;
/// How long the stream may take to reach the source's current position.
const LOOK_AHEAD: Duration = Duration::from_secs(3);

/// The state of the applier's thread.
pub(super) struct Applier {
    pub shared: Arc<FollowState>,
    pub inbox: Arc<Inbox>,
    pub copies: Arc<CopyQueue>,
    /// The connection that reads definitions.
    pub source: Connection,
    /// The applied transactions, including those complete in `batch`.
    pub applied: GtidSet,
    /// The position in the stream.
    pub place: Coordinates,
    pub tables: FxHashMap<TableName, FollowedTable>,
    pub batch: Batch,
    pub routes: Routes,
    /// The counts of equal rows, for tables without a key.
    pub occurrences: Occurrences,
    /// Changes of the source's views that the next commit stores.
    pub changed_views: Vec<Stored>,
    /// A table whose rows could not be counted in a large transaction, and why.
    pub uncountable: Option<(TableName, &'static str)>,
    /// The number of the session's last copy.
    pub last_copy: u64,
    /// Tables that are being copied.
    pub copying: Vec<TableName>,
    /// Tables with an uncertain definition, and those whose definition is to be explained.
    pub uncertain: Vec<TableName>,
    /// The renames of the stream since no definition was uncertain: old and new names, in order.
    pub renames: Vec<(TableName, TableName)>,
    /// Tables whose definitions are to be read again, because those that their foreign keys name were renamed.
    pub rereadings: Vec<Rereading>,
    /// The received events.
    pub received: ReceivedEvents,
    pub large: Option<LargeBatch>,
    /// Copies that cannot continue, and why.
    pub failed_copies: Vec<(u64, Error)>,
    /// Positions to be stored with the next commit.
    pub with_next: Vec<Stored>,
    pub temporary: Temporary,
    pub merged: Merged,
    /// Whether the source may have tables that are unknown here.
    pub relist: bool,
    transaction: Option<Transaction>,
    messages: VecDeque<Message>,
    pipeline: Pipeline,
    pending: Sender<Pending>,
    in_flight: usize,
    pace: Pace,
    /// Since when there is a position that is not stored.
    moved_since: Option<Instant>,
}

/// The transaction being read.
pub(super) struct Transaction {
    gtids: Vec<Gtid>,
    committed_at_us: i64,
    /// A statement that is the whole transaction.
    statement: Option<(Box<Query>, Statement)>,
    /// Statements that changed rows. Their tables are copied when the transaction is complete.
    deferred: Vec<(Box<Query>, Statement)>,
}

impl Applier {
    #[expect(clippy::too_many_arguments, reason = "it is put together in one place")]
    pub fn new(
        shared: Arc<FollowState>,
        inbox: Arc<Inbox>,
        copies: Arc<CopyQueue>,
        source: Connection,
        applied: GtidSet,
        tables: FxHashMap<TableName, FollowedTable>,
        merged: Merged,
        last_copy: u64,
        pending: Sender<Pending>,
    ) -> Self {
        let being_copied = |(_, table): &(&TableName, &FollowedTable)| table.copy.is_some();
        let copying = tables.iter().filter(being_copied).map(|(name, _)| name.clone()).collect();
        let is_uncertain = |(_, table): &(&TableName, &FollowedTable)| {
            table.uncertainty.is_some() || table.explained_before.is_some()
        };
        let uncertain = tables.iter().filter(is_uncertain).map(|(name, _)| name.clone()).collect();
        let pipeline = shared.database.pipeline();
        let temporary = Temporary::load(&shared.database, &shared.settings.name);
        let received = ReceivedEvents::new(source.server.folds_names);
        Self {
            shared,
            inbox,
            copies,
            source,
            applied,
            place: Coordinates::default(),
            tables,
            batch: Batch::default(),
            routes: Routes::default(),
            occurrences: Occurrences::default(),
            changed_views: Vec::new(),
            uncountable: None,
            last_copy,
            copying,
            uncertain,
            renames: Vec::new(),
            rereadings: Vec::new(),
            received,
            large: None,
            failed_copies: Vec::new(),
            with_next: Vec::new(),
            temporary,
            merged,
            relist: false,
            transaction: None,
            messages: VecDeque::new(),
            pipeline,
            pending,
            in_flight: 0,
            pace: Pace::new(Instant::now()),
            moved_since: None,
        }
    }

    /// Applies events until the stream ends or the owner stops it.
    pub fn run(&mut self) -> Result<()> {
        loop {
            // An earlier wait may already have received messages.
            let waits = self.messages.is_empty() && self.received.is_empty();
            self.receive(if waits { self.deadline() } else { Some(Instant::now()) });
            while let Some((event, statement)) = self.received.pop() {
                self.event(event, statement)?;
            }
            while let Some(message) = self.messages.pop_front() {
                if !self.message(message)? {
                    return Ok(());
                }
            }
            if self.transaction.is_none() {
                self.copy_new_tables()?;
                self.resolve_uncertain_tables()?;
                self.reread_definitions()?;
                self.advance_copies()?;
                self.execute_requests()?;
            }
            self.submit_if_due()?;
        }
    }

    /// The position of everything applied, as it is stored.
    pub fn position(&self) -> Stored {
        (self.shared.settings.name.clone(), self.applied.to_string())
    }

    /// All that is stored with the next commit: postponed positions, these, and the stream's position.
    pub fn take_positions(&mut self, positions: Vec<Stored>) -> Vec<Stored> {
        let mut all = std::mem::take(&mut self.with_next);
        all.extend(self.temporary.take_unstored(&self.shared.settings.name));
        all.extend(positions);
        all.push(self.position());
        all
    }

    /// Submits the complete transactions and waits until they are visible.
    pub fn submit_whole(&mut self) -> Result<()> {
        if self.batch.has_whole() {
            self.submit()?;
        }
        self.wait_for_submitted()
    }

    /// Submits the complete transactions.
    pub fn submit(&mut self) -> Result<()> {
        let tables = self.batch.take_whole();
        let tables = self.counted(tables, false)?;
        let positions = self.take_positions(Vec::new());
        self.submit_batch(ChangeBatch { tables, positions })
    }

    /// Changes definitions after all submitted batches.
    pub fn define(&mut self, definitions: Vec<Definition>, positions: Vec<Stored>) -> Result<()> {
        self.define_indexed(definitions, positions, Vec::new())
    }

    /// Like [`Applier::define`], with tables whose rows were indexed beforehand.
    pub fn define_indexed(
        &mut self,
        definitions: Vec<Definition>,
        positions: Vec<Stored>,
        ahead: Vec<PrebuiltSegments>,
    ) -> Result<()> {
        self.submit_whole()?;
        self.routes.clear();
        let positions = self.take_positions(positions);
        self.shared.define_indexed(definitions, positions, ahead)?;
        self.occurrences.forget_visible();
        self.moved_since = None;
        Ok(())
    }

    /// Submits a batch after all others.
    pub fn submit_batch(&mut self, batch: ChangeBatch) -> Result<()> {
        self.moved_since = None;
        self.shared.received_up_to(&self.place);
        self.shared.board.delivered_us.store(now_us(), Ordering::Relaxed);
        if self.applies_table_by_table() {
            return self.apply_table_by_table(batch);
        }
        let pending = self.pipeline.submit(batch).map_err(|error| self.refused(error))?;
        self.in_flight += 1;
        self.pace.spend(Instant::now());
        self.inbox.set_next_batch(self.pace.next());
        // The receiver lives as long as the session.
        let _ = self.pending.send(pending);
        Ok(())
    }

    /// Receives the stream up to a position; false if that takes too long or too much memory.
    pub fn receive_up_to(&mut self, place: &Coordinates) -> bool {
        let deadline = Instant::now() + LOOK_AHEAD;
        while self.received.end() < place {
            let ended = self.messages.iter().any(|one| matches!(one, Message::Ended(_)));
            if ended || self.received.bytes() >= MAX_AHEAD || Instant::now() >= deadline {
                return false;
            }
            self.receive(Some(deadline));
        }
        true
    }

    /// The GTIDs that count as applied when the transaction being read is complete.
    pub fn open_gtids(&self) -> impl Iterator<Item = &Gtid> {
        self.transaction.iter().flat_map(|open| &open.gtids)
    }

    fn receive(&mut self, deadline: Option<Instant>) {
        let waiting = self.inbox.take(deadline);
        self.messages.extend(waiting.messages);
        count(&self.shared.board.counters.events, waiting.events.len() as u64);
        self.received.extend(waiting.events);
    }

    /// Whether all submitted batches are visible.
    pub fn is_all_visible(&self) -> bool {
        self.in_flight == 0
    }

    /// Waits until all submitted batches are visible.
    pub fn wait_for_submitted(&mut self) -> Result<()> {
        while self.in_flight > 0 {
            for message in std::mem::take(&mut self.messages) {
                match message {
                    Message::Acknowledged(outcome) => self.acknowledge(outcome)?,
                    other => self.messages.push_back(other),
                }
            }
            if self.in_flight > 0 {
                self.messages.extend(self.inbox.take_messages());
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, outcome: Option<remora_engine::Error>) -> Result<()> {
        if let Some(error) = outcome {
            return Err(self.refused(error));
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        self.shared.board.last_applied_us.store(now_us(), Ordering::Relaxed);
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        match self.moved_since {
            Some(_) if self.in_flight < IN_FLIGHT && self.batch.has_whole() => {
                Some(self.pace.next())
            }
            Some(since) if self.in_flight < IN_FLIGHT => since.checked_add(POSITION_DELAY),
            _ if !self.copying.is_empty() => deadline_after(Duration::from_secs(1)),
            _ => None,
        }
    }

    fn submit_if_due(&mut self) -> Result<()> {
        if self.large.is_some() || self.in_flight >= IN_FLIGHT {
            return Ok(());
        }
        let waited = self.moved_since.is_some_and(|since| since.elapsed() >= POSITION_DELAY);
        let is_due = self.batch.has_whole() && self.pace.next() <= Instant::now();
        if is_due || waited {
            self.submit()?;
        }
        if self.in_flight == 0 && self.transaction.is_none() {
            self.shared.board.applying_since_us.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Handles a message; false means to stop.
    fn message(&mut self, message: Message) -> Result<bool> {
        match message {
            Message::Window(request) => self.request_window(request),
            Message::Moment(moment) => self.take_moment(moment),
            Message::Chunk(chunk) => self.take_chunk(chunk),
            Message::CopyFailed(copy, error) => self.failed_copies.push((copy, error)),
            Message::Acknowledged(outcome) => self.acknowledge(outcome)?,
            Message::Request => {
                if self.shared.requested() != RequestedState::Run {
                    self.abandon();
                    self.submit()?;
                    return Ok(false);
                }
            }
            Message::Ended(error) => {
                self.abandon();
                self.submit()?;
                return Err(error);
            }
        }
        Ok(true)
    }

    fn event(&mut self, event: SourceEvent, statement: Option<Statement>) -> Result<()> {
        match event {
            SourceEvent::Begin { gtid, committed_at_us } => {
                self.check_new(&gtid)?;
                self.shared.board.applying_since_us.store(committed_at_us, Ordering::Relaxed);
                let gtids = vec![gtid];
                let (statement, deferred) = (None, Vec::new());
                self.transaction =
                    Some(Transaction { gtids, committed_at_us, statement, deferred });
                Ok(())
            }
            SourceEvent::AlsoCovers(gtid) => {
                self.transaction.iter_mut().for_each(|open| open.gtids.push(gtid.clone()));
                Ok(())
            }
            SourceEvent::TableMap(_) => Ok(()),
            SourceEvent::Rows { table, kind, version, body } => {
                self.rows(&table, kind, version, &body)
            }
            SourceEvent::Statement { query, standalone } => {
                self.statement(query, statement.unwrap_or(Statement::Unknown), standalone)
            }
            SourceEvent::Commit { end } => self.commit(end),
            SourceEvent::Rollback { end } => {
                self.batch.roll_back();
                self.drop_large();
                self.commit(end)
            }
            SourceEvent::Abandoned => {
                self.abandon();
                Ok(())
            }
            SourceEvent::File { name, created } => self.begin_file(name, created),
            SourceEvent::Heartbeat { end } => {
                self.place = end;
                self.shared.board.heartbeat_us.store(now_us(), Ordering::Relaxed);
                self.between_transactions()
            }
        }
    }

    /// A binlog file begins. Its name and creation time are stored with the position.
    fn begin_file(&mut self, name: String, created: u32) -> Result<()> {
        let key = binlog_key(&self.shared.settings.name);
        let file = BinlogFile { uuid: self.source.server.uuid.clone(), name, created };
        let stored = self.shared.database.source_position(&key)?;
        check_file(stored.as_deref(), &file)?;
        let text = file.text();
        if stored.as_ref() != Some(&text) {
            // A stream by GTIDs leaves out transactions without one, so the files before are asked.
            check_all_named(&self.shared, &mut self.source, &self.applied, &file.name)?;
            self.with_next.push((key, text));
            self.moved_since.get_or_insert_with(Instant::now);
        }
        Ok(())
    }

    /// A source that repeats a transaction was reset and counts from the beginning.
    fn check_new(&self, gtid: &Gtid) -> Result<()> {
        if !self.applied.is_repeated_by(gtid) {
            return Ok(());
        }
        let applied = &self.applied;
        let message = format!("it was reset: its binlog tells {gtid} again, after {applied}");
        Err(Error::BackInTime { message })
    }

    /// Discards the transaction being read: it was rolled back, or will be read again.
    pub fn abandon(&mut self) {
        self.batch.roll_back();
        self.drop_large();
        self.transaction = None;
    }

    fn drop_large(&mut self) {
        self.large = None;
        self.occurrences.roll_back_large();
    }

    fn statement(
        &mut self,
        query: Box<Query>,
        statement: Statement,
        standalone: bool,
    ) -> Result<()> {
        let changes_rows = matches!(statement, Statement::Rows | Statement::Unknown);
        match &mut self.transaction {
            Some(open) if standalone => open.statement = Some((query, statement)),
            Some(open) if changes_rows => open.deferred.push((query, statement)),
            _ => return self.apply_statement(&query, statement),
        }
        Ok(())
    }

    fn commit(&mut self, end: Coordinates) -> Result<()> {
        let Some(open) = self.transaction.take() else {
            self.place = end;
            return Ok(());
        };
        if open.statement.is_some() && self.batch.has_whole() {
            // Earlier transactions must not be stored with the position of the statement.
            self.submit()?;
        }
        open.gtids.iter().for_each(|gtid| self.applied.add(gtid));
        match open.statement {
            Some((query, statement)) => self.apply_statement(&query, statement)?,
            None => {
                // Tables that they made uncertain are stored with the rows and the position.
                for (query, statement) in open.deferred {
                    self.apply_statement(&query, statement)?;
                }
                self.commit_rows(&end)?;
            }
        }
        self.place = end;
        self.moved_since.get_or_insert_with(Instant::now);
        self.shared.board.applying_since_us.store(open.committed_at_us, Ordering::Relaxed);
        self.between_transactions()
    }

    fn commit_rows(&mut self, end: &Coordinates) -> Result<()> {
        let Some(large) = self.large.take() else {
            self.filter_transaction(end);
            self.batch.commit();
            return Ok(());
        };
        let large = self.add_or_give_up(large)?;
        large.commit(self.take_positions(Vec::new()))?;
        self.occurrences.commit_large();
        self.moved_since = None;
        Ok(())
    }

    /// Turns the transaction being read into a large batch, and applies invisibly what was read so far.
    pub fn spill(&mut self) -> Result<()> {
        if self.batch.has_whole() {
            self.submit()?;
        }
        let large = match self.large.take() {
            Some(large) => large,
            None => {
                self.submit_whole()?;
                self.shared.database.begin_large()?
            }
        };
        self.large = Some(self.add_or_give_up(large)?);
        Ok(())
    }

    /// Adds what was read of the transaction. If the rows of a table cannot be counted, the large batch is given up
    /// before the table, because the writer is blocked while the large batch exists.
    fn add_or_give_up(&mut self, mut large: LargeBatch) -> Result<LargeBatch> {
        let added = self.add_to_large(&mut large);
        let Some((table, reason)) = self.uncountable.take() else { return added.map(|()| large) };
        drop(large);
        let times = failed_again(&self.shared.unfitting, &table);
        self.give_up_reading(&table, reason.to_owned(), times)?;
        Err(Error::Cancelled)
    }

    fn add_to_large(&mut self, large: &mut LargeBatch) -> Result<()> {
        let tables = self.batch.take_all();
        let tables = self.filter_large_part(tables);
        let tables = self.counted(tables, true)?;
        match self.applies_table_by_table() {
            true => self.add_table_by_table(large, tables),
            false => large.add(tables).map_err(|error| self.refused(error)),
        }
    }

    fn between_transactions(&mut self) -> Result<()> {
        self.shared.board.clear_error();
        if self.batch.is_full() {
            self.submit()?;
        }
        self.resolve_uncertain_tables()?;
        if !self.copying.is_empty() {
            self.advance_copies()?;
        }
        Ok(())
    }

    /// Gives a table whose rows cannot be read to a copy. The session restarts after the last complete transaction.
    pub fn give_up_reading(&mut self, table: &TableName, reason: String, times: u32) -> Result<()> {
        self.shared.failed_at.lock().insert(table.clone(), self.place.clone());
        self.abandon();
        self.submit()?;
        self.freeze(table, &reason, times)?;
        Err(Error::Cancelled)
    }
}
