//! Any text behind SEARCH: what both dialects take keeps within their limits, and a quoted word is
//! one term.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remora_protocol::line::{Command, ParseLimits, parse, quote};

fuzz_target!(|text: &str| {
    for limits in [ParseLimits::default(), ParseLimits::mygramdb()] {
        let parsed = parse(format!("SEARCH t {text}").as_bytes(), &limits);
        if let Ok(Command::Search(search)) = parsed {
            assert!((1..=limits.max_limit).contains(&search.request.limit));
        }
        let _ = parse(format!("SEARCH t x FILTER {text}").as_bytes(), &limits);
        let _ = parse(format!("SEARCH t x SORT {text}").as_bytes(), &limits);
        let _ = parse(format!("FACET t c {text}").as_bytes(), &limits);
    }
    let unlimited = ParseLimits { max_query_bytes: 0, ..ParseLimits::default() };
    let quoted = parse(format!("COUNT t {}", quote(text)).as_bytes(), &unlimited);
    match quoted {
        Ok(Command::Count(selection)) => {
            assert_eq!(format!("{:?}", selection.text), format!("Some(Term({text:?}))"));
        }
        other => assert!(text.is_empty() && other.is_err()),
    }
});
