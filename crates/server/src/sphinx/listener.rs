//! Accepts connections. The protocol has no login: if there are users, its clients act as the one in
//! `listen.sphinx_api_user`, if that user may connect from their address.

use std::{net::IpAddr, sync::Arc};

use remora_protocol::sphinx::{GREETING, put_error, put_retry};
use remora_sql::Identity;
use tokio::task::JoinSet;

use super::connection;
use crate::{
    accounts::{LoginPolicy, host_of},
    counters::Denial,
    listen::{Listener, accept_each, refuse_connection},
    mysql::{Socket, SqlService, Wire},
    settings::{Settings, find_user},
};

/// The message for a connection beyond the limit, as in `searchd`.
const MAXED_OUT: &str = "server maxed out, retry in a second";

/// Accepts connections.
pub(crate) async fn accept(listener: impl Listener<Stream: Socket>, service: Arc<SqlService>) {
    let stopping = service.shared.stopping.subscribe();
    accept_each(listener, stopping, |sessions, stream, address| {
        admit(sessions, stream, address, &service);
    })
    .await;
}

/// Starts a session, or refuses the connection.
fn admit(
    sessions: &mut JoinSet<()>,
    stream: impl Socket,
    address: Option<IpAddr>,
    service: &Arc<SqlService>,
) {
    let settings = service.shared.settings.load();
    let stream = Wire::new(stream);
    let list = settings.allow_cidrs.as_deref();
    let is_allowed = match (list, address) {
        (Some(list), Some(address)) => list.iter().any(|cidr| cidr.contains(address)),
        _ => true,
    };
    let identity = is_allowed.then(|| identify(&settings, address)).flatten();
    let Some(identity) = identity else {
        let host = host_of(address);
        service.shared.counters.deny(Denial::Network, false);
        tracing::warn!("{host} may not use SphinxAPI and was turned away");
        let mut reason = GREETING.to_vec();
        put_error(&mut reason, &format!("Host '{host}' is not allowed to connect to this server"));
        sessions.spawn(refuse_connection(stream, reason));
        return;
    };
    match service.reserve() {
        Some(reserved) => {
            sessions.spawn(async move {
                if let Err(error) = connection::run(stream, address, reserved, identity).await {
                    tracing::debug!("a connection of SphinxAPI ended: {error}");
                }
            });
        }
        None => {
            service.shared.counters.deny(Denial::Connections, false);
            let mut reason = GREETING.to_vec();
            put_retry(&mut reason, MAXED_OUT);
            sessions.spawn(refuse_connection(stream, reason));
        }
    }
}

/// The identity of a client at this address; `None` if it has none.
fn identify(settings: &Settings, address: Option<IpAddr>) -> Option<Identity> {
    let (name, host) = (settings.listen.sphinx_api_user.clone(), host_of(address));
    if name.is_empty() {
        let is_open = !LoginPolicy::of(settings).is_required();
        return is_open.then(|| Identity { host, ..Identity::default() });
    }
    let user = find_user(&settings.users, &name, address)?;
    Some(Identity { user: name, host, rights: user.rights.clone() })
}
