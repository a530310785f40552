//! The read path against a scan of plain rows: random tables, queries, filters, orders, pages.

mod cursors;
mod endings;
mod errors;
mod facets;
mod first_pages;
mod fuzzy;
mod gathered;
mod gathered_pages;
mod highlights;
mod key_pages;
mod oracle;
mod pieces;
mod random;
mod ranked;
mod scans;
mod scores;
mod searches;
mod table;
mod united;
