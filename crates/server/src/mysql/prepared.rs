//! The commands of prepared statements.

use std::{io, sync::Arc};

use remora_protocol::mysql::{Results, RowFormat, WireError, put_prepared};
use tokio::io::{AsyncRead, AsyncWrite};

use super::{
    client::{Flow, finish},
    commands::ClientSession,
    logged::LoggedStatement,
    reply::WireReply,
    watch::{Ended, run_watched},
};

/// Rows that are fetched from a cursor before they are sent.
const FETCHED_ROWS: u32 = 1024;
/// The most bytes of a cursor's rows.
const CURSOR_BYTES: usize = 256 << 20;

impl<S: AsyncRead + AsyncWrite + Unpin + Send> ClientSession<S> {
    /// Prepares a statement and describes it.
    pub(super) async fn prepare(&mut self, text: &[u8]) {
        self.process().begin("Prepare", text);
        if let Err(error) = self.try_prepare(text).await {
            self.put_error(&error);
        }
    }

    async fn try_prepare(&mut self, text: &[u8]) -> Result<(), WireError> {
        let shared = &self.service.shared;
        let limit_ms = shared.settings.load().sql.max_execution_time_ms;
        let prepare = self.client.session.prepare(text);
        let process = &self.slot.connection;
        let prepared =
            match run_watched(prepare, process, &self.interrupter, limit_ms, shared).await {
                Ended::Done(prepared) => prepared?,
                Ended::TimedOut => return Err(WireError::query_timeout()),
                Ended::Abandoned => return Err(WireError::interrupted()),
            };
        let parameters =
            u16::try_from(prepared.parameters).map_err(|_| WireError::too_many_parameters())?;
        let columns = prepared.columns.clone();
        let text = Arc::from(String::from_utf8_lossy(text));
        let most = self.settings().sql.max_prepared_statements;
        let id = self.statements.add(prepared, text, most);
        let id = id.ok_or_else(|| WireError::too_many_statements(most))?;
        let (flags, capabilities) = (self.client.flags(), self.client.capabilities);
        let charset = self.client.session.result_charset();
        let writer = &mut self.channel.writer;
        put_prepared(writer, id, parameters, &columns, flags, capabilities, charset);
        Ok(())
    }

    /// Runs a statement.
    pub(super) async fn execute(
        &mut self,
        id: u32,
        cursor: bool,
        packet: &[u8],
    ) -> io::Result<Flow> {
        let (service, client) = (&self.service, &mut self.client);
        let Some(statement) = self.statements.get(id) else {
            self.put_error(&WireError::unknown_statement(id, "mysqld_stmt_execute"));
            return Ok(Flow::Continue);
        };
        let had_more = statement.parameters.long_bytes() > 0 || statement.cursor.is_some();
        statement.cursor = None;
        let count = statement.prepared.parameters;
        let is_cut = std::mem::take(&mut statement.is_cut);
        let charset = client.session.client_charset();
        if statement.parameters.read(packet, count, charset, &mut self.values).is_none() {
            self.put_error(&WireError::wrong_parameters());
            return Ok(Flow::Continue);
        }
        if is_cut {
            self.put_error(&WireError::packet_too_large());
            return Ok(Flow::Continue);
        }
        let process = &self.slot.connection;
        let logged = LoggedStatement::begin(service, &client.session);
        process.begin_prepared("Execute", &statement.text);
        let limit_ms = service.shared.settings.load().sql.max_execution_time_ms;
        let (flags, capabilities) = (client.flags(), client.capabilities);
        let mut results = Results::new(&mut self.channel, capabilities, RowFormat::Binary, flags);
        if cursor {
            results.keep_rows(CURSOR_BYTES);
        }
        let mut reply = WireReply { results, interrupter: &self.interrupter, broken: None };
        let run = client.session.execute(&statement.prepared, &self.values, &mut reply);
        let ended = run_watched(run, process, &self.interrupter, limit_ms, &service.shared).await;
        if let Some(logged) = logged {
            let (connection, text) = (u64::from(process.id), statement.text.as_bytes());
            logged.end(service, &client.session, connection, (text, true));
        }
        let (flow, rows) = finish(client, process, reply, ended)?;
        statement.cursor = rows;
        if had_more || cursor {
            self.statements.count_kept();
        }
        Ok(flow)
    }

    /// Sends further rows of a cursor.
    pub(super) async fn fetch(&mut self, id: u32, rows: u32) -> io::Result<()> {
        let (flags, capabilities) = (self.client.flags(), self.client.capabilities);
        let cursor = match self.statements.get(id) {
            None => Err(WireError::unknown_statement(id, "mysqld_stmt_fetch")),
            Some(statement) => statement.cursor.as_mut().ok_or_else(|| WireError::no_cursor(id)),
        };
        let cursor = match cursor {
            Ok(cursor) => cursor,
            Err(error) => {
                self.put_error(&error);
                return Ok(());
            }
        };
        let mut left = rows;
        let mut more = true;
        while left > 0 && more {
            let some = left.min(FETCHED_ROWS);
            more = cursor.fetch(some, &mut self.channel.writer);
            left -= some;
            if self.channel.is_full() {
                self.channel.flush().await?;
            }
        }
        cursor.put_end(&mut self.channel.writer, flags, capabilities);
        Ok(())
    }

    /// Adds to a parameter's long data. There is no reply: an error is reported by the next execution.
    pub(super) fn add_long(&mut self, id: u32, parameter: u16, data: &[u8]) {
        let most = self.settings().sql.max_allowed_packet;
        let Some(statement) = self.statements.get(id) else { return };
        if statement.parameters.long_bytes() + data.len() > most {
            statement.is_cut = true;
            return;
        }
        let count = statement.prepared.parameters;
        if !statement.parameters.add_long(count, parameter, data) {
            statement.is_cut = true;
        }
        self.statements.count_kept();
    }

    /// Drops a statement's long data and rows.
    pub(super) fn reset_statement(&mut self, id: u32) -> Result<(), WireError> {
        let statement = self.statements.get(id);
        let statement =
            statement.ok_or_else(|| WireError::unknown_statement(id, "mysqld_stmt_reset"))?;
        statement.parameters.clear_long();
        statement.is_cut = false;
        statement.cursor = None;
        self.statements.count_kept();
        Ok(())
    }
}
