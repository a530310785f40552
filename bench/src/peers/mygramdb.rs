//! A running MygramDB (or any server of its line protocol) with the same rows under the same ids. Nothing is loaded
//! into it.

use anyhow::{Context, Result};
use remora_engine::TextQuery;

use super::{
    Peer,
    client::{LineClient, count_request, numbers, search_request},
};
use crate::measure::MeasuredProcess;

/// A connection to the server.
pub struct MygramDb {
    client: LineClient,
    table: String,
    name: String,
}

impl MygramDb {
    /// Connects and selects the server's table; `table` names it if there are several.
    pub fn connect(address: &str, table: Option<&str>) -> Result<Self> {
        let mut client = LineClient::connect(address)?;
        let info = client.request(b"INFO\r\n")?;
        let line = |key: &str| {
            info.lines().find_map(|line| Some(line.strip_prefix(key)?.trim().to_owned()))
        };
        let tables = line("tables:").context("the server's INFO names no tables")?;
        let table = table.unwrap_or(tables.split(',').next().unwrap_or_default()).to_owned();
        let name = line("version:").unwrap_or_else(|| "MygramDB".into());
        Ok(Self { client, table, name })
    }
}

impl Peer for MygramDb {
    fn name(&self) -> &str {
        &self.name
    }

    fn in_process(&self) -> bool {
        false
    }

    fn processor(&self) -> MeasuredProcess {
        MeasuredProcess::Unknown
    }

    fn search(&mut self, query: &TextQuery) -> Result<Vec<u64>> {
        let reply = self.client.request(&search_request(&self.table, query))?;
        Ok(numbers(reply, "OK RESULTS")?.split_off(1))
    }

    fn count(&mut self, query: &TextQuery) -> Result<u64> {
        let reply = self.client.request(&count_request(&self.table, query))?;
        numbers(reply, "OK COUNT")?.first().copied().context("no count in the reply")
    }
}
