//! Accepts connections of the line protocol.

use std::{net::IpAddr, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
};

use super::connection;
use crate::{
    counters::{Connected, Denial},
    listen::{Listener, accept_each, refuse_connection},
    settings::Settings,
    shared::ServerState,
};

/// The reply to a connection beyond the limit.
const SERVER_BUSY: &[u8] = b"ERROR 6030 SERVER_BUSY too many connections, try again later\r\n";

/// Accepts connections of the line protocol.
pub(crate) async fn accept(listener: impl Listener, shared: Arc<ServerState>) {
    let stopping = shared.stopping.subscribe();
    accept_each(listener, stopping, |sessions, stream, address| {
        admit(sessions, stream, address, &shared);
    })
    .await;
}

/// Starts a session, or refuses the connection. Local sockets have no address and are protected by the file system.
fn admit<S>(
    sessions: &mut JoinSet<()>,
    stream: S,
    address: Option<IpAddr>,
    shared: &Arc<ServerState>,
) where
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
            sessions.spawn(refuse_connection(stream, SERVER_BUSY.to_vec()));
        }
    }
}

fn may_connect(settings: &Settings, address: IpAddr) -> bool {
    let list = settings.allow_cidrs.as_deref();
    list.is_none_or(|list| list.iter().any(|cidr| cidr.contains(address)))
}

async fn serve<S>(stream: S, address: Option<IpAddr>, shared: Arc<ServerState>, place: Connected)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    if let Err(error) = connection::run(stream, address, shared).await {
        tracing::debug!("a connection ended: {error}");
    }
    drop(place);
}
