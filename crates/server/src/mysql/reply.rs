//! The reply to a statement: encoded into the channel, and sent in pieces if it is long.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use remora_protocol::mysql::{PacketWriter, Results};
use remora_sql::{Cell, Column, Error, Outcome, Reply, Result, ResultCharset};
use tokio::io::{AsyncRead, AsyncWrite};

use super::channel::Channel;

/// The reply to one command.
pub(super) struct WireReply<'c, S> {
    pub results: Results<'c, Channel<S>>,
    /// Set if the statement was killed.
    pub interrupter: &'c Arc<AtomicBool>,
    /// Why nothing more can be sent to the client.
    pub broken: Option<io::Error>,
}

impl<S> AsMut<PacketWriter> for Channel<S> {
    fn as_mut(&mut self) -> &mut PacketWriter {
        &mut self.writer
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Reply for WireReply<'_, S> {
    fn charset(&mut self, charset: Option<ResultCharset>) {
        self.results.set_charset(charset);
    }

    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.results.columns(columns)
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        self.results.row(cells)
    }

    fn done(&mut self, outcome: &Outcome, more: bool) -> Result<()> {
        self.results.done(outcome, more);
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        if self.interrupter.load(Relaxed) {
            return Err(Error::interrupted());
        }
        let channel = self.results.wire();
        if channel.is_full()
            && let Err(error) = channel.flush().await
        {
            self.broken = Some(error);
            return Err(Error::interrupted());
        }
        Ok(())
    }
}

/// A reply for statements that the client did not send.
pub(super) struct DiscardReply;

impl Reply for DiscardReply {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &[Cell<'_>]) -> Result<()> {
        Ok(())
    }

    fn done(&mut self, _: &Outcome, _: bool) -> Result<()> {
        Ok(())
    }

    async fn drain(&mut self) -> Result<()> {
        Ok(())
    }
}
