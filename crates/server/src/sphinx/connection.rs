//! One connection: greetings, then reads, answers, writes. It ends after one reply unless the client asks to stay.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use remora_protocol::sphinx::{
    GREETING, GREETING_BYTES, HEAD_BYTES, RequestError, RequestHead, put_error, put_retry,
};
use remora_sql::Identity;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::answer::Session;
use crate::{
    limits::BufferShare,
    listen::refuse_connection,
    mysql::{ReservedConnection, SqlService, Wire},
};

/// Bytes read at a time. A request's declared length is not trusted before its bytes arrive.
const INPUT_BYTES: usize = 64 << 10;
/// Bytes of buffers that every connection may use.
const FREE_BYTES: usize = 128 << 10;
const RATE_LIMITED: &str = "too many requests, retry later";
const NO_BUFFERS: &str = "all buffers are taken, retry later";
/// How long and how much is still read from a client that is disconnected, so that it gets the reason before the
/// connection is reset.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 16 << 20;

/// Serves a connection until the client leaves, has its reply, exceeds a limit, or the server stops.
pub(super) async fn run(
    stream: Wire,
    address: Option<IpAddr>,
    reserved: ReservedConnection,
    identity: Identity,
) -> io::Result<()> {
    let session = match reserved.log_in(identity.clone(), &stream) {
        Ok(client) => Session::new(client, identity),
        Err(error) => {
            let mut reason = GREETING.to_vec();
            put_retry(&mut reason, &error.message);
            refuse_connection(stream, reason).await;
            return Ok(());
        }
    };
    let service = Arc::clone(session.service());
    let mut connection = Connection {
        stream,
        address,
        share: service.buffer_share(),
        stopping: service.shared.stopping.subscribe(),
        service,
        session,
        output: GREETING.to_vec(),
    };
    connection.serve().await
}

struct Connection {
    stream: Wire,
    address: Option<IpAddr>,
    service: Arc<SqlService>,
    share: BufferShare,
    stopping: watch::Receiver<bool>,
    session: Session,
    output: Vec<u8>,
}

impl Connection {
    async fn serve(&mut self) -> io::Result<()> {
        self.flush().await?;
        let write_timeout = self.write_timeout();
        let mut greeting = [0; GREETING_BYTES];
        timeout(write_timeout, self.stream.read_exact(&mut greeting)).await??;
        loop {
            let Some(head) = self.next_head().await? else { return Ok(()) };
            match RequestHead::parse(head) {
                Ok(head) => self.answer(head).await?,
                Err(error) => return self.close_with_error(&error).await,
            }
            self.flush().await?;
            if !self.session.is_persistent() {
                return self.stream.shutdown().await;
            }
        }
    }

    /// The next request's head; `None` at the end.
    async fn next_head(&mut self) -> io::Result<Option<[u8; HEAD_BYTES]>> {
        let settings = self.service.shared.settings.load_full();
        // A client that does not stay sends its request immediately.
        let wait = match self.session.is_persistent() {
            true => Duration::from_secs(settings.sql.wait_timeout_s),
            false => self.write_timeout(),
        };
        let mut head = [0; HEAD_BYTES];
        let killed = self.session.killed();
        let read = timeout(wait, self.stream.read_exact(&mut head));
        tokio::select! {
            biased;
            () = killed => Ok(None),
            _ = self.stopping.wait_for(|stopping| *stopping) => Ok(None),
            read = read => match read {
                Ok(Ok(_)) => Ok(Some(head)),
                Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
                Ok(Err(error)) => Err(error),
                Err(_) => Ok(None),
            },
        }
    }

    /// Reads a request's body and appends the reply.
    async fn answer(&mut self, head: RequestHead) -> io::Result<()> {
        let Some(body) = self.body(head.length).await? else {
            self.session.close_after_reply();
            put_retry(&mut self.output, NO_BUFFERS);
            return Ok(());
        };
        self.service.shared.counters.request();
        if !self.is_admitted() {
            // A request to stay has no reply, so an error would be taken for the reply to the next one.
            self.session.close_after_reply();
            put_retry(&mut self.output, RATE_LIMITED);
            return Ok(());
        }
        self.session.answer(&head, &body, &mut self.output).await;
        drop(body);
        let most = self.service.shared.settings.load().sql.buffered_mb << 20;
        if !self.share.resize(self.output.capacity().saturating_sub(FREE_BYTES), most) {
            self.output = Vec::new();
            self.session.close_after_reply();
            put_retry(&mut self.output, NO_BUFFERS);
        }
        Ok(())
    }

    /// A request's body; `None` if there is no buffer memory.
    async fn body(&mut self, length: usize) -> io::Result<Option<Vec<u8>>> {
        let most = self.service.shared.settings.load().sql.buffered_mb << 20;
        let deadline = Instant::now() + self.write_timeout();
        let mut body = Vec::new();
        while body.len() < length {
            let start = body.len();
            body.resize(length.min(start + INPUT_BYTES), 0);
            let part = body.get_mut(start..).unwrap_or_default();
            timeout_at(deadline, self.stream.read_exact(part)).await??;
            if !self.share.resize(body.capacity().saturating_sub(FREE_BYTES), most) {
                return Ok(None);
            }
        }
        Ok(Some(body))
    }

    fn is_admitted(&self) -> bool {
        let shared = &self.service.shared;
        let limits = &shared.settings.load().rate_limiting;
        match self.address {
            Some(address) if limits.enable => {
                shared.limiter.admit(address, limits, std::time::Instant::now())
            }
            _ => true,
        }
    }

    fn write_timeout(&self) -> Duration {
        Duration::from_secs(self.service.shared.settings.load().sql.write_timeout_s)
    }

    async fn flush(&mut self) -> io::Result<()> {
        let write_timeout = self.write_timeout();
        timeout(write_timeout, self.stream.write_all(&self.output)).await??;
        self.output.clear();
        self.output.shrink_to(INPUT_BYTES);
        self.share.resize(0, 0);
        Ok(())
    }

    async fn close_with_error(&mut self, error: &RequestError) -> io::Result<()> {
        put_error(&mut self.output, &error.to_string());
        self.flush().await?;
        self.stream.shutdown().await?;
        let mut rest = (&mut self.stream).take(LINGER_BYTES);
        let drain = async { tokio::io::copy(&mut rest, &mut tokio::io::sink()).await.map(drop) };
        timeout(LINGER, drain).await.unwrap_or(Ok(()))
    }
}
