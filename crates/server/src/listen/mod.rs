//! Accepts connections of any protocol until the server stops, refuses connections with a reason, and manages Unix
//! socket files.

mod socket_file;

use std::{io, net::IpAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::watch,
    task::JoinSet,
};

pub(crate) use socket_file::SocketFile;

/// The pause after a failed accept, which usually means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A listener. Local sockets have no address.
pub(crate) trait Listener: Send + Sync + 'static {
    /// A connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// The next connection and its address.
    fn next(&self) -> impl Future<Output = io::Result<(Self::Stream, Option<IpAddr>)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn next(&self) -> io::Result<(TcpStream, Option<IpAddr>)> {
        let (stream, address) = self.accept().await?;
        // Replies are written as a whole; joining them would only cause delay.
        let _ = stream.set_nodelay(true);
        Ok((stream, Some(address.ip())))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn next(&self) -> io::Result<(UnixStream, Option<IpAddr>)> {
        Ok((self.accept().await?.0, None))
    }
}

/// Accepts connections until the server stops, then waits for their sessions. `admit` starts a session or refuses the
/// connection.
pub(crate) async fn accept_each<D: Listener>(
    listener: D,
    mut stopping: watch::Receiver<bool>,
    mut admit: impl FnMut(&mut JoinSet<()>, D::Stream, Option<IpAddr>),
) {
    let mut sessions = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.next() => accepted,
            _ = stopping.changed() => break,
            Some(_) = sessions.join_next(), if !sessions.is_empty() => continue,
        };
        match accepted {
            Ok((stream, address)) => admit(&mut sessions, stream, address),
            Err(error) => pause(&error).await,
        }
    }
    drop(listener);
    while sessions.join_next().await.is_some() {}
}

/// Waits after a failed accept.
async fn pause(error: &io::Error) {
    tracing::warn!("cannot accept a connection: {error}; is the limit of open files too low?");
    tokio::time::sleep(ACCEPT_PAUSE).await;
}

/// Tells a client why it is refused, if it reads.
pub(crate) async fn refuse_connection<S: AsyncWrite + Unpin>(mut stream: S, reason: Vec<u8>) {
    let reply = async {
        stream.write_all(&reason).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), reply).await;
}
