//! Our engine: a corpus in memory that is searched document by document without an index.

use std::{collections::HashMap, rc::Rc, sync::Arc};

use remora_words::{
    WordsError,
    analysis::{Analyzer, Scratch},
    hits::PackedPosition,
    matching::{Counts, Document, Expansion, Matcher, Vocabulary},
    query::{self, Wildcard},
    rank::{self, Attribute, AttributeKind, Attributes, Expression, Factors, IdfKind, Row, Scorer},
    settings::{Files, Settings},
};

use super::{
    corpus::Corpus,
    engine::{Engine, Found, Options, Ranker},
};

/// The positions of the keywords of one document.
type Places = HashMap<String, Vec<PackedPosition>>;

/// A corpus whose keywords are known.
pub struct Collection {
    analyzer: Analyzer,
    fields: Vec<String>,
    documents: Vec<Indexed>,
    counts: HashMap<String, Counts>,
    /// The keywords of each field.
    totals: Vec<u64>,
}

/// A document as it is indexed.
struct Indexed {
    id: u64,
    places: Places,
    /// The keywords of each field.
    lengths: Vec<u32>,
    numbers: (i64, f32, i64),
}

impl Row for Indexed {
    fn length(&self, field: usize) -> u32 {
        self.lengths[field]
    }

    fn attribute(&self, number: usize) -> Attribute {
        match number {
            0 => Attribute::Integer(self.numbers.0),
            1 => Attribute::Real(self.numbers.1),
            2 => Attribute::Integer(self.numbers.2),
            _ => Attribute::Integer(self.id.cast_signed()),
        }
    }
}

/// The columns that each index has.
struct Columns;

impl Attributes for Columns {
    fn find(&self, name: &str) -> Option<(usize, AttributeKind)> {
        match name {
            "attribute" => Some((0, AttributeKind::Integer)),
            "share" => Some((1, AttributeKind::Real)),
            "large" => Some((2, AttributeKind::BigInteger)),
            "id" => Some((3, AttributeKind::BigInteger)),
            _ => None,
        }
    }
}

/// What makes keywords of a corpus's words.
pub fn analyzer(corpus: &Corpus) -> Analyzer {
    let mut settings = Settings::default();
    for line in &corpus.settings {
        let (name, value) = line.split_once('=').unwrap();
        settings.set(name.trim(), value.trim()).unwrap();
    }
    let files = Files::read(&settings, &mut |name| {
        let file = corpus.files.iter().find(|(other, _)| name.ends_with(other.as_str()));
        file.map(|(_, text)| text.clone()).ok_or(std::io::ErrorKind::NotFound.into())
    });
    Analyzer::new(&settings, &files.unwrap()).unwrap()
}

/// A collection for each corpus.
pub fn make(corpora: &[Rc<Corpus>]) -> Vec<Box<dyn Engine>> {
    corpora.iter().map(|corpus| Box::new(Collection::new(corpus)) as Box<dyn Engine>).collect()
}

impl Collection {
    pub fn new(corpus: &Corpus) -> Self {
        let analyzer = analyzer(corpus);
        let mut scratch = Scratch::default();
        let mut documents: Vec<Indexed> = Vec::new();
        let mut totals = vec![0; corpus.fields.len()];
        let mut lengths = vec![0; corpus.fields.len()];
        let mut counts: HashMap<String, Counts> = HashMap::new();
        for document in &corpus.documents {
            let mut places = Places::new();
            for (field, text) in document.fields.iter().enumerate() {
                let mut found: Vec<(String, u32)> = Vec::new();
                let length =
                    analyzer.document(text, &mut scratch, &mut |keyword: &str, position| {
                        found.push((keyword.to_owned(), position));
                    });
                let last = found.iter().map(|(_, position)| *position).max();
                // Sphinx's indexer leaves the length of the document before where a field has no keywords.
                if !found.is_empty() {
                    lengths[field] = length;
                }
                totals[field] += u64::from(lengths[field]);
                for (keyword, position) in found {
                    let place = PackedPosition::new(field as u8, position, Some(position) == last);
                    places.entry(keyword).or_default().push(place);
                }
            }
            for (keyword, places) in &places {
                let counts = counts.entry(keyword.clone()).or_default();
                counts.documents += 1;
                counts.hits += places.len() as u64;
            }
            let (id, numbers) = (document.id, document.numbers());
            documents.push(Indexed { id, places, lengths: lengths.clone(), numbers });
        }
        documents.sort_by_key(|document| document.id);
        Self { analyzer, fields: corpus.fields.clone(), documents, counts, totals }
    }
}

impl Vocabulary for &Collection {
    fn total(&self) -> u64 {
        self.documents.len() as u64
    }

    fn keyword(&self, word: &str, is_exact: bool) -> Option<String> {
        self.analyzer.keyword(word, is_exact)
    }

    fn counts(&mut self, keyword: &str) -> Result<Counts, WordsError> {
        Ok(self.counts.get(keyword).copied().unwrap_or_default())
    }

    fn expand(&mut self, pattern: &str) -> Result<Result<Vec<Expansion>, String>, WordsError> {
        let pattern = match Wildcard::new(pattern, self.analyzer.settings()) {
            Ok(pattern) => pattern,
            Err(warning) => return Ok(Err(warning)),
        };
        if pattern.is_nothing() {
            return Ok(Ok(Vec::new()));
        }
        let fitting = self.counts.iter().filter(|(keyword, _)| pattern.matches(keyword));
        let mut found: Vec<Expansion> = fitting
            .map(|(keyword, &counts)| Expansion { keyword: keyword.clone(), counts })
            .collect();
        found.sort_by(|a, b| a.keyword.cmp(&b.keyword));
        Ok(Ok(found))
    }

    fn union(
        &mut self,
        keywords: &[String],
        counts: Option<&dyn Fn(PackedPosition) -> bool>,
    ) -> Result<u64, WordsError> {
        let counted = |places: &Vec<PackedPosition>| {
            counts.is_none_or(|counts| places.iter().any(|&place| counts(place)))
        };
        let holds = |places: &Places| {
            keywords.iter().any(|keyword| places.get(keyword).is_some_and(counted))
        };
        Ok(self.documents.iter().filter(|document| holds(&document.places)).count() as u64)
    }
}

/// One document, searched for the terms of a query.
struct QueriedDocument<'a> {
    matcher: &'a Matcher,
    places: &'a Places,
}

impl QueriedDocument<'_> {
    fn of(&self, term: usize) -> Vec<PackedPosition> {
        let keywords = self.matcher.terms()[term].keywords.iter();
        let mut places: Vec<PackedPosition> =
            keywords.filter_map(|it| self.places.get(it)).flatten().copied().collect();
        places.sort_unstable();
        places
    }
}

impl Document for QueriedDocument<'_> {
    fn frequency(&mut self, term: usize) -> Result<u32, WordsError> {
        Ok(self.of(term).len() as u32)
    }

    fn places(&mut self, term: usize, each: impl FnMut(PackedPosition)) -> Result<(), WordsError> {
        let mut places = self.of(term);
        places.dedup();
        places.into_iter().for_each(each);
        Ok(())
    }
}

impl Engine for Collection {
    fn search(&self, text: &str, options: &Options) -> Result<Found, String> {
        let every = |warning| Found {
            rows: self.documents.iter().map(|document| (document.id, 1)).collect(),
            total: self.documents.len() as u64,
            total_found: self.documents.len() as u64,
            words: Vec::new(),
            warning,
        };
        if text.is_empty() {
            return Ok(every(None));
        }
        let parsed =
            query::parse(text, &self.analyzer, &self.fields).map_err(|error| error.to_string())?;
        let unknown: Vec<&str> = options
            .field_weights
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !self.fields.iter().any(|field| field == name))
            .collect();
        let unknown = (!unknown.is_empty()).then(|| {
            let names = unknown.join(" ");
            format!("Fields specified in field_weights option not found: [{names}]")
        });
        let Some(root) = &parsed.root else {
            return Ok(Found { warning: unknown.or(parsed.warning), ..Found::default() });
        };
        let kind = IdfKind { is_plain: options.idf.plain, is_divided: options.idf.divided };
        let matcher = Matcher::new(root, &mut { self }, kind).map_err(|error| error.to_string())?;
        let ranker = ranker(&options.ranker)?;
        let mut scorer = Scorer::new(ranker, self.about(&matcher, options));
        let mut rows = Vec::new();
        self.weigh(&matcher, &mut scorer, &mut |id, weight, _| {
            rows.push((id, weight.wrapping_mul(options.index_weight.unwrap_or(1) as i32)));
        })?;
        rows.sort_by_key(|&(id, weight)| (std::cmp::Reverse(weight), id));
        let total_found = rows.len() as u64;
        let shown = rows.iter().skip(options.offset as usize).take(options.limit as usize);
        Ok(Found {
            rows: shown.map(|&(id, weight)| (id, weight as u32)).collect(),
            total: total_found.min(u64::from(options.max_matches)),
            total_found,
            words: (matcher.words().iter())
                .map(|word| (word.word.clone(), word.counts.documents, word.counts.hits))
                .collect(),
            warning: matcher.warning().map(str::to_owned).or(unknown).or(parsed.warning),
        })
    }
}

impl Collection {
    /// Calls `each` with the matching documents, their weights and factors.
    fn weigh(
        &self,
        matcher: &Matcher,
        scorer: &mut Scorer,
        each: &mut dyn FnMut(u64, i32, Option<Factors>),
    ) -> Result<(), String> {
        let mut hits = Vec::new();
        for document in &self.documents {
            let mut asked = QueriedDocument { matcher, places: &document.places };
            let found = matcher.evaluate(&mut asked, scorer.needs(), &mut hits);
            if let Some(found) = found.map_err(|error| error.to_string())? {
                each(document.id, scorer.weight(&found, &hits, document), scorer.factors());
            }
        }
        Ok(())
    }

    /// The documents that match a query, with weights and factors, by id.
    pub fn factors(
        &self,
        text: &str,
        options: &Options,
        has_closeness: bool,
    ) -> Result<Vec<(u64, i32, Factors)>, String> {
        let parsed =
            query::parse(text, &self.analyzer, &self.fields).map_err(|error| error.to_string())?;
        let Some(root) = &parsed.root else { return Ok(Vec::new()) };
        let kind = IdfKind { is_plain: options.idf.plain, is_divided: options.idf.divided };
        let matcher = Matcher::new(root, &mut { self }, kind).map_err(|error| error.to_string())?;
        let scorer = Scorer::new(ranker(&options.ranker)?, self.about(&matcher, options));
        let mut rows = Vec::new();
        self.weigh(
            &matcher,
            &mut scorer.with_factors(has_closeness),
            &mut |id, weight, factors| {
                rows.push((id, weight, factors.unwrap()));
            },
        )?;
        Ok(rows)
    }

    fn about(&self, matcher: &Matcher, options: &Options) -> rank::Query {
        let weight = |field: &String| {
            let mut given = options.field_weights.iter().filter(|(name, _)| name == field);
            given.next_back().map_or(1, |(_, weight)| (*weight as i32).max(1))
        };
        rank::Query {
            field_weights: self.fields.iter().map(weight).collect(),
            keywords: matcher.keywords(),
            has_repeats: matcher.has_repeats(),
            last_position: matcher.last_position(),
            words: matcher.query_words().to_vec(),
            field_names: self.fields.clone(),
            totals: self.totals.clone(),
            documents: self.documents.len() as u64,
        }
    }
}

fn ranker(ranker: &Ranker) -> Result<rank::Ranker, String> {
    Ok(match ranker {
        Ranker::ProximityBm25 => rank::Ranker::ProximityBm25,
        Ranker::Bm25 => rank::Ranker::Bm25,
        Ranker::None => rank::Ranker::None,
        Ranker::WordCount => rank::Ranker::WordCount,
        Ranker::Proximity => rank::Ranker::Proximity,
        Ranker::MatchAny => rank::Ranker::MatchAny,
        Ranker::FieldMask => rank::Ranker::FieldMask,
        Ranker::Sph04 => rank::Ranker::Sph04,
        Ranker::Expression(text) => {
            let expression =
                Expression::parse(text, &Columns).map_err(|error| error.to_string())?;
            rank::Ranker::Expression(Arc::new(expression))
        }
    })
}
