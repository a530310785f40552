//! The agents in a distributed table's definition.
//!
//! ```text
//! agent   := mirror ("|" mirror)* ["[" option ("," option)* "]"]
//! mirror  := host ":" port [":" table ("," table)*]          table := [database "."] name
//! option  := ("ha_strategy" | "conn" | "retry_count") "=" value
//! ```
//! A mirror without tables takes the tables of the next mirror that names some, or else those of
//! the previous one.

use std::time::Duration;

use remora_engine::Schema;
use remora_mysql::ErrorCode;

use crate::{Error, Result, parse::PARTIAL, shared::Strategy};

/// The most mirrors that one agent may have.
const MAX_MIRRORS: usize = 16;
/// The most tables that one mirror may read as one.
const MAX_TABLES: usize = 64;
/// The highest retry count that a table or an agent may declare.
const MAX_RETRIES: u64 = 100;
/// The limits of what the OPTION of a statement may raise: the retry count, and the sum of the
/// pauses between tries. A table may declare more, and then its own values are the limit.
const MAX_ASKED_RETRIES: u64 = 10;
const MAX_ASKED_PAUSES: Duration = Duration::from_secs(10);
/// The longest timeout or delay, in milliseconds: an hour.
const MAX_MS: u64 = 3_600_000;

/// The numeric settings: name, default and greatest value. Those named `_timeout` and `_delay` are
/// in milliseconds.
const NUMBERS: [(&str, u64, u64); 5] = [
    ("agent_connect_timeout", 1_000, MAX_MS),
    ("agent_query_timeout", 3_000, MAX_MS),
    ("agent_retry_count", 0, MAX_RETRIES),
    ("agent_retry_delay", 500, MAX_MS),
    ("mirror_retry_count", 0, MAX_RETRIES),
];

/// The setting that chooses the [`Strategy`].
pub(crate) const HA_STRATEGY: &str = "ha_strategy";

/// The timeouts of an agent, and whether its connections are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    /// The time for connecting and logging in.
    pub connect: Duration,
    /// The time for opening the agent's part, and then for all further requests of the statement
    /// together.
    pub query: Duration,
    /// Whether the connection is kept open for later statements.
    pub is_kept: bool,
}

/// One agent: servers that hold the same rows, of which one is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agent {
    /// The servers, each with the tables there that are read as one.
    pub mirrors: Vec<Mirror>,
    /// The order in which the mirrors are asked.
    pub strategy: Strategy,
    /// How often all mirrors are tried again after each of them failed.
    pub retries: u64,
    /// Whether the agent declares `retries` itself. Then the statement's OPTION does not change it.
    pub has_retries: bool,
    /// The pause before each retry.
    pub retry_delay: Duration,
    /// The timeouts of each mirror.
    pub times: Times,
    /// Whether the statement set a shorter query timeout than the table has. A server that is then
    /// late does not count as failed.
    pub is_hasty: bool,
}

/// One server of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    /// `host:port`.
    pub address: String,
    /// The tables to read there, as `database.table`.
    pub tables: Vec<String>,
}

impl Agent {
    /// Applies the OPTION of a statement. Anyone who may read the table can set it, so retries
    /// and pauses are capped by the table's own or by small fixed limits, and the time of a query by
    /// an hour.
    fn asked(mut self, asked: AgentOptions) -> Self {
        let most_retries = self.retries.max(MAX_ASKED_RETRIES);
        let pauses = |it: &Self| {
            it.retry_delay.saturating_mul(u32::try_from(it.retries).unwrap_or(u32::MAX))
        };
        let most_pauses = pauses(&self).max(MAX_ASKED_PAUSES);
        if let Some(retries) = asked.retries.filter(|_| !self.has_retries) {
            self.retries = retries.min(most_retries);
        }
        if let Some(delay_ms) = asked.retry_delay_ms {
            self.retry_delay = Duration::from_millis(delay_ms.min(MAX_MS));
        }
        if pauses(&self) > most_pauses {
            self.retry_delay = most_pauses / u32::try_from(self.retries).unwrap_or(u32::MAX).max(1);
        }
        if let Some(query_ms) = asked.query_timeout_ms {
            let query = Duration::from_millis(query_ms.clamp(1, MAX_MS));
            self.is_hasty = query < self.times.query;
            self.times.query = query;
        }
        self
    }

    /// The name by which messages call this agent.
    pub(crate) fn name(&self) -> String {
        self.mirrors.iter().map(Mirror::name).collect::<Vec<_>>().join("|")
    }
}

impl Mirror {
    /// The name by which messages call this server.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.address, self.tables.join(","))
    }
}

/// What the OPTION of a statement sets for its requests to agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AgentOptions {
    /// Whether agents that do not answer are left out of the result.
    pub is_partial: bool,
    /// `agent_query_timeout`, in milliseconds.
    pub query_timeout_ms: Option<u64>,
    /// `retry_count`.
    pub retries: Option<u64>,
    /// `retry_delay`, in milliseconds.
    pub retry_delay_ms: Option<u64>,
}

impl AgentOptions {
    /// Reads the options of a statement. `said` gives the number that OPTION has under a name.
    pub(crate) fn of(said: impl Fn(&str) -> Option<u64>) -> Self {
        Self {
            is_partial: said(PARTIAL).is_some_and(|partial| partial > 0),
            query_timeout_ms: said("agent_query_timeout").filter(|ms| *ms > 0),
            retries: said("retry_count"),
            retry_delay_ms: said("retry_delay"),
        }
    }
}

/// Checks that a setting of agents has this name.
///
/// # Errors
/// 1235 if no setting has it.
pub(crate) fn check_named(name: &str) -> Result<()> {
    if name == HA_STRATEGY || NUMBERS.iter().any(|(known, ..)| *known == name) {
        return Ok(());
    }
    let settings = NUMBERS.map(|(known, ..)| known).join(", ");
    let message = format!(
        "{name} is no option of a distributed table: it has local, agent, agent_persistent, {HA_STRATEGY}, {settings}"
    );
    Err(Error::new(ErrorCode::NotSupported, message))
}

/// Checks the name and the value of a setting of agents.
///
/// # Errors
/// 1235 if there is no such setting, 1064 if the value is not allowed.
pub(crate) fn check_setting(name: &str, value: &str) -> Result<()> {
    check_named(name)?;
    let refused = |message: String| Err(Error::new(ErrorCode::ParseError, message));
    if name == HA_STRATEGY {
        return match Strategy::named(value) {
            Some(_) => Ok(()),
            None => refused(format!(
                "{HA_STRATEGY} '{value}' is none: say random, roundrobin, nodeads or noerrors"
            )),
        };
    }
    let most = NUMBERS.iter().find(|(known, ..)| *known == name).map_or(0, |it| it.2);
    match value.parse::<u64>() {
        Ok(number) if number <= most => Ok(()),
        _ => refused(format!("{name} '{value}' is no number from 0 to {most}")),
    }
}

/// The agents of a table, with the options of a statement applied. Tables that name no database are
/// looked for in `database`.
///
/// # Errors
/// 1064 if the definition of an agent cannot be parsed.
pub(crate) fn agents(schema: &Schema, asked: AgentOptions, database: &str) -> Result<Vec<Agent>> {
    let settings = schema.agent_settings();
    let said = |name: &str| settings.iter().rev().find(|(known, _)| known == name);
    let number = |name: &str| {
        let default = NUMBERS.iter().find(|(known, ..)| *known == name).map_or(0, |it| it.1);
        said(name).and_then(|(_, value)| value.parse().ok()).unwrap_or(default)
    };
    let ms = |name: &str| Duration::from_millis(number(name).min(MAX_MS));
    let retries = number("agent_retry_count").max(number("mirror_retry_count"));
    let usual = Agent {
        mirrors: Vec::new(),
        strategy: said(HA_STRATEGY).and_then(|(_, it)| Strategy::named(it)).unwrap_or_default(),
        retries: retries.min(MAX_RETRIES),
        has_retries: false,
        retry_delay: ms("agent_retry_delay"),
        times: Times {
            connect: ms("agent_connect_timeout").max(Duration::from_millis(1)),
            query: ms("agent_query_timeout").max(Duration::from_millis(1)),
            is_kept: false,
        },
        is_hasty: false,
    };
    let agents = schema.agents().iter().map(|agent| parse(agent, &usual, database));
    agents.map(|agent| Ok(agent?.asked(asked))).collect()
}

/// The text of an agent as it is stored: each table gets a database, by default that of the
/// distributed table.
///
/// # Errors
/// 1064 if the text cannot be parsed.
pub(crate) fn normalised(said: &str, database: &str, is_kept: bool) -> Result<String> {
    let (times, retries) = (Duration::from_millis(1), 0);
    let usual = Agent {
        mirrors: Vec::new(),
        strategy: Strategy::default(),
        retries,
        has_retries: false,
        retry_delay: times,
        times: Times { connect: times, query: times, is_kept: false },
        is_hasty: false,
    };
    let agent = parse(said, &usual, database)?;
    let mirrors: Vec<String> = agent.mirrors.iter().map(Mirror::name).collect();
    let (_, options) = split_options(said.trim())?;
    let mut options: Vec<&str> = options.split(',').map(str::trim).collect();
    options.retain(|option| !option.is_empty());
    if is_kept && !agent.times.is_kept {
        options.push("conn=pconn");
    }
    let options =
        if options.is_empty() { String::new() } else { format!("[{}]", options.join(",")) };
    Ok(format!("{}{options}", mirrors.join("|")))
}

/// Splits an agent into its mirrors and the options in brackets behind them.
fn split_options(said: &str) -> Result<(&str, &str)> {
    let Some(inner) = said.strip_suffix(']') else { return Ok((said, "")) };
    // IPv6 addresses have brackets too, but never after the port.
    inner.rsplit_once('[').ok_or_else(|| wrong(said, "']' has no '['"))
}

fn parse(said: &str, usual: &Agent, database: &str) -> Result<Agent> {
    let said = said.trim();
    let (mirrors, options) = split_options(said)?;
    let mut agent = usual.clone();
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        match name.as_str() {
            HA_STRATEGY => {
                check_setting(HA_STRATEGY, value)?;
                agent.strategy = Strategy::named(value).unwrap_or_default();
            }
            "conn" => {
                agent.times.is_kept = match value.to_ascii_lowercase().as_str() {
                    "pconn" | "persistent" => true,
                    "conn" => false,
                    _ => return Err(wrong(said, "conn is pconn or conn")),
                }
            }
            "retry_count" => {
                check_setting("agent_retry_count", value)?;
                agent.retries = value.parse().unwrap_or(0);
                agent.has_retries = true;
            }
            _ => return Err(wrong(said, &format!("'{name}' is no option of an agent"))),
        }
    }
    for mirror in mirrors.split('|').map(str::trim) {
        agent.mirrors.push(parse_mirror(said, mirror, database)?);
    }
    if agent.mirrors.len() > MAX_MIRRORS {
        return Err(wrong(said, &format!("an agent has {MAX_MIRRORS} mirrors at most")));
    }
    let mut known: Vec<String> = Vec::new();
    let order = (0..agent.mirrors.len()).rev().chain(0..agent.mirrors.len());
    for place in order {
        let Some(mirror) = agent.mirrors.get_mut(place) else { continue };
        match mirror.tables.is_empty() {
            true => mirror.tables.clone_from(&known),
            false => known.clone_from(&mirror.tables),
        }
    }
    if known.is_empty() {
        return Err(wrong(said, "it names no table: say host:port:table"));
    }
    Ok(agent)
}

fn parse_mirror(said: &str, mirror: &str, database: &str) -> Result<Mirror> {
    let host_end = match mirror.starts_with('[') {
        true => mirror.find(']').map(|at| at + 1),
        false => mirror.find(':'),
    };
    let behind = host_end.and_then(|end| Some((mirror.get(..end)?, mirror.get(end..)?)));
    let (host, rest) =
        behind.ok_or_else(|| wrong(said, "it names no port: say host:port:table"))?;
    let rest = rest.strip_prefix(':').ok_or_else(|| wrong(said, "it names no port"))?;
    let (port, tables) = rest.split_once(':').unwrap_or((rest, ""));
    let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if !is_port || host.is_empty() || host.len() > 255 || !host.chars().all(is_host) {
        return Err(wrong(said, &format!("'{mirror}' is no host:port:table")));
    }
    let tables: Vec<String> = tables
        .split(',')
        .map(str::trim)
        .filter(|table| !table.is_empty())
        .map(|table| match table.contains('.') || database.is_empty() {
            true => table.to_owned(),
            false => format!("{database}.{table}"),
        })
        .collect();
    let is_name = |table: &String| table.len() <= 512 && !table.contains('\0');
    if tables.len() > MAX_TABLES || !tables.iter().all(is_name) {
        return Err(wrong(said, &format!("an agent has {MAX_TABLES} tables at most")));
    }
    Ok(Mirror { address: format!("{host}:{port}"), tables })
}

fn wrong(said: &str, what: &str) -> Error {
    Error::new(ErrorCode::ParseError, format!("agent '{said}': {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_read_as_sphinx_writes_them() {
        let kept = |said: &str| normalised(said, "d", false).map_err(|error| error.message);
        assert_eq!(kept("a:1:t").unwrap(), "a:1:d.t");
        assert_eq!(kept(" a:1 | b.c:22:t,e.u ").unwrap(), "a:1:d.t,e.u|b.c:22:d.t,e.u");
        assert_eq!(kept("a:1:t|b:2").unwrap(), "a:1:d.t|b:2:d.t");
        assert_eq!(kept("[::1]:9:t").unwrap(), "[::1]:9:d.t");
        let options = "a:1:t[ha_strategy=nodeads, conn=pconn,retry_count=2]";
        let mended = "a:1:d.t[ha_strategy=nodeads,conn=pconn,retry_count=2]";
        assert_eq!(kept(options).unwrap(), mended);
        assert_eq!(normalised("a:1:t", "d", true).unwrap(), "a:1:d.t[conn=pconn]");
        // What is kept is read again.
        assert_eq!(normalised(mended, "x", true).unwrap(), mended);
        let wrong = [
            ("a:1", "names no table"),
            ("a", "names no port"),
            ("a:0:t", "no host:port:table"),
            ("a:99999:t", "no host:port:table"),
            (":1:t", "no host:port:table"),
            ("a b:1:t", "no host:port:table"),
            ("a:1:t]", "has no '['"),
            ("a:1:t[blackhole=1]", "'blackhole' is no option"),
            ("a:1:t[ha_strategy=x]", "ha_strategy 'x' is none"),
            ("a:1:t[conn=x]", "conn is pconn"),
        ];
        for (said, what) in wrong {
            let error = kept(said).unwrap_err();
            assert!(error.contains(what), "{said}: {error}");
        }
    }

    #[test]
    fn what_a_statement_says_counts_before_the_table() {
        let settings = [("agent_query_timeout", "20"), ("mirror_retry_count", "3")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let agents_of = vec!["a:1:d.t".to_owned(), "b:1:d.t[retry_count=9,conn=pconn]".to_owned()];
        let schema = Schema::distributed("x", Vec::new()).with_agents(agents_of, settings.to_vec());
        let told = agents(&schema, AgentOptions::default(), "d").unwrap();
        let ms = Duration::from_millis;
        assert_eq!((told[0].times.connect, told[0].times.query), (ms(1_000), ms(20)));
        assert_eq!((told[0].retries, told[1].retries), (3, 9));
        assert!(!told[0].times.is_kept && told[1].times.is_kept);
        let asked =
            AgentOptions { query_timeout_ms: Some(7), retries: Some(1), ..AgentOptions::default() };
        let told = agents(&schema, asked, "d").unwrap();
        assert_eq!((told[0].times.query, told[0].retries), (ms(7), 1));
        assert!(told[0].is_hasty);
        // Whoever may read the table cannot make the server wait for hours.
        let asked = AgentOptions {
            query_timeout_ms: Some(21),
            retries: Some(100),
            retry_delay_ms: Some(3_600_000),
            ..AgentOptions::default()
        };
        let told = agents(&schema, asked, "d").unwrap();
        let pauses: Vec<_> = told.iter().map(|it| (it.retries, it.retry_delay)).collect();
        assert_eq!(pauses, [(10, ms(1_000)), (9, ms(10_000) / 9)]);
        assert!(!told[0].is_hasty);
        let patient = [("agent_retry_count", "50"), ("agent_retry_delay", "60000")];
        let patient = patient.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let schema = schema.with_agents(vec!["a:1:d.t".to_owned()], patient.to_vec());
        let told = agents(&schema, asked, "d").unwrap();
        assert_eq!((told[0].retries, told[0].retry_delay), (50, ms(60_000)));
        for (name, value) in
            [("agent_query_timeout", "-1"), ("agent_retry_count", "101"), (HA_STRATEGY, "x")]
        {
            assert_eq!(check_setting(name, value).unwrap_err().code, ErrorCode::ParseError);
        }
        assert_eq!(
            check_setting("agent_blackhole", "1").unwrap_err().code,
            ErrorCode::NotSupported
        );
    }
}
