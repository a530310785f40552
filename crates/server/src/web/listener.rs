//! HTTP connections: their number and their timeouts.
//!
//! A connection is in one of three phases: idle between requests, receiving a request's head, or answering. An idle one
//! ends after `limits.idle_timeout_s`. A head must be complete within `http.read_timeout_s` of its first byte, however
//! slowly it arrives. A client that does not read for `http.write_timeout_s` is disconnected. While a request is
//! answered there is no read timeout; its handler limits the time for the body.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpListener, TcpStream},
    time::{Instant, Sleep},
};

use crate::{counters, shared::ServerState};

/// The response to a connection beyond the limit.
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    content-length: 73\r\nconnection: close\r\n\r\n\
    {\"error\":\"SERVER_BUSY too many connections, try again\",\"error_code\":6030}";
/// The pause after a failed accept, which usually means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts HTTP connections.
pub(crate) struct HttpListener {
    listener: TcpListener,
    shared: Arc<ServerState>,
    places: Arc<AtomicUsize>,
}

impl HttpListener {
    pub(crate) fn new(listener: TcpListener, shared: Arc<ServerState>) -> Self {
        Self { listener, shared, places: Arc::default() }
    }

    /// Registers a connection; `None` at the limit.
    fn place(&self) -> Option<ConnectionSlot> {
        let place = ConnectionSlot { places: Arc::clone(&self.places) };
        let taken = self.places.fetch_add(1, Relaxed);
        (taken < self.shared.settings.load().http.max_connections).then_some(place)
    }
}

impl Listener for HttpListener {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Connection, Peer) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) => {
                    let Some(place) = self.place() else {
                        self.shared.counters.deny(counters::Denial::Connections, true);
                        tokio::spawn(refuse_connection(stream));
                        continue;
                    };
                    // Responses are written as a whole; joining them would only cause delay.
                    let _ = stream.set_nodelay(true);
                    let phase = Arc::new(Mutex::new(Phase::idle()));
                    let peer = Peer { address: address.ip(), phase: Arc::clone(&phase) };
                    return (Connection::new(stream, phase, place, &self.shared), peer);
                }
                Err(error) => {
                    tracing::warn!(
                        "cannot accept an HTTP connection: {error}; is the limit of open files \
                         too low?"
                    );
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        let address: SocketAddr = self.listener.local_addr()?;
        Ok(Peer { address: address.ip(), phase: Arc::new(Mutex::new(Phase::idle())) })
    }
}

async fn refuse_connection(mut stream: TcpStream) {
    let reply = async {
        stream.write_all(BUSY).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), reply).await;
}

/// The client of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    /// Its address.
    pub(crate) address: IpAddr,
    phase: Arc<Mutex<Phase>>,
}

impl Peer {
    /// Marks the connection as answering, until the guard is dropped.
    pub(crate) fn answering(&self) -> Answering {
        *self.phase.lock() = Phase::Answering;
        Answering { phase: Arc::clone(&self.phase) }
    }
}

impl Connected<IncomingStream<'_, HttpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, HttpListener>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Marks a request that is being answered.
pub(crate) struct Answering {
    phase: Arc<Mutex<Phase>>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        *self.phase.lock() = Phase::idle();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Idle since this time.
    Idle(Instant),
    /// Receiving a request's head since this time.
    Receiving(Instant),
    /// A request is being answered.
    Answering,
}

impl Phase {
    fn idle() -> Self {
        Self::Idle(Instant::now())
    }
}

/// A registered connection; unregistered when dropped.
struct ConnectionSlot {
    places: Arc<AtomicUsize>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places.fetch_sub(1, Relaxed);
    }
}

/// A connection with its deadlines.
pub(crate) struct Connection {
    stream: TcpStream,
    phase: Arc<Mutex<Phase>>,
    shared: Arc<ServerState>,
    /// Wakes the reader at its deadline; `None` if there is none.
    read_timer: Option<(Phase, Pin<Box<Sleep>>)>,
    /// Runs while the client does not accept output.
    write_timer: Option<Pin<Box<Sleep>>>,
    _place: ConnectionSlot,
}

impl Connection {
    fn new(
        stream: TcpStream,
        phase: Arc<Mutex<Phase>>,
        place: ConnectionSlot,
        shared: &Arc<ServerState>,
    ) -> Self {
        Self {
            stream,
            phase,
            shared: Arc::clone(shared),
            read_timer: None,
            write_timer: None,
            _place: place,
        }
    }

    /// Ready when a read deadline has passed.
    fn poll_read_deadline(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let phase = *self.phase.lock();
        if self.read_timer.as_ref().is_none_or(|(of, _)| *of != phase) {
            let settings = self.shared.settings.load();
            let deadline = match phase {
                Phase::Idle(since) => Some(since + settings.idle_timeout()),
                Phase::Receiving(since) => {
                    Some(since + Duration::from_secs(settings.http.read_timeout_s))
                }
                Phase::Answering => None,
            };
            self.read_timer = deadline.map(|at| (phase, Box::pin(tokio::time::sleep_until(at))));
        }
        match &mut self.read_timer {
            Some((_, timer)) => timer.as_mut().poll(context),
            None => Poll::Pending,
        }
    }

    /// The result of an incomplete write: an error once the write timeout has passed.
    fn poll_write_deadline<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let patience = Duration::from_secs(self.shared.settings.load().http.write_timeout_s);
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn after_write<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_pending() {
            return self.poll_write_deadline(context);
        }
        self.write_timer = None;
        written
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Poll::Ready(read) = Pin::new(&mut this.stream).poll_read(context, buffer) {
            let phase = &mut *this.phase.lock();
            if matches!(phase, Phase::Idle(_)) {
                *phase = Phase::Receiving(Instant::now());
            }
            // Further bytes do not extend the deadline of a head.
            let late = matches!(*phase, Phase::Receiving(since)
                if since.elapsed().as_secs() >= this.shared.settings.load().http.read_timeout_s);
            return Poll::Ready(if late { Err(io::ErrorKind::TimedOut.into()) } else { read });
        }
        ready!(this.poll_read_deadline(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.after_write(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.after_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::BUSY;

    #[test]
    fn busy_reply_has_the_right_content_length() {
        let text = std::str::from_utf8(BUSY).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
