//! `[agents]` of a `remora.toml`: the other servers whose tables distributed tables may name.

use std::fmt;

use serde::Deserialize;

use super::{Settings, address::host_of, set::set};

/// The most connections at a time.
const MOST_CONNECTIONS: usize = 10_000;

/// Settings for requests to other servers.
#[derive(Clone, PartialEq, Eq)]
pub struct Agents {
    /// The permitted SQL addresses, `HOST:PORT`. No others are contacted, whatever a table names.
    pub addresses: Vec<String>,
    /// The account there; without one no server is contacted.
    pub user: Option<String>,
    /// Its password.
    pub password: String,
    /// The local accounts with which other servers may request parts of tables. Without users and token, everyone may.
    pub serves: Vec<String>,
    /// The most connections to all of them, including idle ones.
    pub max_connections: usize,
    /// The most used connections to one of them.
    pub max_connections_per_server: usize,
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            user: None,
            password: String::new(),
            serves: Vec::new(),
            max_connections: 256,
            max_connections_per_server: 64,
        }
    }
}

/// Everything except the password.
impl fmt::Debug for Agents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agents")
            .field("addresses", &self.addresses)
            .field("user", &self.user)
            .field("serves", &self.serves)
            .field("max_connections", &self.max_connections)
            .field("max_connections_per_server", &self.max_connections_per_server)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentsSection {
    addresses: Option<Vec<String>>,
    user: Option<String>,
    password: Option<String>,
    serves: Option<Vec<String>>,
    max_connections: Option<usize>,
    max_connections_per_server: Option<usize>,
}

impl AgentsSection {
    pub(super) fn apply(self, agents: &mut Agents) {
        set(&mut agents.addresses, self.addresses);
        set(&mut agents.user, self.user.map(Some));
        set(&mut agents.password, self.password);
        set(&mut agents.serves, self.serves);
        set(&mut agents.max_connections, self.max_connections);
        set(&mut agents.max_connections_per_server, self.max_connections_per_server);
    }
}

/// Whether other servers may request parts of tables with this account.
pub(crate) fn serves(settings: &Settings, account: &str) -> bool {
    let is_open = settings.users.is_empty() && settings.admin_token.is_empty();
    is_open || settings.agents.serves.iter().any(|served| served == account)
}

/// Why these settings are refused, with advice.
pub(super) fn refusal(settings: &Settings) -> Option<String> {
    let agents = &settings.agents;
    if let Some(address) = agents.addresses.iter().find(|address| host_of(address).is_none()) {
        return Some(format!("agents.addresses '{address}' is not HOST:PORT, as 10.0.0.2:9306 is"));
    }
    let is_name = |user: &String| !user.is_empty() && !user.contains('\0');
    if agents.user.as_ref().is_some_and(|user| !is_name(user)) {
        return Some("agents.user is no name of an account".to_owned());
    }
    let is_known = |name: &String| settings.users.iter().any(|user| user.name == *name);
    // With a token only, it is accepted with any name.
    let unknown = agents.serves.iter().find(|name| !is_known(name));
    if let Some(name) = unknown.filter(|_| !settings.users.is_empty()) {
        return Some(format!("agents.serves '{name}' is none of [[users]]"));
    }
    let counts = [
        ("max_connections", agents.max_connections),
        ("max_connections_per_server", agents.max_connections_per_server),
    ];
    let (name, count) =
        counts.into_iter().find(|(_, count)| !(1..=MOST_CONNECTIONS).contains(count))?;
    Some(format!("agents.{name} is {count}; it lies between 1 and {MOST_CONNECTIONS}"))
}
