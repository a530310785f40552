//! Limits shared by all connections: request rates and buffer memory.

mod budget;
mod rate_limit;

pub(crate) use budget::{BufferBudget, BufferShare};
pub(crate) use rate_limit::RateLimiter;
