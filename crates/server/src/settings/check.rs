//! Refuses invalid settings at the start, with advice.

use remora_mysql::Zone;

use super::{
    Dialect, Settings,
    address::{host_of, is_loopback, is_loopback_address},
    agents, followed_words, sql,
};
use crate::{Error, Result};

/// Refuses settings that cannot work or are not safe.
pub(super) fn check(settings: &Settings) -> Result<()> {
    let listen = &settings.listen;
    let (sql, sphinx) = (&listen.sql, &listen.sphinx);
    let addresses = [&listen.line, &listen.http, sql, sphinx, &listen.sphinx_api, &listen.tiedot];
    let sockets = [&listen.line_socket, &listen.sql_socket];
    if addresses.iter().all(|address| address.is_empty())
        && sockets.iter().all(|socket| socket.is_none())
    {
        return refuse("nothing to listen on: set listen.line, listen.sql or listen.http");
    }
    check_bind(settings, "listen.line", &listen.line)?;
    check_bind(settings, "listen.http", &listen.http)?;
    check_bind(settings, "listen.sphinx_api", &listen.sphinx_api)?;
    check_bind(settings, "listen.tiedot", &listen.tiedot)?;
    check_sphinx_api(settings)?;
    check_limits(settings)?;
    if let Some(why) = sql::refusal(settings).or_else(|| agents::refusal(settings)) {
        return refuse(&why);
    }
    check_mygramdb(settings)?;
    check_sources(settings)?;
    if let Some(why) = followed_words::refusal(settings, false) {
        return refuse(&why);
    }
    check_time_zones(settings)?;
    check_words(settings)
}

/// Checks that settings which a MygramDB file may leave to the environment are set.
fn check_mygramdb(settings: &Settings) -> Result<()> {
    let Some(file) = &settings.mygramdb else { return Ok(()) };
    for (key, variable) in
        [("mysql.user", "MYGRAM_MYSQL_USER"), ("mysql.database", "MYGRAM_MYSQL_DATABASE")]
    {
        if file.text(key).is_empty() {
            return refuse(&format!("{key} is missing; set it, or {variable} in the environment"));
        }
    }
    Ok(())
}

fn check_bind(settings: &Settings, key: &str, address: &str) -> Result<()> {
    if address.is_empty() {
        return Ok(());
    }
    let Some(host) = host_of(address) else {
        return refuse(&format!("{key} '{address}' is not HOST:PORT, as 127.0.0.1:11016 is"));
    };
    if is_loopback(host) {
        return Ok(());
    }
    // MygramDB requires a token for an open line protocol; HTTP is restricted by networks.
    let by_networks = settings.dialect == Dialect::MygramDb && key == "listen.http";
    if settings.admin_token.is_empty() && settings.users.is_empty() && !by_networks {
        return refuse(&format!(
            "'{address}' can be reached from other machines and neither users nor a token are set: \
             add [[users]], set auth.admin_token (api.admin_token in a MygramDB file), or listen on \
             127.0.0.1"
        ));
    }
    if let Some(open) = settings.users.iter().find(|user| user.password.is_empty()) {
        return refuse(&format!(
            "'{address}' can be reached from other machines and user '{}' has an empty password: \
             give it one",
            open.name
        ));
    }
    let everyone = settings.allow_cidrs.iter().flatten().find(|cidr| cidr.is_everyone());
    match everyone {
        Some(cidr) => refuse(&format!(
            "'{address}' can be reached from other machines and network.allow_cidrs lets in \
             everyone ({cidr}): name your own networks"
        )),
        None if settings.allow_cidrs.is_none() => refuse(&format!(
            "'{address}' can be reached from other machines: name the networks that may connect \
             in network.allow_cidrs"
        )),
        None => Ok(()),
    }
}

/// SphinxAPI has no login, so the settings must name the user of its clients.
fn check_sphinx_api(settings: &Settings) -> Result<()> {
    let (address, name) = (&settings.listen.sphinx_api, &settings.listen.sphinx_api_user);
    if !name.is_empty() && settings.users.iter().all(|user| user.name != *name) {
        return refuse(&format!("listen.sphinx_api_user '{name}' is none of [[users]]"));
    }
    if address.is_empty() || !name.is_empty() {
        return Ok(());
    }
    let asks = !settings.users.is_empty() || !settings.admin_token.is_empty();
    if asks || is_loopback_address(address) == Some(false) {
        return refuse(
            "SphinxAPI has no login and listen.sphinx_api is set where one is asked for: name the \
             user of [[users]] that its clients are in listen.sphinx_api_user, with no more rights \
             than they need",
        );
    }
    Ok(())
}

fn check_sources(settings: &Settings) -> Result<()> {
    for (at, source) in settings.sources.iter().enumerate() {
        if settings.sources.iter().take(at).any(|other| other.name == source.name) {
            return refuse(&format!(
                "two sources are named '{0}': give each [[mysql]] a name of its own",
                source.name
            ));
        }
        if source.name.is_empty() || source.name.contains(['/', '=', ' ']) {
            return refuse(&format!(
                "the source's name '{}' is empty or has a space, / or =: choose another",
                source.name
            ));
        }
    }
    Ok(())
}

/// All sources must have the same time zone, so that a table looks the same in all protocols.
fn check_time_zones(settings: &Settings) -> Result<()> {
    let mut zones = settings.sources.iter().filter_map(|s| Some((&s.name, s.time_zone.as_ref()?)));
    let Some((name, zone)) = zones.next() else { return Ok(()) };
    if let Some((other, theirs)) = zones.find(|(_, theirs)| *theirs != zone) {
        return refuse(&format!(
            "time_zone is '{}' for the source '{name}' and '{}' for '{other}': a server shows \
             TIMESTAMPs in one zone, so write the same for both, or for one alone",
            zone.name(),
            theirs.name()
        ));
    }
    let listen = &settings.listen;
    let addresses = [&listen.sql, &listen.sphinx, &listen.sphinx_api];
    let has_sql =
        listen.sql_socket.is_some() || addresses.iter().any(|address| !address.is_empty());
    match has_sql && Zone::parse(zone.name()).is_err() {
        true => refuse(&format!(
            "mysql.datetime_timezone '{}' cannot be the time_zone of SQL, which lies between \
             -13:59 and +14:00: choose another, or do not listen for SQL",
            zone.name()
        )),
        false => Ok(()),
    }
}

fn check_limits(settings: &Settings) -> Result<()> {
    let limits = &settings.limits;
    let least_default = if settings.dialect == Dialect::MygramDb { 5 } else { 1 };
    in_range("default_limit", limits.default_limit, least_default, limits.max_limit)?;
    let longest = if settings.dialect == Dialect::MygramDb { 4096 } else { 1 << 20 };
    in_range("max_query_length", limits.max_query_length, 0, longest)?;
    in_range("max_limit", limits.max_limit, 1, 100_000_000)?;
    in_range("max_connections", limits.max_connections, 1, 1_000_000)?;
    in_range("worker_threads", limits.worker_threads, 0, 16_384)?;
    in_range("max_request_bytes", limits.max_request_bytes, 1024, 1 << 30)?;
    in_range("write_queue_bytes", limits.write_queue_bytes, 4096, 1 << 32)?;
    in_range("pending_requests", limits.pending_requests, 1, 1_000_000)?;
    in_range("pending_bytes", limits.pending_bytes, 1, 1 << 30)?;
    in_range("max_transaction_rows", limits.max_transaction_rows, 1, 100_000_000)?;
    in_range("buffered_bytes", limits.buffered_bytes, 1 << 20, 1 << 40)?;
    let http = &settings.http;
    in_range("http.max_connections", http.max_connections, 1, 1_000_000)?;
    in_range("http.max_body_bytes", http.max_body_bytes, 1024, 1 << 30)?;
    if http.read_timeout_s == 0 || http.write_timeout_s == 0 {
        return refuse("http.read_timeout_s and http.write_timeout_s are 1 or more");
    }
    if http.cors_allow_origin.as_ref().is_some_and(|origin| origin.contains(char::is_control)) {
        return refuse("http.cors_allow_origin is an origin, as https://example.com is");
    }
    let rate = &settings.rate_limiting;
    if rate.enable && (rate.capacity == 0 || rate.refill_rate == 0 || rate.max_clients == 0) {
        return refuse("rate limiting needs capacity, refill_rate and max_clients of 1 or more");
    }
    let k1 = settings.bm25.k1;
    if !(0.0..=1.0).contains(&settings.bm25.b) || !k1.is_finite() || k1 < 0.0 {
        return refuse("bm25.b lies between 0 and 1, bm25.k1 is 0 or more");
    }
    if !settings.cache.min_query_cost_ms.is_finite() || settings.cache.min_query_cost_ms < 0.0 {
        return refuse("cache.min_query_cost_ms is 0 or more");
    }
    Ok(())
}

fn in_range(name: &str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refuse(&format!("{name} is {value}; it lies between {least} and {most}"))
}

fn check_words(settings: &Settings) -> Result<()> {
    let logging = &settings.logging;
    if !["trace", "debug", "info", "warn", "error", "off"].contains(&logging.level.as_str()) {
        return refuse(&format!(
            "logging.level '{}' is none of trace, debug, info, warn, error, off",
            logging.level
        ));
    }
    if !["text", "json"].contains(&logging.format.as_str()) {
        return refuse(&format!("logging.format '{}' is neither text nor json", logging.format));
    }
    let file = &settings.dump.default_filename;
    if file.is_empty() || file.contains('/') {
        return refuse("dump.default_filename is the name of a file within dump.dir");
    }
    Ok(())
}

fn refuse(why: &str) -> Result<()> {
    Err(Error::Settings(why.to_owned()))
}
