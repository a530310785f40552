//! DEBUG blocks: measurements appended to a reply.

use std::{io::Write, time::Duration};

use remora_engine::{FacetReply, QueryReport, SortBy, SortKey};

use super::{line, text};
use crate::line::Search;

/// How the result cache was used for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheUse {
    /// The reply came from the cache.
    Hit {
        /// The time since it was stored.
        age: Duration,
        /// The duration of the query that stored it.
        saved: Duration,
    },
    /// The reply was not in the cache.
    Miss {
        /// `not_found` or `invalidated`.
        reason: &'static str,
        /// The duration of the query.
        cost: Duration,
    },
    /// The cache is disabled, or the reply is not cacheable.
    Disabled,
}

/// Appends the block to the body of a SEARCH.
pub fn write_search_debug(
    out: &mut Vec<u8>,
    report: &QueryReport,
    search: &Search,
    cache: CacheUse,
) {
    let brief = search.request.highlight.is_some();
    begin(out);
    write_times(out, report);
    if !report.filter_time.is_zero() {
        write_time(out, "filter_time", report.filter_time, "ms");
    }
    write_terms(out, report);
    if !brief {
        line(out, "candidates", report.candidates);
        line(out, "after_intersection", report.after_intersection);
        line(out, "after_not", report.after_not);
        line(out, "after_filters", report.after_filters);
    }
    line(out, "final", report.returned);
    match report.texts_read {
        0 => line(out, "optimization", "index only"),
        texts => line(out, "optimization", format_args!("{texts} texts read")),
    }
    write_page(out, search);
    if brief {
        line(out, "highlight", "on");
    }
    write_cache(out, cache, !brief);
}

/// Appends the block to the body of a COUNT.
pub fn write_count_debug(out: &mut Vec<u8>, report: &QueryReport, cache: CacheUse) {
    begin(out);
    write_times(out, report);
    write_terms(out, report);
    write_cache(out, cache, true);
}

/// Appends the lines to the body of a FACET.
pub fn write_facet_debug(out: &mut Vec<u8>, reply: &FacetReply) {
    write_time(out, "# query_time_ms", reply.report.total_time, "");
    line(out, "# matched_documents", reply.matched);
    line(out, "# distinct_values", reply.distinct);
}

/// Begins the block with a blank line, whether the body ends in a line break or not.
fn begin(out: &mut Vec<u8>) {
    if !out.ends_with(b"\r\n") {
        text(out, "\r\n");
    }
    text(out, "\r\n# DEBUG\r\n");
}

fn write_times(out: &mut Vec<u8>, report: &QueryReport) {
    write_time(out, "query_time", report.total_time, "ms");
    write_time(out, "index_time", report.index_time, "ms");
}

fn write_terms(out: &mut Vec<u8>, report: &QueryReport) {
    line(out, "terms", report.terms);
    line(out, "ngrams", report.atoms);
}

fn write_page(out: &mut Vec<u8>, search: &Search) {
    let request = &search.request;
    line(out, "sort", shown_order(&request.sort));
    let default = if search.limit_given { "" } else { " (default)" };
    line(out, "limit", format_args!("{}{default}", request.limit));
    if request.offset > 0 {
        line(out, "offset", request.offset);
    }
}

fn shown_order(sort: &[SortKey]) -> String {
    let shown = |key: &SortKey| {
        let by = match &key.by {
            SortBy::Key => "id",
            SortBy::Column(name) | SortBy::TextKey(name, _) => name,
            SortBy::Score => "_score",
        };
        format!("{by} {}", if key.descending { "DESC" } else { "ASC" })
    };
    match sort {
        [] => "id DESC (default)".to_owned(),
        keys => keys.iter().map(shown).collect::<Vec<_>>().join(", "),
    }
}

fn write_cache(out: &mut Vec<u8>, cache: CacheUse, with_details: bool) {
    let state = match cache {
        CacheUse::Hit { .. } => "hit",
        CacheUse::Miss { .. } => "miss",
        CacheUse::Disabled => "disabled",
    };
    line(out, "cache", state);
    match cache {
        CacheUse::Hit { age, saved } if with_details => {
            write_time(out, "cache_age_ms", age, "");
            write_time(out, "cache_saved_ms", saved, "");
        }
        CacheUse::Miss { reason, cost } if with_details => {
            line(out, "cache_reason", reason);
            write_time(out, "cache_cost_ms", cost, "");
        }
        _ => (),
    }
}

fn write_time(out: &mut Vec<u8>, key: &str, time: Duration, unit: &str) {
    let ms = time.as_secs_f64() * 1000.0;
    // Writing to a Vec never fails.
    let _ = write!(out, "{key}: {ms:.3}{unit}\r\n");
}

#[cfg(test)]
mod tests {
    use remora_engine::Highlight;

    use super::*;

    fn report() -> QueryReport {
        QueryReport {
            total_time: Duration::from_micros(1234),
            index_time: Duration::from_micros(1000),
            terms: 2,
            atoms: 5,
            candidates: 40,
            after_intersection: 30,
            after_not: 20,
            after_filters: 10,
            returned: 3,
            ..QueryReport::default()
        }
    }

    #[test]
    fn debug_search_has_all_lines() {
        let mut search = Search::default();
        search.request.limit = 100;
        let mut out = b"OK RESULTS 3 1 2 3".to_vec();
        let cache = CacheUse::Miss { reason: "not_found", cost: Duration::from_millis(2) };
        write_search_debug(&mut out, &report(), &search, cache);
        let expected = "OK RESULTS 3 1 2 3\r\n\r\n# DEBUG\r\nquery_time: 1.234ms\r\n\
            index_time: 1.000ms\r\nterms: 2\r\nngrams: 5\r\ncandidates: 40\r\n\
            after_intersection: 30\r\nafter_not: 20\r\nafter_filters: 10\r\nfinal: 3\r\n\
            optimization: index only\r\nsort: id DESC (default)\r\nlimit: 100 (default)\r\n\
            cache: miss\r\ncache_reason: not_found\r\ncache_cost_ms: 2.000\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_highlighted_search_has_fewer_lines() {
        let mut search = Search { limit_given: true, ..Search::default() };
        search.request.limit = 7;
        search.request.offset = 2;
        let (open, close) = (String::new(), String::new());
        search.request.highlight =
            Some(Highlight { open, close, snippet_chars: 1, max_fragments: 1 });
        search.request.sort = vec![SortKey { by: SortBy::Column("a".into()), descending: false }];
        let mut out = b"OK RESULTS 0\r\n".to_vec();
        write_search_debug(&mut out, &report(), &search, CacheUse::Disabled);
        let expected = "OK RESULTS 0\r\n\r\n# DEBUG\r\nquery_time: 1.234ms\r\n\
            index_time: 1.000ms\r\nterms: 2\r\nngrams: 5\r\nfinal: 3\r\n\
            optimization: index only\r\nsort: a ASC\r\nlimit: 7\r\noffset: 2\r\n\
            highlight: on\r\ncache: disabled\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
