//! Planning: MySQL's functions and operators replace DataFusion's, then DataFusion's rules and ours make a plan of the
//! query.

mod bare;
mod best;
mod compared;
mod direct;
mod distinct_keys;
mod extent;
mod first;
mod first_rows;
mod functions;
mod gathered;
mod joinable;
mod json_table;
mod keys;
mod late;
mod lateral;
mod lateral_rows;
mod lazy;
mod measured;
mod operator;
mod partitions;
mod passes;
mod planner;
mod planner_rules;
mod pushed;
mod recursion;
mod recursive;
mod row_by_row;
mod rules;
mod sequential_union;
mod settle;
mod stages;
mod subquery;
mod unfold;
mod unlike;
mod watch;

pub(crate) use extent::{QueryClass, has_joins, is_light};
pub(crate) use json_table::JsonRowsExec;
pub(crate) use keys::without_same;
pub(crate) use measured::{Figures, MeasuredStep};
pub(crate) use planner::Planner;
pub(crate) use recursive::normalise_recursive;
pub(crate) use sequential_union::is_sequential_union;
pub(crate) use settle::{KeptPlan, RowQuery, RunConstant};
pub(crate) use subquery::subquery_plan;
