//! Addresses to listen on: their hosts, and whether other machines reach them.

use std::net::IpAddr;

/// The host of `HOST:PORT`, brackets of an IPv6 address taken off.
pub(super) fn host_of(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    Some(host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host))
}

/// Whether a host is this machine itself.
pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether only this machine reaches an address; `None` where it is not HOST:PORT.
pub(super) fn is_loopback_address(address: &str) -> Option<bool> {
    host_of(address).map(is_loopback)
}
