//! SphinxAPI's server: `listener` accepts connections, `connection` reads and writes them, and `answer` answers each
//! request: it finds the index (`table`), runs statements in a session of the SQL service, and converts their rows
//! (`rows`), for searches in `search`.

mod answer;
mod connection;
mod listener;
mod rows;
mod search;
mod table;
mod values;

pub(crate) use listener::accept;
