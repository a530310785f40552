//! A file of results: JSON Lines with one answer per line.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use serde::Deserialize;

use crate::{Error, Result};

/// The rows of an answer that are compared.
pub(super) const MAX_ROWS: usize = 100;
/// The most bytes of a line: room for some ten thousand rows, so that memory is bounded.
const MAX_LINE_BYTES: usize = 1 << 20;
/// The advice for every format error.
const FORM: &str =
    "each line is {\"query\":\"text\",\"total_found\":2,\"rows\":[[id,weight],[id,weight]]}";

/// A server's answer to a query.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// The query, which matches the lines of two files.
    pub query: String,
    /// The number of matching rows, including those not sent.
    pub total_found: u64,
    /// Id and weight of the first [`MAX_ROWS`] rows, in the order sent.
    pub rows: Vec<(i128, i128)>,
    /// The number of rows sent.
    #[serde(skip)]
    pub sent: usize,
}

/// An open file of results.
pub(super) struct Results {
    path: PathBuf,
    reader: BufReader<File>,
    /// The number of the last line read.
    number: u64,
    line: Vec<u8>,
}

impl Results {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|source| Error::io("cannot read", path, source))?;
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::new(file),
            number: 0,
            line: Vec::new(),
        })
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The file and the last line read.
    pub fn place(&self) -> String {
        format!("{}:{}", self.path.display(), self.number)
    }

    /// The next answer; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Usage`] if the line is too long or is not an answer, or has a
    /// duplicate id.
    pub fn answer(&mut self) -> Result<Option<Answer>> {
        self.line.clear();
        let mut bounded = self.reader.by_ref().take(MAX_LINE_BYTES as u64 + 1);
        bounded
            .read_until(b'\n', &mut self.line)
            .map_err(|source| Error::io("cannot read", &self.path, source))?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() > MAX_LINE_BYTES {
            let advice = "have the server send fewer rows";
            return Err(
                self.wrong(&format!("the line is longer than {MAX_LINE_BYTES} bytes; {advice}"))
            );
        }
        if !self.line.trim_ascii_start().starts_with(b"{") {
            return Err(self.wrong(&format!("the line is no JSON object; {FORM}")));
        }
        let mut answer: Answer = serde_json::from_slice(&self.line)
            .map_err(|error| self.wrong(&format!("{}; {FORM}", json_message(&error))))?;
        answer.sent = answer.rows.len();
        answer.rows.truncate(MAX_ROWS);
        let mut seen = BTreeSet::new();
        if let Some((id, _)) = answer.rows.iter().find(|(id, _)| !seen.insert(*id)) {
            return Err(
                self.wrong(&format!("id {id} stands twice in an answer; give each row once"))
            );
        }
        Ok(Some(answer))
    }

    fn wrong(&self, message: &str) -> Error {
        Error::Usage(format!("{}: {message}", self.place()))
    }
}

/// The JSON parser's message without its line number, which is always 1.
fn json_message(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let sentence = text.rsplit_once(" at line ").map_or(text.as_str(), |(sentence, _)| sentence);
    format!("{sentence} in column {}", error.column())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Result<Answer, String>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("r");
        std::fs::write(&path, text).unwrap();
        let mut results = Results::open(&path).unwrap();
        let mut answers = Vec::new();
        loop {
            match results.answer() {
                Ok(None) => return answers,
                Ok(Some(answer)) => answers.push(Ok(answer)),
                Err(error) => {
                    answers.push(Err(error.to_string()));
                    return answers;
                }
            }
        }
    }

    fn error(text: &[u8]) -> String {
        read(text).pop().unwrap().unwrap_err()
    }

    #[test]
    fn answers_are_lines_and_the_last_may_be_unterminated() {
        let text = b"{\"query\":\"a\",\"total_found\":7,\"rows\":[[3,-1],[18446744073709551615,4294967295]]}\n\
                     { \"rows\": [], \"total_found\": 0, \"query\": \"\" }";
        let rows = vec![(3, -1), (18_446_744_073_709_551_615, 4_294_967_295)];
        let first = Answer { query: "a".into(), total_found: 7, rows, sent: 2 };
        let second = Answer { query: String::new(), total_found: 0, rows: Vec::new(), sent: 0 };
        assert_eq!(read(text), [Ok(first), Ok(second)]);
    }

    #[test]
    fn rows_beyond_a_hundred_are_not_compared() {
        // The duplicate id is beyond them.
        let rows: Vec<String> = (0..100).chain([5]).map(|id| format!("[{id},1]")).collect();
        let text = format!("{{\"query\":\"a\",\"total_found\":101,\"rows\":[{}]}}", rows.join(","));
        let answers = read(text.as_bytes());
        let answer = answers[0].as_ref().unwrap();
        assert_eq!((answer.rows.len(), answer.sent), (100, 101));
        let text = text.replacen("[99,1]", "[5,1]", 1);
        assert!(error(text.as_bytes()).contains("r:1: id 5 stands twice"));
    }

    #[test]
    fn invalid_answer_lines_are_reported() {
        let good = "{\"query\":\"a\",\"total_found\":1,\"rows\":[[1,2]]}\n";
        for (bad, message) in [
            ("\n", "r:2: the line is no JSON object"),
            ("[\"a\",1,[]]", "r:2: the line is no JSON object"),
            ("{\"query\":", "EOF while parsing a value in column"),
            ("{\"query\":\"a\",\"rows\":[]}", "missing field `total_found`"),
            ("{\"query\":\"a\",\"total_found\":1,\"rows\":[],\"time\":3}", "unknown field `time`"),
            (
                "{\"query\":\"a\",\"query\":\"b\",\"total_found\":1,\"rows\":[]}",
                "duplicate field `query`",
            ),
            ("{\"query\":\"a\",\"total_found\":-1,\"rows\":[]}", "-1"),
            ("{\"query\":\"a\",\"total_found\":1,\"rows\":[[1]]}", "a tuple of size 2"),
            ("{\"query\":\"a\",\"total_found\":1,\"rows\":[[1,2,3]]}", "r:2: "),
            ("{\"query\":\"a\",\"total_found\":1,\"rows\":[[1,2.5]]}", "r:2: "),
            ("{\"query\":\"a\",\"total_found\":1,\"rows\":[]} x", "trailing characters in column"),
            ("{\"query\":[[[[[[[[", "r:2: "),
        ] {
            let text = error(format!("{good}{bad}").as_bytes());
            assert!(text.contains(message), "{bad}: {text}");
            assert!(text.contains("r:2: ") && text.contains("each line is {"), "{bad}: {text}");
            assert!(!text.contains(" at line "), "{bad}: {text}");
        }
        assert!(error(b"{\"query\":\"\xFF\",\"total_found\":1,\"rows\":[]}").contains("r:1: "));
    }

    #[test]
    fn unterminated_line_is_refused_at_the_limit() {
        let mut text = b"{\"query\":\"".to_vec();
        text.resize(3 * MAX_LINE_BYTES, b'x');
        assert!(error(&text).contains("r:1: the line is longer than 1048576 bytes"));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let Err(error) = Results::open(Path::new("/no/such/file")) else { panic!("opened") };
        assert!(error.to_string().contains("/no/such/file"), "{error}");
    }
}
