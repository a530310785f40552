//! A sphinx.conf as settings of a server: its addresses, its data directory, and the indexes that SQL writes.

use std::path::Path;

use remora_engine::Schema;
use remora_source::sphinx_conf::{IndexKind, ListenAddress, Protocol, SphinxConf};

use super::{Listen, Settings, address::is_loopback_address};
use crate::{Error, Result};

/// The contents of a sphinx.conf beyond [`Settings`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SphinxSettings {
    /// The plain indexes, whose tables are created by an import.
    pub plain: Vec<String>,
    /// Differences from Sphinx, for the log.
    pub notes: Vec<String>,
    /// Why the file gives no data directory, if it does not.
    pub no_data: Option<String>,
}

/// The account with which agents are contacted.
const AGENTS_USER: &str = "sphinx";

/// Parses a sphinx.conf.
pub(super) fn parse(path: &Path, text: &str) -> Result<Settings> {
    let conf = SphinxConf::parse(&path.display().to_string(), text)?;
    let mut more = SphinxSettings { notes: conf.warnings().to_vec(), ..SphinxSettings::default() };
    let mut settings = Settings { unused: conf.unused(), ..Settings::default() };
    match conf.data() {
        Ok(data) => settings.data = data,
        Err(error) => more.no_data = Some(error.to_string()),
    }
    settings.listen = listen(&conf, &mut more.notes)?;
    // Its clients are those of searchd.
    settings.sql.dialect = "sphinx".to_owned();
    for (name, kind) in conf.indexes() {
        match kind {
            IndexKind::Plain => more.plain.push(name.to_owned()),
            IndexKind::RealTime => settings.tables.push(conf.real_time_table(name)?),
            IndexKind::Percolate => settings.tables.push(percolate_table(&conf, name)?),
            IndexKind::Distributed => {
                let table = conf.distributed_table(name)?;
                // The author of the file decides which servers may be contacted.
                let agents = table.agents().iter().flat_map(|agent| addresses(agent));
                settings.agents.addresses.extend(agents);
                settings.tables.push(table);
            }
            IndexKind::Template => {}
            IndexKind::Other(kind) => {
                more.notes.push(format!("index '{name}' is {kind}, which is not served"));
            }
        }
    }
    // Sphinx contacts agents without an account. A server with users can give this one the right to those tables only,
    // and list it in agents.serves.
    settings.agents.user = Some(AGENTS_USER.to_owned());
    settings.sphinx_conf = Some(more);
    Ok(settings)
}

/// The table of a percolate index.
pub(crate) fn percolate_table(conf: &SphinxConf, name: &str) -> Result<Schema> {
    let documents = conf.percolate_documents(name)?;
    remora_sql::percolate_table(documents)
        .map_err(|error| Error::Settings(format!("index '{name}': {}", error.message)))
}

/// The servers of an agent.
fn addresses(agent: &str) -> impl Iterator<Item = String> + '_ {
    let (mirrors, _) = agent.split_once('[').unwrap_or((agent, ""));
    mirrors.split('|').filter_map(|mirror| {
        let mut parts = mirror.trim().splitn(3, ':');
        Some(format!("{}:{}", parts.next()?, parts.next()?))
    })
}

/// Only the addresses in the file.
fn listen(conf: &SphinxConf, notes: &mut Vec<String>) -> Result<Listen> {
    let mut listen = Listen {
        line: String::new(),
        http: String::new(),
        sql: String::new(),
        ..Listen::default()
    };
    for line in conf.listen()? {
        let address = match line.place {
            ListenAddress::Socket(path) => {
                listen.sql_socket = Some(path.into());
                continue;
            }
            ListenAddress::Address(address) if is_loopback_address(&address) == Some(false) => {
                return Err(Error::Settings(format!(
                    "{}: '{address}' can be reached from other machines, and a sphinx.conf names no users: \
                     listen on 127.0.0.1, or serve the same data directory by a remora.toml with [[users]]",
                    line.line
                )));
            }
            ListenAddress::Address(address) => address,
            ListenAddress::AnyAddress(port) => {
                notes.push(format!(
                    "{}: port {port} is that of 127.0.0.1 alone, as a sphinx.conf names no users; Sphinx would \
                     listen on all addresses",
                    line.line
                ));
                format!("127.0.0.1:{port}")
            }
        };
        match line.protocol {
            Protocol::SphinxApi => listen.sphinx_api = address,
            Protocol::Mysql => listen.sql = address,
        }
    }
    Ok(listen)
}
