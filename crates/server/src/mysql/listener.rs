//! Accepting connections of the MySQL protocol.

use std::{net::IpAddr, sync::Arc, time::Duration};

use remora_protocol::mysql::{PacketWriter, WireError, put_early_error};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    task::JoinSet,
};

use super::{connection, login::host_of, side::SqlSide};
use crate::session::{Door, pause};

/// Accepts connections until the server stops, then waits for their sessions.
pub(crate) async fn accept(door: impl Door, side: Arc<SqlSide>) {
    let mut stopping = side.shared.stopping.subscribe();
    let mut sessions = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = door.next() => accepted,
            _ = stopping.changed() => break,
            Some(_) = sessions.join_next(), if !sessions.is_empty() => continue,
        };
        match accepted {
            Ok((stream, address)) => admit(&mut sessions, stream, address, &side),
            Err(error) => pause(&error).await,
        }
    }
    drop(door);
    while sessions.join_next().await.is_some() {}
}

/// Starts a session, or turns the connection away.
fn admit<S>(sessions: &mut JoinSet<()>, stream: S, address: Option<IpAddr>, side: &Arc<SqlSide>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let settings = side.shared.settings.load();
    let list = settings.allow_cidrs.as_deref();
    let is_allowed = match (list, address) {
        (Some(list), Some(address)) => list.iter().any(|cidr| cidr.contains(address)),
        _ => true,
    };
    if !is_allowed {
        let host = host_of(address);
        tracing::warn!("{host} is in none of network.allow_cidrs and was turned away");
        sessions.spawn(turn_away(stream, WireError::host_not_allowed(&host)));
        return;
    }
    match side.connect() {
        Some(place) => {
            let side = Arc::clone(side);
            sessions.spawn(async move {
                if let Err(error) = connection::run(stream, address, side, place).await {
                    tracing::debug!("a MySQL connection ended: {error}");
                }
            });
        }
        None => {
            sessions.spawn(turn_away(stream, WireError::too_many_connections()));
        }
    }
}

/// Tells the client in the place of a greeting.
async fn turn_away<S: AsyncWrite + Unpin>(mut stream: S, error: WireError) {
    let mut writer = PacketWriter::default();
    writer.message(|out| put_early_error(out, &error));
    let reply = async {
        stream.write_all(writer.bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), reply).await;
}
