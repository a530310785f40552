//! A client of SphinxAPI, the binary protocol of `searchd`.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    time::Duration,
};

use super::{
    engine::{Found, Options, Ranker, Sort},
    excerpt_case::Case,
};

const SEARCH: u16 = 0;
const EXCERPT: u16 = 1;
const KEYWORDS: u16 = 3;
const PERSIST: u16 = 4;
const SEARCH_VERSION: u16 = 0x11E;
const EXCERPT_VERSION: u16 = 0x104;
const KEYWORDS_VERSION: u16 = 0x100;

const OK: u16 = 0;
const WARNING: u16 = 3;

const MODE_EXTENDED2: u32 = 6;
const SORT_RELEVANCE: u32 = 0;
const SORT_EXTENDED: u32 = 4;
const GROUP_BY_ATTRIBUTE: u32 = 4;
const PLAIN_IDF: u32 = 16;
const DIVIDED_IDF: u32 = 64;
const LOCAL_DF: u32 = 128;

/// The most time to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A persistent connection.
pub struct Client {
    stream: TcpStream,
}

/// A keyword of a text in the index.
#[derive(Debug, PartialEq)]
pub struct Keyword {
    pub tokenized: String,
    pub normalized: String,
    pub documents: u32,
    pub hits: u32,
}

impl Client {
    pub fn connect(port: u16) -> io::Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting)?;
        let mut hello = 1_u32.to_be_bytes().to_vec();
        hello.extend(request(PERSIST, 0, &1_u32.to_be_bytes()));
        stream.write_all(&hello)?;
        Ok(Self { stream })
    }

    /// The rows of a query, or its error's text.
    pub fn search(
        &mut self,
        indexes: &str,
        query: &str,
        options: &Options,
    ) -> io::Result<Result<Found, String>> {
        let body = search_body(indexes, query, options);
        match self.call(SEARCH, SEARCH_VERSION, &body)? {
            Ok(reply) => read_found(&mut Bytes(&reply)),
            Err(message) => Ok(Err(message)),
        }
    }

    /// The words of a text, with numbers of documents and hits.
    pub fn keywords(
        &mut self,
        index: &str,
        text: &str,
    ) -> io::Result<Result<Vec<Keyword>, String>> {
        let mut body = Body::default();
        body.text(text).text(index).u32(1);
        let reply = match self.call(KEYWORDS, KEYWORDS_VERSION, &body.0)? {
            Ok(reply) => reply,
            Err(message) => return Ok(Err(message)),
        };
        let mut bytes = Bytes(&reply);
        let count = bytes.u32()?;
        let mut keyword = || {
            let (tokenized, normalized) = (bytes.text()?, bytes.text()?);
            Ok(Keyword { tokenized, normalized, documents: bytes.u32()?, hits: bytes.u32()? })
        };
        let keywords: io::Result<Vec<Keyword>> = (0..count).map(|_| keyword()).collect();
        keywords.map(Ok)
    }

    /// The excerpt of a text, of one byte at least, for a query that is not empty: else Sphinx crashes.
    pub fn excerpt(&mut self, index: &str, case: &Case) -> io::Result<Result<String, String>> {
        let mut flags = 1;
        for (name, flag) in [
            ("exact_phrase", 2),
            ("weight_order", 16),
            ("query_mode", 32),
            ("force_all_words", 64),
            ("allow_empty", 256),
        ] {
            flags |= if case.number(name) == 0 { 0 } else { flag };
        }
        let mut body = Body::default();
        body.u32(0).u32(flags).text(index).text(&case.query);
        body.text(case.text("before_match")).text(case.text("after_match"));
        body.text(case.text("chunk_separator"));
        for name in ["limit", "around", "limit_passages", "limit_words", "start_passage_id"] {
            body.u32(case.number(name));
        }
        body.text(case.text("html_strip_mode")).text(case.text("passage_boundary"));
        body.u32(1).text(&case.document);
        match self.call(EXCERPT, EXCERPT_VERSION, &body.0)? {
            Ok(reply) => Bytes(&reply).text().map(Ok),
            Err(message) => Ok(Err(message)),
        }
    }

    /// A reply's body, or the message of a request that failed as a whole.
    fn call(
        &mut self,
        command: u16,
        version: u16,
        body: &[u8],
    ) -> io::Result<Result<Vec<u8>, String>> {
        self.stream.write_all(&request(command, version, body))?;
        let mut head = [0; 8];
        self.stream.read_exact(&mut head)?;
        let mut head = Bytes(&head);
        let status = head.u16()?;
        head.u16()?;
        let mut reply = vec![0; head.u32()? as usize];
        self.stream.read_exact(&mut reply)?;
        let mut bytes = Bytes(&reply);
        match status {
            OK => Ok(Ok(reply)),
            WARNING => bytes.text().map(|_| Ok(bytes.0.to_vec())),
            _ => bytes.text().map(Err),
        }
    }
}

fn request(command: u16, version: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(body.len() + 8);
    bytes.extend(command.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn ranker(ranker: &Ranker) -> u32 {
    match ranker {
        Ranker::ProximityBm25 => 0,
        Ranker::Bm25 => 1,
        Ranker::None => 2,
        Ranker::WordCount => 3,
        Ranker::Proximity => 4,
        Ranker::MatchAny => 5,
        Ranker::FieldMask => 6,
        Ranker::Sph04 => 7,
        Ranker::Expression(_) => 8,
    }
}

fn search_body(indexes: &str, query: &str, options: &Options) -> Vec<u8> {
    let mut body = Body::default();
    let mut flags = 0;
    for (is_set, flag) in [
        (options.idf.plain, PLAIN_IDF),
        (options.idf.divided, DIVIDED_IDF),
        (options.idf.local_df, LOCAL_DF),
    ] {
        flags |= if is_set { flag } else { 0 };
    }
    // No agent's master; one query.
    body.u32(0).u32(1).u32(flags).u32(options.offset).u32(options.limit).u32(MODE_EXTENDED2);
    body.u32(ranker(&options.ranker));
    if let Ranker::Expression(expression) = &options.ranker {
        body.text(expression);
    }
    match &options.sort {
        Sort::Relevance => body.u32(SORT_RELEVANCE).text(""),
        Sort::Extended(clause) => body.u32(SORT_EXTENDED).text(clause),
    };
    // No weights by order of fields; ids of 64 bits, of any size.
    body.text(query).u32(0).text(indexes).u32(1).u64(0).u64(0);
    // No filters; no grouping.
    body.u32(0).u32(GROUP_BY_ATTRIBUTE).text("").u32(options.max_matches).text("@group desc");
    // No retries, no DISTINCT, no place on earth.
    body.u32(options.cutoff).u32(0).u32(0).text("").u32(0);
    let index_weights: Vec<(String, u32)> =
        options.index_weight.map(|weight| (indexes.to_owned(), weight)).into_iter().collect();
    body.weights(&index_weights).u32(0).weights(&options.field_weights);
    // No comment, no overrides; all columns; no outer order.
    body.text("").u32(0).text("*").text("").u32(0).u32(0).u32(0);
    body.0
}

fn read_found(bytes: &mut Bytes) -> io::Result<Result<Found, String>> {
    let warning = match bytes.u32()? {
        0 => None,
        1 => return bytes.text().map(Err),
        _ => Some(bytes.text()?),
    };
    for _ in 0..bytes.u32()? {
        bytes.text()?;
    }
    let mut types = Vec::new();
    for _ in 0..bytes.u32()? {
        bytes.text()?;
        types.push(bytes.u32()?);
    }
    let count = bytes.u32()?;
    bytes.u32()?;
    let mut found = Found { warning, ..Found::default() };
    for _ in 0..count {
        found.rows.push((bytes.u64()?, bytes.u32()?));
        types.iter().try_for_each(|kind| skip_value(bytes, *kind))?;
    }
    (found.total, found.total_found) = (bytes.u32()?.into(), bytes.u32()?.into());
    // The time it took.
    bytes.u32()?;
    for _ in 0..bytes.u32()? {
        found.words.push((bytes.text()?, bytes.u32()?.into(), bytes.u32()?.into()));
    }
    Ok(Ok(found))
}

fn skip_value(bytes: &mut Bytes, kind: u32) -> io::Result<()> {
    match kind {
        6 => bytes.u64().map(drop),
        7 | 1001 => bytes.text().map(drop),
        _ => bytes.u32().map(drop),
    }
}

/// A request body under construction.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    fn u32(&mut self, number: u32) -> &mut Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn u64(&mut self, number: u64) -> &mut Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.u32(text.len() as u32).0.extend(text.as_bytes());
        self
    }

    fn weights(&mut self, weights: &[(String, u32)]) -> &mut Self {
        self.u32(weights.len() as u32);
        for (name, weight) in weights {
            self.text(name).u32(*weight);
        }
        self
    }
}

/// The unread rest of a reply.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self, count: usize) -> io::Result<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(io::ErrorKind::UnexpectedEof)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(io::Error::other)
    }

    fn u16(&mut self) -> io::Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> io::Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> io::Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    fn text(&mut self) -> io::Result<String> {
        let length = self.u32()? as usize;
        self.take(length).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}
