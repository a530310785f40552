//! Accepting connections: who may come in, and how many.

use std::{io, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::watch,
    task::JoinSet,
};

use super::connection;
use crate::{
    counters::{Connected, Denial},
    server::Shared,
    settings::Settings,
};

/// The answer to a connection that finds every place taken.
const SERVER_BUSY: &[u8] = b"ERROR 6030 SERVER_BUSY too many connections, try again later\r\n";
/// The wait after a failed accept, which mostly means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where connections come in. Local sockets have no address.
pub(crate) trait Door: Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection and whose it is.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Option<IpAddr>)>> + Send;
}

impl Door for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Option<IpAddr>)> {
        let (stream, address) = self.accept().await?;
        // Replies are written whole; waiting to join them would only delay them.
        let _ = stream.set_nodelay(true);
        Ok((stream, Some(address.ip())))
    }
}

impl Door for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Option<IpAddr>)> {
        Ok((self.accept().await?.0, None))
    }
}

/// Accepts connections of the line protocol.
pub(crate) async fn accept(door: impl Door, shared: Arc<Shared>) {
    let stopping = shared.stopping.subscribe();
    accept_each(door, stopping, |sessions, stream, address| {
        admit(sessions, stream, address, &shared);
    })
    .await;
}

/// Accepts connections until the server stops, then waits for their sessions. `admit` starts one or
/// turns the connection away.
pub(crate) async fn accept_each<D: Door>(
    door: D,
    mut stopping: watch::Receiver<bool>,
    mut admit: impl FnMut(&mut JoinSet<()>, D::Stream, Option<IpAddr>),
) {
    let mut sessions = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = door.next() => accepted,
            _ = stopping.changed() => break,
            Some(_) = sessions.join_next(), if !sessions.is_empty() => continue,
        };
        match accepted {
            Ok((stream, address)) => admit(&mut sessions, stream, address),
            Err(error) => pause(&error).await,
        }
    }
    drop(door);
    while sessions.join_next().await.is_some() {}
}

/// Waits after a failed accept.
async fn pause(error: &io::Error) {
    tracing::warn!("cannot accept a connection: {error}; is the limit of open files too low?");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Starts a session, or turns the connection away. Local sockets have no address and are guarded
/// by the file system.
fn admit<S>(sessions: &mut JoinSet<()>, stream: S, address: Option<IpAddr>, shared: &Arc<Shared>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let settings = shared.settings.load();
    if let Some(address) = address
        && !may_connect(&settings, address)
    {
        shared.counters.deny(Denial::Network, false);
        tracing::warn!("{address} is in none of network.allow_cidrs and was turned away");
        return;
    }
    match shared.counters.connect(settings.limits.max_connections) {
        Some(place) => {
            let shared = Arc::clone(shared);
            sessions.spawn(serve(stream, address, shared, place));
        }
        None => {
            shared.counters.deny(Denial::Connections, false);
            sessions.spawn(turn_away(stream, SERVER_BUSY.to_vec()));
        }
    }
}

fn may_connect(settings: &Settings, address: IpAddr) -> bool {
    let list = settings.allow_cidrs.as_deref();
    list.is_none_or(|list| list.iter().any(|cidr| cidr.contains(address)))
}

async fn serve<S>(stream: S, address: Option<IpAddr>, shared: Arc<Shared>, place: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Err(error) = connection::run(stream, address, shared).await {
        tracing::debug!("a connection ended: {error}");
    }
    drop(place);
}

/// Tells a client why it does not come in, if it listens.
pub(crate) async fn turn_away<S: AsyncWrite + Unpin>(mut stream: S, reason: Vec<u8>) {
    let reply = async {
        stream.write_all(&reason).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), reply).await;
}
