//! `remora compare`: how far the answers to the same queries agree, between two servers, versions or index settings.

mod results;
mod tally;

use std::{path::Path, process::ExitCode};

use self::{results::Results, tally::Tally};
use super::{CompareOptions, output::shorten};
use crate::{Error, Result};

/// The exit code if the files differ, like that of `diff`.
const DIFFERENT: u8 = 1;
const FAILED: u8 = 2;
/// The most terminal columns of a query in an error.
const SHOWN_COLUMNS: usize = 60;

/// Compares two files of results and prints how far they agree. The exit code is 0 if all answers are equal, 1 if some
/// differ and 2 if the files cannot be compared; the reason goes to standard error.
pub fn compare(options: &CompareOptions) -> ExitCode {
    match compared(&options.reference, &options.other) {
        Ok(tally) => {
            print!("{tally}");
            if tally.is_equal() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) }
        }
        Err(error) => {
            eprintln!("remora: {error}");
            ExitCode::from(FAILED)
        }
    }
}

/// Reads both files side by side, line by line.
fn compared(reference: &Path, other: &Path) -> Result<Tally> {
    let (mut reference, mut other) = (Results::open(reference)?, Results::open(other)?);
    let mut tally = Tally::default();
    loop {
        match (reference.answer()?, other.answer()?) {
            (None, None) => break,
            (Some(expected), Some(given)) if expected.query == given.query => {
                tally.count(&expected, &given);
            }
            (Some(expected), Some(given)) => {
                let shown =
                    |query: &str| shorten(&format!("{query:?}"), SHOWN_COLUMNS).into_owned();
                return Err(Error::Usage(format!(
                    "{}: its query is {}, that of {} is {}; both files must have the same queries in the same order",
                    other.place(),
                    shown(&given.query),
                    reference.place(),
                    shown(&expected.query),
                )));
            }
            (Some(_), None) => return Err(ended(&other, &reference)),
            (None, Some(_)) => return Err(ended(&reference, &other)),
        }
    }
    if tally.is_empty() {
        let message = format!(
            "{} and {} hold no answers: there is nothing to compare",
            reference.name(),
            other.name()
        );
        return Err(Error::Usage(message));
    }
    Ok(tally)
}

fn ended(shorter: &Results, longer: &Results) -> Error {
    Error::Usage(format!(
        "{} ends before {}, whose query it lacks; both files must have the same queries in the same order",
        shorter.name(),
        longer.place(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(reference: &str, other: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        match compared(&write("a", reference), &write("b", other)) {
            Ok(tally) => panic!("compared: {tally}"),
            Err(error) => error.to_string(),
        }
    }

    const ONE: &str = "{\"query\":\"one\",\"total_found\":0,\"rows\":[]}\n";
    const TWO: &str = "{\"query\":\"two\",\"total_found\":0,\"rows\":[]}\n";

    #[test]
    fn files_of_other_queries_are_refused_by_line() {
        let both = format!("{ONE}{TWO}");
        let message = error(&both, &format!("{ONE}{ONE}"));
        assert!(message.contains("/b:2: its query is \"one\", that of "), "{message}");
        assert!(message.contains("/a:2 is \"two\"; both files must"), "{message}");
        let message = error(&both, ONE);
        assert!(
            message.contains("/b ends before ") && message.contains("/a:2, whose query"),
            "{message}"
        );
        let message = error(ONE, &both);
        assert!(
            message.contains("/a ends before ") && message.contains("/b:2, whose query"),
            "{message}"
        );
        assert!(error("", "").contains("nothing to compare"));
    }

    #[test]
    fn a_query_in_an_error_is_short_and_on_one_line() {
        let long =
            format!("{{\"query\":\"\\n{}\",\"total_found\":0,\"rows\":[]}}\n", "x".repeat(5_000));
        let message = error(ONE, &long);
        assert!(
            message.len() < 600 && message.contains("\"\\nxxx") && !message.contains('\n'),
            "{message}"
        );
    }
}
