//! SphinxAPI's server: connections are accepted (`listener`), read and written (`connection`), and each request
//! becomes a reply in `answer`: an index is looked up (`table`), statements run in a session of the SQL side,
//! and their rows (`rows`) become what the client asked for, a search's in `search`.

mod answer;
mod connection;
mod listener;
mod rows;
mod search;
mod table;
mod values;

pub(crate) use listener::accept;
