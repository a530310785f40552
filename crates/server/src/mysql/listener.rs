//! Accepts connections of the MySQL protocol.

use std::{net::IpAddr, sync::Arc};

use remora_protocol::mysql::{PacketWriter, WireError, put_early_error};
use tokio::task::JoinSet;

use super::{
    connection,
    service::SqlService,
    wire::{Socket, Wire},
};
use crate::{
    accounts::host_of,
    listen::{Listener, accept_each, refuse_connection},
};

/// Accepts connections. The sessions of a listener that `is_sphinx` begin in Sphinx's dialect.
pub(crate) async fn accept(
    listener: impl Listener<Stream: Socket>,
    service: Arc<SqlService>,
    is_sphinx: bool,
) {
    let stopping = service.shared.stopping.subscribe();
    accept_each(listener, stopping, |sessions, stream, address| {
        admit(sessions, Wire::new(stream), address, (&service, is_sphinx));
    })
    .await;
}

/// Starts a session, or refuses the connection.
fn admit(
    sessions: &mut JoinSet<()>,
    stream: Wire,
    address: Option<IpAddr>,
    (service, is_sphinx): (&Arc<SqlService>, bool),
) {
    let settings = service.shared.settings.load();
    let list = settings.allow_cidrs.as_deref();
    let is_allowed = match (list, address) {
        (Some(list), Some(address)) => list.iter().any(|cidr| cidr.contains(address)),
        _ => true,
    };
    if !is_allowed {
        let host = host_of(address);
        tracing::warn!("{host} is in none of network.allow_cidrs and was turned away");
        sessions.spawn(refuse_connection(stream, early_error(&WireError::host_not_allowed(&host))));
        return;
    }
    match service.connect() {
        Some(slot) => {
            slot.connection.set_peer(stream.peer());
            let service = Arc::clone(service);
            sessions.spawn(async move {
                let run = connection::run(stream, address, (service, is_sphinx), slot);
                if let Err(error) = run.await {
                    tracing::debug!("a MySQL connection ended: {error}");
                }
            });
        }
        None => {
            sessions
                .spawn(refuse_connection(stream, early_error(&WireError::too_many_connections())));
        }
    }
}

/// The error packet that a refused client reads instead of a greeting.
fn early_error(error: &WireError) -> Vec<u8> {
    let mut writer = PacketWriter::default();
    writer.message(|out| put_early_error(out, error));
    writer.bytes().to_vec()
}
