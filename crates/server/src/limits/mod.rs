//! Limits of connections: request rates and buffer memory of all, the time of a query.

mod budget;
mod rate_limit;

pub(crate) use budget::{BufferBudget, BufferShare};
pub(crate) use rate_limit::RateLimiter;
