//! Addresses to listen on: their hosts, and whether they are reachable from other machines.

use std::net::IpAddr;

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
pub(super) fn host_of(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    Some(host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host))
}

/// Whether a host is a loopback address.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether an address is only reachable from this machine; `None` if it is not HOST:PORT.
pub(super) fn is_loopback_address(address: &str) -> Option<bool> {
    host_of(address).map(is_loopback)
}
