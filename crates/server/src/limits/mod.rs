//! Limits that all connections share: how often an address may ask, and what buffers may take.

mod budget;
mod rate_limit;

pub(crate) use budget::{BufferBudget, BufferShare};
pub(crate) use rate_limit::RateLimiter;
