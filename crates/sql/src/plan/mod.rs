//! Planning: MySQL's functions and operators replace DataFusion's, then DataFusion's rules and ours make a plan of the
//! query.

mod bare;
mod best;
mod compared;
mod direct;
mod extent;
mod functions;
mod in_turn;
mod joinable;
mod json_table;
mod keys;
mod late;
mod lateral;
mod lazy;
mod measured;
mod operator;
mod partitions;
mod planner;
mod recursive;
mod rules;
mod settle;
mod subquery;
mod unfold;
mod united;
mod watch;

pub(crate) use extent::{Extent, has_joins, is_light};
pub(crate) use json_table::JsonRowsExec;
pub(crate) use keys::without_same;
pub(crate) use measured::{Figures, MeasuredStep};
pub(crate) use planner::{KeptPlan, Planner};
pub(crate) use recursive::normalise_recursive;
pub(crate) use settle::{RowQuery, Settled};
pub(crate) use subquery::subquery_plan;
pub(crate) use united::is_in_turn;
