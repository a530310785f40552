//! Groups raw events into transactions, with the binlog position of each.
//!
//! ```text
//! MySQL    transaction = GTID (BEGIN body end | PAYLOAD | statement | XA)
//! MariaDB  transaction = GTID (body end | statement | XA)        end = XID | COMMIT | ROLLBACK
//! XA       = XA START body XA END XA_PREPARE, later GTID (XA COMMIT | XA ROLLBACK)
//! ```

use std::{collections::VecDeque, sync::Arc};

use remora_mysql::Comments;
use rustc_hash::FxHashMap;

use super::{
    EventBody, FormatDescription, RowsKind, RowsVersion, SourceEvent, TableMap, compressed,
    event_kind,
    gtid_event::{MariaDbBegin, MySqlBegin},
    payload::Payload,
    query::{Meaning, Query},
    raw_event::{Header, RawEvent},
    savepoint::Savepoints,
    xa::{Prepared, PreparedTransaction, Xid},
};
use crate::{
    Error, Result,
    mysql::{
        bytes::{Reader, UnexpectedEnd},
        coordinates::Coordinates,
        gtid::Gtid,
    },
};

/// Table maps that are kept for comparison with the table's next one.
const MAX_TABLES: usize = 4096;
/// The table id of a rows event that only ends a statement.
const DUMMY_TABLE: u64 = 0x00ff_ffff;
/// The message for an event that is too short.
const TOO_SHORT: &str = "it ends too early";

/// Turns raw events into [`SourceEvent`]s.
#[derive(Default)]
pub struct History {
    format: FormatDescription,
    place: Coordinates,
    state: TransactionState,
    payload: Option<Payload>,
    tables: FxHashMap<u64, (EventBody, Arc<TableMap>)>,
    prepared: Prepared,
    savepoints: Savepoints,
    ready: VecDeque<SourceEvent>,
}

/// The position within a transaction.
#[derive(Default)]
enum TransactionState {
    /// Between transactions.
    #[default]
    Outside,
    /// After the GTID event.
    NamedTransaction(NamedTransaction),
    /// After `Begin` was emitted.
    Begun,
    /// In an XA transaction before its prepare.
    Preparing(Box<PreparedTransaction>),
}

/// A transaction for which `Begin` was not emitted yet.
struct NamedTransaction {
    gtid: Gtid,
    committed_at_us: i64,
    /// The XA transaction that it commits or rolls back; MariaDB only.
    completes: Option<Xid>,
    /// It is a statement without effect.
    is_void: bool,
}

impl History {
    /// The next event, if one is ready.
    pub fn take(&mut self) -> Option<SourceEvent> {
        self.ready.pop_front()
    }

    /// The position in the binlog.
    pub fn place(&self) -> &Coordinates {
        &self.place
    }

    /// Unpacks more of a transaction payload; false if there is none.
    pub fn unpack(&mut self) -> Result<bool> {
        let Some(payload) = &mut self.payload else { return Ok(false) };
        match payload.next_event() {
            Ok(Some(event)) => self.event(event)?,
            Ok(None) => self.payload = None,
            Err(message) => return Err(self.undecodable(event_kind::TRANSACTION_PAYLOAD, message)),
        }
        Ok(true)
    }

    /// Takes an event from the source. All ready events must have been taken before.
    pub fn push(&mut self, event: RawEvent) -> Result<()> {
        event.verify().map_err(|message| self.damaged(message))?;
        self.advance(&event.header);
        self.event(event)
    }

    /// Moves the position to the event's end, of which the header has the low 32 bits.
    fn advance(&mut self, header: &Header) {
        if header.is_artificial() || header.kind == event_kind::HEARTBEAT_V2 {
            return;
        }
        const WRAP: u64 = 1 << 32;
        let end = (self.place.offset & !(WRAP - 1)) | u64::from(header.end);
        self.place.offset = if end < self.place.offset { end.saturating_add(WRAP) } else { end };
    }

    fn event(&mut self, event: RawEvent) -> Result<()> {
        let Header { kind, timestamp, server_id, .. } = event.header;
        let done = match kind {
            event_kind::ROTATE => self.rotate(event),
            event_kind::FORMAT_DESCRIPTION => self.format_description(&event),
            event_kind::HEARTBEAT => {
                self.idle();
                Ok(())
            }
            event_kind::HEARTBEAT_V2 => self.heartbeat(&event.body),
            event_kind::GTID => MySqlBegin::parse(&event.body).map(|begin| {
                self.name_mysql(begin, timestamp);
            }),
            event_kind::GTID_TAGGED => MySqlBegin::parse_tagged(&event.body).map(|begin| {
                self.name_mysql(begin, timestamp);
            }),
            event_kind::MARIADB_GTID => MariaDbBegin::parse(&event.body, server_id).map(|begin| {
                self.name_mariadb(begin, timestamp);
            }),
            event_kind::TRANSACTION_PAYLOAD => return self.open_payload(event.body),
            event_kind::QUERY | event_kind::QUERY_COMPRESSED | event_kind::EXECUTE_LOAD_QUERY => {
                return self.text(&event);
            }
            event_kind::XID => {
                self.commit();
                Ok(())
            }
            event_kind::XA_PREPARE => return self.prepare(&event.body),
            event_kind::TABLE_MAP => return self.table_map(event.body),
            _ => return self.other(event),
        };
        done.map_err(|UnexpectedEnd| self.undecodable(kind, TOO_SHORT))
    }

    fn other(&mut self, event: RawEvent) -> Result<()> {
        if let Some((kind, version, compressed)) = rows_kind(event.header.kind) {
            return self.rows(event, kind, version, compressed);
        }
        match event.header.kind {
            event_kind::INCIDENT => Err(self.unfollowable("the source says that it lost events")),
            event_kind::ANONYMOUS_GTID => Err(Error::Requirement {
                message: format!("{}: a transaction without GTID", self.place),
                advice: "set gtid_mode = ON at the source; MySQL allows that while it runs".into(),
            }),
            event_kind::LOAD
            | event_kind::CREATE_FILE
            | event_kind::EXECUTE_LOAD
            | event_kind::NEW_LOAD => {
                Err(self.unfollowable("LOAD DATA was logged as a statement, not by its rows"))
            }
            // The file of a LOAD DATA. The statement follows.
            event_kind::BEGIN_LOAD_QUERY | event_kind::APPEND_BLOCK | event_kind::DELETE_FILE => {
                self.idle();
                Ok(())
            }
            event_kind::STOP
            | event_kind::INTVAR
            | event_kind::RAND
            | event_kind::USER_VAR
            | event_kind::IGNORABLE
            | event_kind::ROWS_QUERY
            | event_kind::PREVIOUS_GTIDS
            | event_kind::TRANSACTION_CONTEXT
            | event_kind::VIEW_CHANGE
            | event_kind::ANNOTATE_ROWS
            | event_kind::BINLOG_CHECKPOINT
            | event_kind::GTID_LIST
            | event_kind::START_ENCRYPTION => {
                self.idle();
                Ok(())
            }
            _ if event.header.is_ignorable() => {
                self.idle();
                Ok(())
            }
            kind => Err(self.undecodable(kind, "this program does not know it")),
        }
    }

    /// Which comments contain code that the server executes.
    fn comments(&self) -> Comments {
        if self.format.is_mariadb() { Comments::AllOfMariaDb } else { Comments::All }
    }

    /// Emits progress without a transaction.
    fn idle(&mut self) {
        if matches!(self.state, TransactionState::Outside) {
            self.ready.push_back(SourceEvent::Heartbeat { end: self.place.clone() });
        }
    }

    fn rotate(&mut self, mut event: RawEvent) -> Result<(), UnexpectedEnd> {
        event.cut_unannounced_checksum();
        let mut reader = Reader::new(&event.body);
        let offset = reader.u64()?;
        let file = String::from_utf8_lossy(reader.rest()).into_owned();
        self.place = Coordinates { file, offset };
        self.idle();
        Ok(())
    }

    fn heartbeat(&mut self, body: &[u8]) -> Result<(), UnexpectedEnd> {
        const POSITION: u64 = 2;
        let mut reader = Reader::new(body);
        while reader.remaining() > 0 {
            let field = reader.packed()?;
            if field == 0 {
                break;
            }
            let length = reader.packed_length()?;
            let value = reader.bytes(length)?;
            if field == POSITION {
                self.place.offset = Reader::new(value).packed()?;
            }
        }
        self.idle();
        Ok(())
    }

    fn format_description(&mut self, event: &RawEvent) -> Result<(), UnexpectedEnd> {
        self.format = FormatDescription::parse(&event.body)?;
        self.tables.clear();
        // A new file inside a transaction: the source crashed before it was complete. An artificial one only begins the
        // connection.
        if !event.header.is_artificial() {
            match std::mem::take(&mut self.state) {
                TransactionState::Begun => self.ready.push_back(SourceEvent::Abandoned),
                TransactionState::Outside
                | TransactionState::NamedTransaction(_)
                | TransactionState::Preparing(_) => {}
            }
        }
        if matches!(self.state, TransactionState::Outside) {
            let (name, created) = (self.place.file.clone(), event.header.timestamp);
            self.ready.push_back(SourceEvent::File { name, created });
        }
        self.idle();
        Ok(())
    }

    fn name_mysql(&mut self, begin: MySqlBegin, timestamp: u32) {
        self.name(NamedTransaction {
            gtid: Gtid::MySql(begin.gtid),
            committed_at_us: begin.committed_at_us.unwrap_or_else(|| microseconds(timestamp)),
            completes: None,
            is_void: false,
        });
    }

    fn name_mariadb(&mut self, begin: MariaDbBegin, timestamp: u32) {
        self.name(NamedTransaction {
            gtid: Gtid::MariaDb(begin.gtid),
            committed_at_us: microseconds(timestamp),
            is_void: begin.alter_without_effect,
            completes: begin.completed,
        });
        if begin.prepared {
            self.start_preparing();
        } else if !begin.standalone && !self.completes_xa() {
            self.begin();
        }
    }

    fn name(&mut self, named: NamedTransaction) {
        if matches!(self.state, TransactionState::Begun) {
            self.ready.push_back(SourceEvent::Abandoned);
        }
        self.state = TransactionState::NamedTransaction(named);
        self.savepoints = Savepoints::default();
        if self.tables.len() > MAX_TABLES {
            self.tables.clear();
        }
    }

    fn completes_xa(&self) -> bool {
        matches!(&self.state, TransactionState::NamedTransaction(named) if named.completes.is_some())
    }

    /// Emits the transaction's beginning, if that was not done yet.
    fn begin(&mut self) {
        if let TransactionState::NamedTransaction(_) = self.state
            && let TransactionState::NamedTransaction(named) =
                std::mem::replace(&mut self.state, TransactionState::Begun)
        {
            let NamedTransaction { gtid, committed_at_us, .. } = named;
            self.ready.push_back(SourceEvent::Begin { gtid, committed_at_us });
        }
    }

    fn commit(&mut self) {
        self.begin();
        if matches!(self.state, TransactionState::Begun) {
            self.ready.extend(self.savepoints.release());
            self.ready.push_back(SourceEvent::Commit { end: self.place.clone() });
        }
        self.state = TransactionState::Outside;
    }

    /// Handles an event with the text of a statement.
    fn text(&mut self, event: &RawEvent) -> Result<()> {
        let (kind, comments) = (event.header.kind, self.comments());
        let parsed = match kind {
            event_kind::QUERY_COMPRESSED => Query::parse_compressed(&event.body, comments),
            event_kind::EXECUTE_LOAD_QUERY => Query::parse_load(&event.body, comments),
            _ => Query::parse(&event.body, comments),
        };
        let query = parsed.map_err(|UnexpectedEnd| self.undecodable(kind, TOO_SHORT))?;
        let query = Query { uses_temporary: event.header.uses_temporary(), ..query };
        match kind {
            event_kind::EXECUTE_LOAD_QUERY => self.statement(query),
            _ => self.query(query),
        }
    }

    fn query(&mut self, query: Query) -> Result<()> {
        match query.meaning() {
            Meaning::Begin => self.begin(),
            Meaning::Commit => self.commit(),
            Meaning::Rollback => {
                self.begin();
                if matches!(std::mem::take(&mut self.state), TransactionState::Begun) {
                    self.ready.push_back(SourceEvent::Rollback { end: self.place.clone() });
                }
            }
            Meaning::Savepoint(name) => self.savepoints.set(name),
            Meaning::RollbackTo(name) => {
                if !self.savepoints.roll_back_to(name) {
                    return Err(self.unfollowable(TOO_MUCH_ROLLED_BACK));
                }
            }
            Meaning::XaStart => self.start_preparing(),
            Meaning::XaCommit(xid) => return self.complete_xa(xid, true),
            Meaning::XaRollback(xid) => return self.complete_xa(xid, false),
            Meaning::XaEnd | Meaning::Nothing => {}
            Meaning::Statement => return self.statement(query),
        }
        Ok(())
    }

    fn statement(&mut self, query: Query) -> Result<()> {
        let is_void =
            matches!(&self.state, TransactionState::NamedTransaction(named) if named.is_void);
        let standalone = matches!(self.state, TransactionState::NamedTransaction(_));
        if !is_void && !matches!(self.state, TransactionState::Outside) {
            let statement = SourceEvent::Statement { query: Box::new(query), standalone };
            self.push_in_transaction(statement, event_kind::QUERY)?;
        }
        if standalone {
            self.commit();
        }
        Ok(())
    }

    fn open_payload(&mut self, body: EventBody) -> Result<()> {
        if self.payload.is_some() {
            let message = "it stands within another";
            return Err(self.undecodable(event_kind::TRANSACTION_PAYLOAD, message));
        }
        let payload = Payload::parse(body);
        let payload = payload.map_err(|m| self.undecodable(event_kind::TRANSACTION_PAYLOAD, m))?;
        self.payload = Some(payload);
        Ok(())
    }

    fn table_map(&mut self, body: EventBody) -> Result<()> {
        let id = self.table_id(&body, event_kind::TABLE_MAP)?;
        let known = self.tables.get(&id).filter(|(before, _)| **before == *body);
        let table = match known {
            Some((_, table)) => Arc::clone(table),
            None => {
                let table = TableMap::parse(&body, &self.format);
                let table =
                    table.map_err(|error| self.undecodable(event_kind::TABLE_MAP, error))?;
                let table = Arc::new(table);
                self.tables.insert(id, (body, Arc::clone(&table)));
                table
            }
        };
        self.push_in_transaction(SourceEvent::TableMap(table), event_kind::TABLE_MAP)
    }

    fn rows(
        &mut self,
        event: RawEvent,
        kind: RowsKind,
        version: RowsVersion,
        compressed: bool,
    ) -> Result<()> {
        let event_kind = event.header.kind;
        let id = self.table_id(&event.body, event_kind)?;
        let Some((_, table)) = self.tables.get(&id) else {
            return match id {
                DUMMY_TABLE => Ok(()),
                _ => Err(self.undecodable(event_kind, format!("no layout came for table id {id}"))),
            };
        };
        let table = Arc::clone(table);
        let body = if compressed {
            compressed::inflate_rows(&event.body, kind, version)
                .map_err(|UnexpectedEnd| {
                    self.undecodable(event_kind, "its rows cannot be uncompressed")
                })?
                .into()
        } else {
            event.body
        };
        self.push_in_transaction(SourceEvent::Rows { table, kind, version, body }, event_kind)
    }

    /// Emits an event of the transaction, or keeps it until the transaction commits.
    fn push_in_transaction(&mut self, event: SourceEvent, kind: u8) -> Result<()> {
        self.begin();
        match &mut self.state {
            TransactionState::Preparing(transaction) => {
                transaction.push(event);
                if transaction.is_too_large() {
                    return Err(self.unfollowable(TOO_MUCH_PREPARED));
                }
            }
            TransactionState::Begun => self.savepoints.hold(event, &mut self.ready),
            TransactionState::Outside | TransactionState::NamedTransaction(_) => {
                return Err(self.undecodable(kind, "it belongs to no transaction"));
            }
        }
        Ok(())
    }

    fn start_preparing(&mut self) {
        let transaction = match std::mem::take(&mut self.state) {
            TransactionState::NamedTransaction(NamedTransaction {
                gtid, committed_at_us, ..
            }) => match gtid {
                Gtid::MySql(_) => PreparedTransaction::new(Some(gtid), committed_at_us),
                Gtid::MariaDb(_) => {
                    // A GTID set of MariaDB cannot leave it out: the transaction counts as applied, without its rows.
                    self.ready.push_back(SourceEvent::Begin { gtid, committed_at_us });
                    PreparedTransaction::default()
                }
            },
            TransactionState::Preparing(transaction) => *transaction,
            TransactionState::Begun | TransactionState::Outside => PreparedTransaction::default(),
        };
        self.state = TransactionState::Preparing(Box::new(transaction));
    }

    fn prepare(&mut self, body: &[u8]) -> Result<()> {
        let (one_phase, xid) = Xid::parse_prepare(body)
            .map_err(|UnexpectedEnd| self.undecodable(event_kind::XA_PREPARE, TOO_SHORT))?;
        let TransactionState::Preparing(transaction) = std::mem::take(&mut self.state) else {
            return Err(
                self.undecodable(event_kind::XA_PREPARE, "no XA transaction began before it")
            );
        };
        let counted = transaction.gtid.is_none();
        let end = self.place.clone();
        if one_phase {
            let mut transaction = *transaction;
            if let Some(gtid) = transaction.gtid {
                let committed_at_us = transaction.committed_at_us;
                self.ready.push_back(SourceEvent::Begin { gtid, committed_at_us });
            }
            self.ready.append(&mut transaction.events);
            self.ready.push_back(SourceEvent::Commit { end });
            return Ok(());
        }
        if !self.prepared.keep(xid, *transaction) {
            return Err(self.unfollowable(TOO_MUCH_PREPARED));
        }
        self.ready.push_back(match counted {
            true => SourceEvent::Commit { end },
            false => SourceEvent::Heartbeat { end },
        });
        Ok(())
    }

    fn complete_xa(&mut self, text: &str, committed: bool) -> Result<()> {
        let named = match &mut self.state {
            TransactionState::NamedTransaction(named) => named.completes.take(),
            _ => None,
        };
        let xid = named.or_else(|| Xid::parse_text(text));
        let xid = xid.ok_or_else(|| self.undecodable(event_kind::QUERY, format!("XA {text}")))?;
        let transaction = self.prepared.take(&xid);
        if committed && transaction.is_none() {
            let message = format!("XA transaction {xid} was prepared before the stream began");
            return Err(self.unfollowable(&message));
        }
        self.begin();
        if let Some(mut transaction) = transaction {
            self.ready.extend(transaction.gtid.map(SourceEvent::AlsoCovers));
            if committed {
                self.ready.append(&mut transaction.events);
            }
        }
        self.commit();
        Ok(())
    }

    fn table_id(&self, body: &[u8], kind: u8) -> Result<u64> {
        let length = self.format.table_id_length(kind);
        let id = Reader::new(body).uint(length);
        id.map_err(|UnexpectedEnd| self.undecodable(kind, TOO_SHORT))
    }

    fn damaged(&self, message: String) -> Error {
        let Coordinates { file, offset } = self.place.clone();
        Error::Damaged { file, offset, message }
    }

    fn undecodable(&self, kind: u8, message: impl std::fmt::Display) -> Error {
        let Coordinates { file, offset } = self.place.clone();
        Error::Undecodable {
            file,
            offset,
            event: event_kind::name(kind),
            message: message.to_string(),
        }
    }

    fn unfollowable(&self, message: &str) -> Error {
        let Coordinates { file, offset } = self.place.clone();
        Error::Unfollowable { file, offset, message: message.to_owned() }
    }
}

const TOO_MUCH_ROLLED_BACK: &str = "a transaction was rolled back to a savepoint after its rows \
    were logged, and they are more than are held back for that (256 MiB)";

const TOO_MUCH_PREPARED: &str = "XA transactions that are prepared but not committed hold more \
    rows than are kept for them (256 MiB): commit them at the source";

fn microseconds(timestamp: u32) -> i64 {
    i64::from(timestamp) * 1_000_000
}

/// What a rows event does, the layout of its body, and whether its rows are compressed.
fn rows_kind(kind: u8) -> Option<(RowsKind, RowsVersion, bool)> {
    use {RowsKind::*, RowsVersion::*};
    Some(match kind {
        event_kind::WRITE_ROWS_V1 => (Insert, V1, false),
        event_kind::UPDATE_ROWS_V1 => (Update, V1, false),
        event_kind::DELETE_ROWS_V1 => (Delete, V1, false),
        event_kind::WRITE_ROWS => (Insert, V2, false),
        event_kind::UPDATE_ROWS => (Update, V2, false),
        event_kind::DELETE_ROWS => (Delete, V2, false),
        event_kind::PARTIAL_UPDATE_ROWS => (PartialUpdate, V2, false),
        event_kind::WRITE_ROWS_COMPRESSED_V1 => (Insert, V1, true),
        event_kind::UPDATE_ROWS_COMPRESSED_V1 => (Update, V1, true),
        event_kind::DELETE_ROWS_COMPRESSED_V1 => (Delete, V1, true),
        event_kind::WRITE_ROWS_COMPRESSED => (Insert, V2, true),
        event_kind::UPDATE_ROWS_COMPRESSED => (Update, V2, true),
        event_kind::DELETE_ROWS_COMPRESSED => (Delete, V2, true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
