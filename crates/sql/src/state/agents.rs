//! How a session reads tables that have rows on other servers.

use std::{sync::Arc, time::Duration};

use remora_mysql::ErrorCode;

use super::{SessionState, Warning, WarningLevel};
use crate::{
    Result,
    agents::{AgentOptions, Agents, OmissionCallback},
    catalog::Reader,
};

impl SessionState {
    /// Like [`SessionState::reader`], but it can also read tables with rows on other servers. These
    /// are opened when they are first read, once in a statement.
    pub(crate) fn reading(&self) -> Reader {
        let reader = self.reader();
        let known = self.agents.lock().clone();
        reader.with_remote_tables(known.unwrap_or_else(|| self.ask_agents(AgentOptions::default())))
    }

    /// Like [`SessionState::reading`], with the uncommitted changes of the session as part of the tables.
    ///
    /// # Errors
    /// Those of [`OwnChanges::seen_by`](crate::transaction::OwnChanges::seen_by).
    pub(crate) fn reading_own(&self) -> Result<Reader> {
        let reader = self.reading();
        match self.transaction.own_changes() {
            Some(own) => own.seen_by(&reader),
            None => Ok(reader),
        }
    }

    /// Sets the statement's options for other servers. It must come before the first read.
    pub(crate) fn ask_agents(&self, asked: AgentOptions) -> Arc<Agents> {
        let mut known = self.agents.lock();
        if let Some(known) = known.as_ref().filter(|known| known.asked() == asked) {
            return Arc::clone(known);
        }
        let warnings = self.warnings.clone();
        let lost = Arc::new(move |part: &str, why: &str| {
            let message = format!("{part} is left out: {why}");
            warnings.push(Warning::new(WarningLevel::Warning, ErrorCode::ForeignQuery, message));
        });
        let made = Arc::new(Agents::new(Arc::clone(&self.shared), asked, Vec::new(), lost));
        *known = Some(Arc::clone(&made));
        made
    }

    /// Opens the servers of the last search again, without those it left out, to answer SHOW META.
    pub(crate) fn ask_agents_again(&self) {
        let Some(meta) = &self.meta else { return };
        let Some(without) = meta.without.clone().filter(|_| meta.asked.is_partial) else { return };
        let nobody: OmissionCallback = Arc::new(|_: &str, _: &str| {});
        let made = Agents::new(Arc::clone(&self.shared), meta.asked, Vec::new(), nobody);
        *self.agents.lock() = Some(Arc::new(made.again(without)));
    }

    /// The agents that the statement left out; `None` if servers behind other servers are missing
    /// too.
    pub(crate) fn missing_agents(&self) -> Option<Vec<String>> {
        self.agents.lock().as_ref().map_or_else(|| Some(Vec::new()), |agents| agents.missing())
    }

    /// Repeats the warnings about missing servers: each facet of a SELECT has its own warnings.
    pub(crate) fn report_lost_again(&self) {
        let known = self.agents.lock().clone();
        if let Some(agents) = known {
            agents.report_left_out_again();
        }
    }

    /// Records that the statement discarded an answer of other servers after `took`.
    pub(crate) fn give_up_on_agents(&self, took: Duration) {
        let known = self.agents.lock().clone();
        if let Some(agents) = known {
            agents.give_up(took);
        }
    }

    /// Whether an answer was discarded since the last call.
    pub(crate) fn take_given_up(&self) -> bool {
        self.agents.lock().as_ref().is_some_and(|agents| agents.take_given_up())
    }

    /// Drops the connections that the statement opened.
    pub(crate) fn forget_agents(&self) {
        *self.agents.lock() = None;
    }

    /// The options of the statement's requests to other servers; the defaults if it has asked none.
    pub(crate) fn asked_of_agents(&self) -> AgentOptions {
        self.agents.lock().as_ref().map(|agents| agents.asked()).unwrap_or_default()
    }

    /// The newest snapshot, for a server that asks for a part on behalf of the tables of `trail`.
    /// `lost` is called for each server that is missing from the part.
    pub(crate) fn with_remote_tables(
        &self,
        asked: AgentOptions,
        trail: Vec<String>,
        lost: OmissionCallback,
    ) -> Reader {
        let agents = Agents::new(Arc::clone(&self.shared), asked, trail, lost);
        self.reader().with_remote_tables(Arc::new(agents))
    }
}
