//! How a session reads tables that have rows in other servers.

use std::{sync::Arc, time::Duration};

use remora_mysql::ErrorCode;

use super::{Level, SessionState, Warning};
use crate::{
    agents::{AgentOptions, Agents, OmissionCallback},
    catalog::Reader,
};

impl SessionState {
    /// As [`SessionState::reader`], which reads tables that have rows in other servers too: those are opened when they are
    /// first read, once for a statement.
    pub(crate) fn reading(&self) -> Reader {
        let reader = self.reader();
        let known = self.agents.lock().clone();
        reader.with_remote_tables(known.unwrap_or_else(|| self.ask_agents(AgentOptions::default())))
    }

    /// Says how the statement asks other servers, before it does.
    pub(crate) fn ask_agents(&self, asked: AgentOptions) -> Arc<Agents> {
        let mut known = self.agents.lock();
        if let Some(known) = known.as_ref().filter(|known| known.asked() == asked) {
            return Arc::clone(known);
        }
        let warnings = self.warnings.clone();
        let lost = Arc::new(move |part: &str, why: &str| {
            let message = format!("{part} is left out: {why}");
            warnings.push(Warning::new(Level::Warning, ErrorCode::ForeignQuery, message));
        });
        let made = Arc::new(Agents::new(Arc::clone(&self.shared), asked, Vec::new(), lost));
        *known = Some(Arc::clone(&made));
        made
    }

    /// Asks the servers of the last search again, and no others, for what SHOW META tells of it.
    pub(crate) fn ask_agents_again(&self) {
        let Some(meta) = &self.meta else { return };
        let Some(without) = meta.without.clone().filter(|_| meta.asked.is_partial) else { return };
        let nobody: OmissionCallback = Arc::new(|_: &str, _: &str| {});
        let made = Agents::new(Arc::clone(&self.shared), meta.asked, Vec::new(), nobody);
        *self.agents.lock() = Some(Arc::new(made.again(without)));
    }

    /// The servers that the statement leaves out; `None` where servers behind others are too.
    pub(crate) fn missing_agents(&self) -> Option<Vec<String>> {
        self.agents.lock().as_ref().map_or_else(|| Some(Vec::new()), |agents| agents.missing())
    }

    /// Warns again of other servers that are left out: each facet of a SELECT has warnings of its own.
    pub(crate) fn report_lost_again(&self) {
        let known = self.agents.lock().clone();
        if let Some(agents) = known {
            agents.report_left_out_again();
        }
    }

    /// Notes that the statement gave up an answer after so long, for which it asked other servers.
    pub(crate) fn give_up_on_agents(&self, took: Duration) {
        let known = self.agents.lock().clone();
        if let Some(agents) = known {
            agents.give_up(took);
        }
    }

    /// Whether the statement gave up such an answer since this was asked.
    pub(crate) fn take_given_up(&self) -> bool {
        self.agents.lock().as_ref().is_some_and(|agents| agents.take_given_up())
    }

    /// Lets go of what the statement opened.
    pub(crate) fn forget_agents(&self) {
        *self.agents.lock() = None;
    }

    /// What the statement says of how other servers are asked, as far as it has asked.
    pub(crate) fn asked_of_agents(&self) -> AgentOptions {
        self.agents.lock().as_ref().map(|agents| agents.asked()).unwrap_or_default()
    }

    /// The newest moment for another server that asks for a part, for the tables of `trail`; `lost` is told of
    /// parts of it that do not answer, and why.
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
