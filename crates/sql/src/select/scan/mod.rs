//! Tables of the engine as DataFusion reads them: what can be asked of the engine is, the rest is
//! filtered behind it.

mod arrays;
mod dynamic;
mod exec;
mod filter;
mod overlaid;
mod table;

pub(crate) use arrays::array;
pub(crate) use table::EngineTable;
