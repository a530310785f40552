//! Ours: a corpus held in memory, searched document by document without any index.

use std::{collections::HashMap, rc::Rc};

use remora_words::{
    WordsError,
    analysis::{Analyzer, Scratch},
    matching::{Counts, Document, Expansion, Matcher, Place, Vocabulary},
    query::{self, Wildcard},
    rank::{self, IdfKind, Scorer},
    settings::{Files, Settings},
};

use crate::{
    corpus::Corpus,
    engine::{Engine, Found, Options, Ranker},
};

/// The places of the keywords of one document.
type Places = HashMap<String, Vec<Place>>;

/// A corpus whose keywords are known.
pub struct Collection {
    analyzer: Analyzer,
    fields: Vec<String>,
    documents: Vec<(u64, Places)>,
    counts: HashMap<String, Counts>,
}

/// A collection for each corpus.
pub fn make(corpora: &[Rc<Corpus>]) -> Vec<Box<dyn Engine>> {
    corpora.iter().map(|corpus| Box::new(Collection::new(corpus)) as Box<dyn Engine>).collect()
}

impl Collection {
    fn new(corpus: &Corpus) -> Self {
        let mut settings = Settings::default();
        for line in &corpus.settings {
            let (name, value) = line.split_once('=').unwrap();
            settings.set(name.trim(), value.trim()).unwrap();
        }
        let files = Files::read(&settings, &mut |name| {
            let file = corpus.files.iter().find(|(other, _)| name.ends_with(other.as_str()));
            file.map(|(_, text)| text.clone()).ok_or(std::io::ErrorKind::NotFound.into())
        });
        let analyzer = Analyzer::new(&settings, &files.unwrap()).unwrap();
        let mut scratch = Scratch::default();
        let mut documents: Vec<(u64, Places)> = Vec::new();
        let mut counts: HashMap<String, Counts> = HashMap::new();
        for document in &corpus.documents {
            let mut places = Places::new();
            for (field, text) in document.fields.iter().enumerate() {
                let mut found: Vec<(String, u32)> = Vec::new();
                analyzer.document(text, &mut scratch, &mut |keyword: &str, position| {
                    found.push((keyword.to_owned(), position));
                });
                let last = found.iter().map(|(_, position)| *position).max();
                for (keyword, position) in found {
                    let place = Place::new(field as u8, position, Some(position) == last);
                    places.entry(keyword).or_default().push(place);
                }
            }
            for (keyword, places) in &places {
                let counts = counts.entry(keyword.clone()).or_default();
                counts.documents += 1;
                counts.hits += places.len() as u64;
            }
            documents.push((document.id, places));
        }
        documents.sort_by_key(|(id, _)| *id);
        Self { analyzer, fields: corpus.fields.clone(), documents, counts }
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
        counts: Option<&dyn Fn(Place) -> bool>,
    ) -> Result<u64, WordsError> {
        let counted = |places: &Vec<Place>| {
            counts.is_none_or(|counts| places.iter().any(|&place| counts(place)))
        };
        let holds = |places: &Places| {
            keywords.iter().any(|keyword| places.get(keyword).is_some_and(counted))
        };
        Ok(self.documents.iter().filter(|(_, places)| holds(places)).count() as u64)
    }
}

/// One document, asked for the terms of a query.
struct Asked<'a> {
    matcher: &'a Matcher,
    places: &'a Places,
}

impl Asked<'_> {
    fn of(&self, term: usize) -> Vec<Place> {
        let keywords = self.matcher.terms()[term].keywords.iter();
        let mut places: Vec<Place> =
            keywords.filter_map(|it| self.places.get(it)).flatten().copied().collect();
        places.sort_unstable();
        places
    }
}

impl Document for Asked<'_> {
    fn frequency(&mut self, term: usize) -> Result<u32, WordsError> {
        Ok(self.of(term).len() as u32)
    }

    fn places(&mut self, term: usize, each: &mut dyn FnMut(Place)) -> Result<(), WordsError> {
        let mut places = self.of(term);
        places.dedup();
        places.into_iter().for_each(each);
        Ok(())
    }
}

impl Engine for Collection {
    fn search(&self, text: &str, options: &Options) -> Result<Found, String> {
        let every = |warning| Found {
            rows: self.documents.iter().map(|(id, _)| (*id, 1)).collect(),
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
        let mut scorer = Scorer::new(ranker(&options.ranker), self.about(&matcher, options));
        let mut rows = Vec::new();
        let mut hits = Vec::new();
        for (id, places) in &self.documents {
            let mut asked = Asked { matcher: &matcher, places };
            let found = matcher.evaluate(&mut asked, scorer.needs(), &mut hits);
            if let Some(found) = found.map_err(|error| error.to_string())? {
                let weight = scorer.weight(&found, &hits);
                rows.push((*id, weight.wrapping_mul(options.index_weight.unwrap_or(1) as i32)));
            }
        }
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
        }
    }
}

fn ranker(ranker: &Ranker) -> rank::Ranker {
    match ranker {
        Ranker::ProximityBm25 => rank::Ranker::ProximityBm25,
        Ranker::Bm25 => rank::Ranker::Bm25,
        Ranker::None => rank::Ranker::None,
        Ranker::WordCount => rank::Ranker::WordCount,
        Ranker::Proximity => rank::Ranker::Proximity,
        Ranker::MatchAny => rank::Ranker::MatchAny,
        Ranker::FieldMask => rank::Ranker::FieldMask,
        Ranker::Sph04 => rank::Ranker::Sph04,
    }
}
