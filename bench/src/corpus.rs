//! The documents that are loaded: Wikipedia files packed as zstd JSON Lines, or any JSON Lines.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use remora_engine::Normalization;
use serde::Deserialize;

/// The environment variable with the data directory.
const DATA_VARIABLE: &str = "REMORA_BENCH_DATA";

/// One row of the corpus.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// Unique, ascending over the corpus.
    pub id: u64,
    /// Language, such as `en`.
    pub language: String,
    /// Title.
    pub title: String,
    /// Body.
    pub text: String,
    /// The first year that the text names.
    pub year: Option<i64>,
    /// Category, where the source has one.
    pub category: Option<String>,
    /// The page's number at the source.
    pub page_id: Option<u64>,
}

impl Document {
    /// The text that is searched: title and text, joined by a space.
    pub fn joined(&self) -> String {
        format!("{} {}", self.title, self.text)
    }
}

/// Documents and their searchable texts, by ascending id.
pub struct Corpus {
    /// The rows.
    pub documents: Vec<Document>,
    /// For each row the normalised text that every engine is given and that the oracle scans.
    pub texts: Vec<String>,
}

impl Corpus {
    /// Normalises the documents' texts, using all CPUs.
    pub fn new(documents: Vec<Document>) -> Self {
        let texts = normalise(&documents);
        Self { documents, texts }
    }

    /// Bytes of the titles and texts as they are loaded, joining spaces included.
    pub fn text_bytes(&self) -> u64 {
        self.documents.iter().map(|row| (row.title.len() + row.text.len() + 1) as u64).sum()
    }

    /// The ids, ascending.
    pub fn ids(&self) -> Vec<u64> {
        self.documents.iter().map(|document| document.id).collect()
    }
}

/// The data directory: the given one, else the environment's, else the one next to the workspace.
pub fn data_directory(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    if let Some(path) = std::env::var_os(DATA_VARIABLE) {
        return Ok(path.into());
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if beside.is_dir() {
        return Ok(beside);
    }
    bail!("no data: name a directory of JSON Lines with --data or {DATA_VARIABLE}")
}

/// Reads the documents of a directory, ordered by id. If there are Wikipedia files (`wiki-*`), only those are read;
/// otherwise every JSON Lines file.
pub fn read_directory(directory: &Path) -> Result<Vec<Document>> {
    let files = json_lines_files(directory)?;
    let mut documents = Vec::new();
    for path in &files {
        read_file(path, &mut documents)?;
    }
    documents.sort_by_key(|document| document.id);
    if let Some(pair) = documents.windows(2).find(|pair| pair[0].id == pair[1].id) {
        bail!("id {} appears twice in {}", pair[0].id, directory.display());
    }
    Ok(documents)
}

/// `count` documents at even distances, so that every file and language keeps its share.
pub fn thin_out(documents: Vec<Document>, count: usize) -> Vec<Document> {
    let total = documents.len();
    let keep = |index: usize| (index + 1) * count / total > index * count / total;
    let numbered = documents.into_iter().enumerate();
    numbered.filter(|(index, _)| keep(*index)).map(|(_, document)| document).collect()
}

/// The queries of a JSON Lines file: objects with a `text`.
pub fn read_query_texts(path: &Path) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Line {
        text: String,
    }
    let mut texts = Vec::new();
    for_each_line(path, |line| {
        texts.push(serde_json::from_str::<Line>(line)?.text);
        Ok(())
    })?;
    Ok(texts)
}

fn json_lines_files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)
        .with_context(|| format!("cannot list the data directory {}", directory.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.retain(|path| has_ending(path, ".jsonl") || has_ending(path, ".jsonl.zst"));
    if files.iter().any(|path| is_wiki(path)) {
        files.retain(|path| is_wiki(path));
    }
    files.sort();
    if files.is_empty() {
        bail!("no *.jsonl or *.jsonl.zst files in {}", directory.display());
    }
    Ok(files)
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.to_str().is_some_and(|name| name.ends_with(ending))
}

fn is_wiki(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("wiki-"))
}

fn read_file(path: &Path, documents: &mut Vec<Document>) -> Result<()> {
    #[derive(Deserialize)]
    struct Line {
        id: Option<u64>,
        #[serde(default)]
        lang: String,
        #[serde(default)]
        title: String,
        text: String,
        year: Option<i64>,
        category: Option<String>,
        page_id: Option<u64>,
    }
    for_each_line(path, |line| {
        let line: Line = serde_json::from_str(line)?;
        documents.push(Document {
            id: line.id.unwrap_or(documents.len() as u64 + 1),
            language: line.lang,
            title: line.title,
            text: line.text,
            year: line.year,
            category: line.category,
            page_id: line.page_id,
        });
        Ok(())
    })
}

fn for_each_line(path: &Path, mut visit: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let plain: Box<dyn Read> =
        if has_ending(path, ".zst") { Box::new(zstd::Decoder::new(file)?) } else { Box::new(file) };
    for (number, line) in BufReader::with_capacity(1 << 20, plain).lines().enumerate() {
        let place = || format!("{} line {}", path.display(), number + 1);
        let line = line.with_context(place)?;
        if !line.trim().is_empty() {
            visit(&line).with_context(place)?;
        }
    }
    Ok(())
}

fn normalise(documents: &[Document]) -> Vec<String> {
    let normalization = Normalization::default();
    let chunk = documents.len().div_ceil(crate::measure::processors()).max(1);
    std::thread::scope(|scope| {
        let workers: Vec<_> = documents
            .chunks(chunk)
            .map(|part| {
                scope.spawn(move || {
                    let texts = part.iter().map(Document::joined);
                    texts.map(|text| normalization.apply(&text).into_owned()).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_plain_and_packed_files_in_id_order() {
        let directory = tempfile::tempdir().unwrap();
        let packed =
            zstd::encode_all(&b"{\"id\":2,\"lang\":\"en\",\"text\":\"b\"}\n"[..], 1).unwrap();
        std::fs::write(directory.path().join("a.jsonl.zst"), packed).unwrap();
        std::fs::write(
            directory.path().join("b.jsonl"),
            "{\"id\":1,\"title\":\"T\",\"text\":\"a\",\"year\":1999}\n\n",
        )
        .unwrap();
        let documents = read_directory(directory.path()).unwrap();
        assert_eq!(documents.iter().map(|d| d.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(documents[0].joined(), "T a");
        assert_eq!(documents[0].year, Some(1999));
    }

    #[test]
    fn a_bad_line_is_named() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("x.jsonl"), "{\"text\":\"a\"}\nnot json\n").unwrap();
        let error = read_directory(directory.path()).unwrap_err();
        assert!(format!("{error:#}").contains("x.jsonl line 2"), "{error:#}");
    }

    #[test]
    fn thinning_keeps_the_count_and_spreads() {
        let documents = (0..10).map(|id| Document { id, ..Default::default() }).collect();
        let kept: Vec<u64> = thin_out(documents, 3).iter().map(|document| document.id).collect();
        assert_eq!(kept, [3, 6, 9]);
    }
}
