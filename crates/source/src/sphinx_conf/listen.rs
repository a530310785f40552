//! searchd's `listen` lines: address and protocol.
//!
//! ```text
//! listen = [ address ":" ] port [ ":" protocol ] | path [ ":" protocol ] | address
//! ```

use super::{
    text::{Section, Setting},
    wrong,
};
use crate::Result;

/// The protocol of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Sphinx's binary protocol.
    SphinxApi,
    /// MySQL's protocol.
    Mysql,
}

/// A line `listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The protocol.
    pub protocol: Protocol,
    /// The address.
    pub place: ListenAddress,
    /// The file and line, for messages.
    pub line: String,
}

/// An address of searchd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An address, `HOST:PORT`.
    Address(String),
    /// A port without an address: Sphinx listens on all addresses.
    AnyAddress(u16),
    /// The path of a Unix socket.
    Socket(String),
}

/// The default ports of Sphinx's protocols.
const DEFAULTS: [(Protocol, u16); 2] = [(Protocol::SphinxApi, 9312), (Protocol::Mysql, 9306)];

/// The `listen` lines of a section, or Sphinx's defaults.
pub(super) fn read(file: &str, searchd: Option<&Section>) -> Result<Vec<Listen>> {
    let lines: Vec<&Setting> = searchd.into_iter().flat_map(|it| it.all("listen")).collect();
    let mut found: Vec<Listen> = Vec::new();
    for setting in &lines {
        let refuse = |message: &str| {
            wrong(file, setting.line, format!("listen = {}: {message}", setting.value))
        };
        let (protocol, place) = parse(&setting.value).map_err(|message| refuse(&message))?;
        let is_socket = |place: &ListenAddress| matches!(place, ListenAddress::Socket(_));
        let same =
            |it: &&Listen| it.protocol == protocol && is_socket(&it.place) == is_socket(&place);
        if let Some(other) = found.iter().find(same) {
            let other = &other.line;
            return Err(refuse(&format!(
                "{other} listens for that protocol already: take one out"
            )));
        }
        found.push(Listen { protocol, place, line: format!("{file}:{}", setting.line) });
    }
    if lines.is_empty() {
        let default = |(protocol, port)| Listen {
            protocol,
            place: ListenAddress::AnyAddress(port),
            line: file.to_owned(),
        };
        found.extend(DEFAULTS.map(default));
    }
    Ok(found)
}

fn parse(value: &str) -> Result<(Protocol, ListenAddress), String> {
    if value.starts_with('/') {
        let (path, protocol) = value.split_once(':').unwrap_or((value, "sphinx"));
        return match protocol_of(protocol)? {
            Protocol::Mysql => Ok((Protocol::Mysql, ListenAddress::Socket(path.to_owned()))),
            Protocol::SphinxApi => Err("SphinxAPI is not spoken on Unix sockets: name a port of \
                                        127.0.0.1, or add :mysql41"
                .to_owned()),
        };
    }
    let parts: Vec<&str> = value.split(':').map(str::trim).collect();
    let (host, port, protocol) = match *parts.as_slice() {
        [port] if is_number(port) => (None, port, "sphinx"),
        [host] => (Some(host), "9312", "sphinx"),
        [port, protocol] if is_number(port) => (None, port, protocol),
        [host, port] => (Some(host), port, "sphinx"),
        [host, port, protocol] => (Some(host), port, protocol),
        _ => {
            return Err("it is not ADDRESS:PORT:PROTOCOL; write IPv6 addresses by --sql".to_owned());
        }
    };
    let protocol = protocol_of(protocol)?;
    if port.contains('-') {
        return Err(
            "ranges of ports are for agents, which there are none of: name one port".to_owned()
        );
    }
    let number: u16 = port.parse().map_err(|_| format!("'{port}' is no port"))?;
    let place = match host {
        None | Some("") => ListenAddress::AnyAddress(number),
        Some(host) => ListenAddress::Address(format!("{host}:{number}")),
    };
    Ok((protocol, place))
}

fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '-')
}

fn protocol_of(name: &str) -> Result<Protocol, String> {
    match name.strip_suffix("_vip").unwrap_or(name) {
        "sphinx" => Ok(Protocol::SphinxApi),
        "mysql41" | "mysql" => Ok(Protocol::Mysql),
        "http" | "https" => {
            Err("HTTP is another one here: take the line out, and give 'remora serve' --http"
                .to_owned())
        }
        other => Err(format!("'{other}' is no protocol: take sphinx or mysql41")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let api = Protocol::SphinxApi;
        let any = |port| ListenAddress::AnyAddress(port);
        let at = |address: &str| ListenAddress::Address(address.to_owned());
        for (line, protocol, place) in [
            ("9312", api, any(9312)),
            ("9306:mysql41", Protocol::Mysql, any(9306)),
            ("localhost", api, at("localhost:9312")),
            ("10.0.0.5:7", api, at("10.0.0.5:7")),
            ("127.0.0.1:9306:mysql41_vip", Protocol::Mysql, at("127.0.0.1:9306")),
            (
                "/run/s.sock:mysql41",
                Protocol::Mysql,
                ListenAddress::Socket("/run/s.sock".to_owned()),
            ),
        ] {
            assert_eq!(parse(line), Ok((protocol, place)), "{line}");
        }
        for (line, message) in [
            ("/run/s.sock", "SphinxAPI is not spoken on Unix sockets"),
            ("9312:http", "--http"),
            ("9312-9320:sphinx", "ranges"),
            ("a:b", "'b' is no port"),
            ("70000", "'70000' is no port"),
            ("9312:replication", "'replication' is no protocol"),
            ("a:1:sphinx:x", "ADDRESS:PORT:PROTOCOL"),
        ] {
            assert!(parse(line).unwrap_err().contains(message), "{line}");
        }
    }
}
