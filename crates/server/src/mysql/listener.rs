//! Accepts connections of the MySQL protocol.

use std::{net::IpAddr, sync::Arc};

use remora_protocol::mysql::{PacketWriter, WireError, put_early_error};
use tokio::task::JoinSet;

use super::{
    connection,
    side::SqlSide,
    wire::{Socket, Wire},
};
use crate::{
    accounts::host_of,
    listen::{Door, accept_each, turn_away},
};

/// Accepts connections.
pub(crate) async fn accept(door: impl Door<Stream: Socket>, side: Arc<SqlSide>) {
    let stopping = side.shared.stopping.subscribe();
    accept_each(door, stopping, |sessions, stream, address| {
        admit(sessions, Wire::new(stream), address, &side);
    })
    .await;
}

/// Starts a session, or refuses the connection.
fn admit(sessions: &mut JoinSet<()>, stream: Wire, address: Option<IpAddr>, side: &Arc<SqlSide>) {
    let settings = side.shared.settings.load();
    let list = settings.allow_cidrs.as_deref();
    let is_allowed = match (list, address) {
        (Some(list), Some(address)) => list.iter().any(|cidr| cidr.contains(address)),
        _ => true,
    };
    if !is_allowed {
        let host = host_of(address);
        tracing::warn!("{host} is in none of network.allow_cidrs and was turned away");
        sessions.spawn(turn_away(stream, early(&WireError::host_not_allowed(&host))));
        return;
    }
    match side.connect() {
        Some(place) => {
            place.connection.comes_over(stream.peer());
            let side = Arc::clone(side);
            sessions.spawn(async move {
                if let Err(error) = connection::run(stream, address, side, place).await {
                    tracing::debug!("a MySQL connection ended: {error}");
                }
            });
        }
        None => {
            sessions.spawn(turn_away(stream, early(&WireError::too_many_connections())));
        }
    }
}

/// The error packet that a refused client reads instead of a greeting.
fn early(error: &WireError) -> Vec<u8> {
    let mut writer = PacketWriter::default();
    writer.message(|out| put_early_error(out, error));
    writer.bytes().to_vec()
}
