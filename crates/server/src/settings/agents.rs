//! `[agents]`: the other servers whose tables distributed tables may name, as a `remora.toml` types it.

use std::fmt;

use serde::Deserialize;

use super::{Settings, address::host_of, set::set};

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 10_000;

/// What is asked of other servers, and as whom.
#[derive(Clone, PartialEq, Eq)]
pub struct Agents {
    /// The SQL ports, `HOST:PORT`, that may be asked: no others are, whatever a table names.
    pub addresses: Vec<String>,
    /// The account there.
    pub user: String,
    /// Its password.
    pub password: String,
    /// Most connections to all of them together.
    pub max_connections: usize,
}

impl Default for Agents {
    fn default() -> Self {
        let (addresses, user) = (Vec::new(), "root".to_owned());
        Self { addresses, user, password: String::new(), max_connections: 256 }
    }
}

/// Without the password.
impl fmt::Debug for Agents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Agents")
            .field("addresses", &self.addresses)
            .field("user", &self.user)
            .field("max_connections", &self.max_connections)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TypedAgents {
    addresses: Option<Vec<String>>,
    user: Option<String>,
    password: Option<String>,
    max_connections: Option<usize>,
}

impl TypedAgents {
    pub(super) fn apply(self, agents: &mut Agents) {
        set(&mut agents.addresses, self.addresses);
        set(&mut agents.user, self.user);
        set(&mut agents.password, self.password);
        set(&mut agents.max_connections, self.max_connections);
    }
}

/// Why these settings cannot be served, with the mend.
pub(super) fn refusal(settings: &Settings) -> Option<String> {
    let Agents { addresses, max_connections, .. } = &settings.agents;
    if let Some(address) = addresses.iter().find(|address| host_of(address).is_none()) {
        return Some(format!("agents.addresses '{address}' is not HOST:PORT, as 10.0.0.2:9306 is"));
    }
    let is_right = (1..=MOST_CONNECTIONS).contains(max_connections);
    (!is_right).then(|| {
        format!(
            "agents.max_connections is {max_connections}; it lies between 1 and {MOST_CONNECTIONS}"
        )
    })
}
