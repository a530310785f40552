//! A session: from comparing the local tables with the source's to the end of the stream. Its threads:
//!
//! ```text
//! source -> reader -> inbox -> applier -> engine -> acknowledger -> inbox
//!           copy workers -> inbox
//! ```

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, Scope},
    time::Duration,
};

use crossbeam_channel::{Receiver, unbounded};
use remora_engine::Pending;

use super::{
    applier::Applier,
    definition_commit::DefinitionCommit,
    history_loss,
    merged::Merged,
    positions::{binlog_key, source_key, source_text, source_uuid},
    shared::FollowState,
    status::State,
    tables, views,
};
use crate::{
    Error, Result,
    mysql::{
        binlog::{SourceEvent, SourceStream},
        connection::{self, Connection},
        copy::{self, CopyQueue, Throttle, Worker},
        gtid::GtidSet,
        inbox::{Inbox, Message},
        requirements,
    },
};

/// The most connections that copy at the same time.
const MAX_COPY_THREADS: usize = 64;
/// How often the waiting transactions are counted.
const COUNT_INTERVAL: Duration = Duration::from_secs(1);

/// Follows until the stream ends with an error, or without one when the owner wants something else. With `start_over` the
/// stored position is given up and everything is copied; it is set to false once that has begun.
pub(super) fn run(shared: &Arc<FollowState>, start_over: &mut bool) -> Result<()> {
    let settings = &shared.settings;
    // Even if the source is unreachable: the rows are here.
    shared.apply_declared_words()?;
    let mut source = connection::connect(settings)?;
    requirements::check_again(&mut source, settings)?;
    log_server(shared, &source)?;
    shared.store_refusals()?;
    let executed = history_loss::check_history(shared, &mut source)?;
    let stored = if *start_over { None } else { position(shared, &source)? };
    let begins = stored.is_none();
    let applied = stored.unwrap_or(executed);
    let stream = SourceStream::open(settings, &applied)?;
    let mut commit = DefinitionCommit::default();
    let (synced, obeyed) = shared.requested_copies();
    let wanted = tables::CopyRequest { start_over: *start_over, synced };
    let compared = tables::compare(shared, &mut source, &wanted, &mut commit)?;
    commit.positions.extend(views::changed(&mut source, shared)?);
    let merged = Merged::load(&mut source)?;
    let text = source_text(source.server.flavor, &source.server.uuid);
    commit.positions.push((source_key(&settings.name), text));
    commit.positions.push((settings.name.clone(), applied.to_string()));
    if begins {
        let file = history_loss::last_file(shared).map(|file| file.text());
        commit.positions.push((binlog_key(&settings.name), file.unwrap_or_default()));
    }
    shared.define(commit.definitions, commit.positions)?;
    shared.warn_of_unfollowed_tables(compared.tables.values().map(|followed| &*followed.name));
    shared.drop_requests(obeyed);
    shared.lost.store(false, Ordering::Relaxed);
    if std::mem::take(start_over) {
        // These positions belong to another history.
        shared.failed_at.lock().clear();
    }

    let inbox = Arc::new(Inbox::default());
    let copies = Arc::new(CopyQueue::default());
    let alone = shared.defining.lock();
    shared.set_session(Some((Arc::clone(&inbox), stream.interrupter())));
    drop(alone);
    shared.board.set_state(State::Running);
    // For a request that arrived before the session could be notified.
    inbox.push(Message::Request);
    let ended = std::thread::scope(|scope| {
        let session = Session { shared, inbox: &inbox, copies: &copies };
        session.follow(scope, stream, source, applied, compared, merged)
    });
    shared.set_session(None);
    ended
}

/// The stored position; `None` if following has not begun.
fn position(shared: &FollowState, source: &Connection) -> Result<Option<GtidSet>> {
    let name = &shared.settings.name;
    if shared.database.source_position(&source_key(name))?.is_none() {
        return Ok(None);
    }
    let text = shared.database.source_position(name)?.unwrap_or_default();
    let position = GtidSet::parse_as(source.server.flavor, &text).map_err(|error| {
        let message = format!("it is another kind of server than the one followed so far: {error}");
        Error::BackInTime { message }
    })?;
    Ok(Some(position))
}

fn log_server(shared: &FollowState, source: &Connection) -> Result<()> {
    let server = &source.server;
    shared.board.phase.lock().server_uuid.clone_from(&server.uuid);
    let stored = shared.database.source_position(&source_key(&shared.settings.name))?;
    let before = stored.as_deref().and_then(source_uuid);
    let address = shared.settings.address();
    if let Some(before) = before.filter(|before| *before != server.uuid) {
        tracing::warn!("{address} is another server now: {} instead of {before}", server.uuid);
    }
    tracing::info!("{address} is {} ({})", server.version_text, server.uuid);
    Ok(())
}

/// The state that the threads of a session share.
struct Session<'s> {
    shared: &'s Arc<FollowState>,
    inbox: &'s Arc<Inbox>,
    copies: &'s Arc<CopyQueue>,
}

impl<'s> Session<'s> {
    fn follow<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        stream: SourceStream,
        source: Connection,
        applied: GtidSet,
        compared: tables::Tables,
        merged: Merged,
    ) -> Result<()>
    where
        's: 'scope,
    {
        let interrupter = stream.interrupter();
        let read_all = Arc::new(AtomicBool::new(false));
        let (pending, submitted) = unbounded();
        let (inbox, finished) = (Arc::clone(self.inbox), Arc::clone(&read_all));
        let spawned = spawn(scope, "mysql-stream", move || read(stream, &inbox, &finished))
            .and_then(|()| {
                let inbox = Arc::clone(self.inbox);
                spawn(scope, "mysql-visible", move || acknowledge(&submitted, &inbox))
            })
            .and_then(|()| self.spawn_copies(scope))
            .and_then(|()| {
                let (shared, copies) = (Arc::clone(self.shared), Arc::clone(self.copies));
                let inbox = Arc::clone(self.inbox);
                spawn(scope, "mysql-lag", move || count_waiting(&shared, &copies, &inbox))
            });
        let ended = spawned.and_then(|()| {
            let (shared, inbox) = (Arc::clone(self.shared), Arc::clone(self.inbox));
            let tables::Tables { tables, last_copy } = compared;
            let copies = Arc::clone(self.copies);
            let mut applier = Applier::new(
                shared, inbox, copies, source, applied, tables, merged, last_copy, pending,
            );
            applier.run()
        });
        self.inbox.close();
        self.copies.close();
        if !read_all.load(Ordering::SeqCst) {
            interrupter.interrupt();
        }
        ended
    }

    fn spawn_copies<'scope>(&self, scope: &'scope Scope<'scope, '_>) -> Result<()>
    where
        's: 'scope,
    {
        let settings = &self.shared.settings;
        let worker = Worker {
            settings: settings.clone(),
            queue: Arc::clone(self.copies),
            inbox: Arc::clone(self.inbox),
            throttle: Arc::new(Throttle::new(settings.copy_rows_per_second)),
        };
        for _ in 0..settings.copy_threads.clamp(1, MAX_COPY_THREADS) {
            let worker = worker.clone();
            spawn(scope, "mysql-copy", move || copy::run(&worker))?;
        }
        Ok(())
    }
}

fn spawn<'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() + Send + 'scope,
) -> Result<()> {
    let spawned = Builder::new().name(name.to_owned()).spawn_scoped(scope, work);
    spawned.map(|_| ()).map_err(|error| Error::io("a new thread", error))
}

/// Reads the stream to its end.
fn read(mut stream: SourceStream, inbox: &Inbox, finished: &AtomicBool) {
    loop {
        match stream.next() {
            Ok(event) => {
                let is_end = matches!(event, SourceEvent::Commit { .. });
                if !inbox.push_event(event) {
                    break;
                }
                if is_end {
                    inbox.wait_for_next_batch();
                }
            }
            Err(error) => {
                inbox.push(Message::Ended(error));
                break;
            }
        }
    }
    finished.store(true, Ordering::SeqCst);
}

/// Notifies the applier when batches become visible.
fn acknowledge(submitted: &Receiver<Pending>, inbox: &Inbox) {
    for pending in submitted {
        inbox.push(Message::Acknowledged(pending.wait().err()));
    }
}

/// Counts the source's transactions that are not visible here, until the session ends. Ends the session if the source
/// lost its history, which the stream may not show.
fn count_waiting(shared: &FollowState, session: &CopyQueue, inbox: &Inbox) {
    let waiting = &shared.board.waiting_transactions;
    let (mut source, mut watch) = (None, history_loss::HistoryWatch::default());
    while !session.pause(COUNT_INTERVAL) {
        match count_once(shared, &mut source, &mut watch) {
            Ok(count) => waiting.store(count.saturating_add(1), Ordering::Relaxed),
            Err(error @ Error::BackInTime { .. }) => inbox.push(Message::Ended(error)),
            Err(_) => source = None,
        }
    }
    waiting.store(0, Ordering::Relaxed);
}

fn count_once(
    shared: &FollowState,
    source: &mut Option<Connection>,
    watch: &mut history_loss::HistoryWatch,
) -> Result<u64> {
    let connection = match source {
        Some(connection) => connection,
        None => source.insert(connection::connect(&shared.settings)?),
    };
    watch.check_history(shared, connection)
}
