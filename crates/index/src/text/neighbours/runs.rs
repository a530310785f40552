//! Chooses the runs of characters that have lists, and collects their documents: first runs of three
//! characters, then longer ones.
//!
//! A term of two characters is a *symbol* here. A run of three characters is two consecutive symbols; longer
//! runs consist of consecutive frequent runs of three.

use rustc_hash::FxHashMap;

use super::{
    MOST_CHARACTERS,
    gathering::Gathering,
    lists::DocumentGaps,
    sketch::{FrequentPairs, Sketch},
    stream::Slot,
};
use crate::Result;

/// Most longer runs that are considered.
const MOST_LONGER: usize = 1 << 18;

/// Counts the runs of three characters of a document.
pub(super) fn count(sketch: &mut Sketch, slots: &[Slot]) {
    for two in slots.windows(2) {
        if let Some((first, second)) = two[0].run(two[1]) {
            sketch.add(first, second);
        }
    }
}

/// A run with a list.
pub(super) struct CharacterRun {
    /// The run without its last character: a term, or an entry behind all terms.
    pub left: u32,
    /// The term of its last two characters.
    pub right: u32,
    /// What the list saves: the number of documents in which positions would be read, those of the rarer of
    /// the run's two parts.
    pub spared: u32,
    /// The documents that hold it.
    pub docs: DocumentGaps,
}

/// Symbols: the term of each and how many documents hold it, ascending by term.
pub(super) type Symbols = [(u32, u32)];

/// Collects the documents of runs of three.
pub(super) struct TrigramLists<'s> {
    symbols: &'s Symbols,
    often: FrequentPairs,
    numbers: FxHashMap<(u32, u32), u32>,
    runs: Vec<(u32, u32)>,
    gathering: Gathering,
}

impl<'s> TrigramLists<'s> {
    /// Collects the runs that are in `often`.
    pub fn new(symbols: &'s Symbols, often: FrequentPairs) -> Self {
        let (numbers, runs) = (FxHashMap::default(), Vec::new());
        Self { symbols, often, numbers, runs, gathering: Gathering::new() }
    }

    /// Takes the next document.
    pub fn add(&mut self, doc: u32, slots: &[Slot]) {
        if self.gathering.is_full() {
            return;
        }
        for two in slots.windows(2) {
            let Some(pair) = two[0].run(two[1]) else { continue };
            if !self.often.has(pair.0, pair.1) {
                continue;
            }
            let number = *self.numbers.entry(pair).or_insert_with(|| {
                self.runs.push(pair);
                let documents =
                    |symbol: u32| self.symbols.get(symbol as usize).map_or(0, |one| one.1);
                self.gathering.begin(documents(pair.0).min(documents(pair.1)))
            });
            self.gathering.add(number, doc);
        }
    }

    /// The runs whose lists were kept, ascending by terms.
    pub fn finish(self) -> Result<Vec<CharacterRun>> {
        let docs = self.gathering.finish()?.unwrap_or_default();
        let symbol = |number: u32| self.symbols.get(number as usize).copied().unwrap_or_default();
        let all = self.runs.into_iter().zip(docs);
        let mut made: Vec<CharacterRun> = all
            .filter_map(|((first, second), docs)| {
                let (first, second) = (symbol(first), symbol(second));
                let spared = first.1.min(second.1);
                Some(CharacterRun { left: first.0, right: second.0, spared, docs: docs? })
            })
            .collect();
        made.sort_unstable_by_key(|run| (run.left, run.right));
        Ok(made)
    }
}

/// A frequent run that has a list.
struct ListedRun {
    /// The number of its entry plus the number of all terms.
    number: u32,
    last_term: u32,
    documents: u32,
}

/// A longer run.
struct Node {
    /// The run without its last character: one of three, or a node behind all of those.
    parent: u32,
    characters: usize,
    /// The run of its last three characters.
    last: u32,
}

/// Collects the documents of runs of more than three characters.
pub(super) struct LongRunLists {
    threes: Vec<ListedRun>,
    /// By symbols.
    places: FxHashMap<(u32, u32), u32>,
    often: FrequentPairs,
    /// A run is frequent with so many documents.
    frequent: u32,
    numbers: FxHashMap<(u32, u32), u32>,
    nodes: Vec<Node>,
    gathering: Gathering,
    /// For each ordinal of a document, the index of the run of three there plus one; 0 for none.
    standing: Vec<u32>,
}

impl LongRunLists {
    /// Made of those of the runs of three, with their entries, that stand in `frequent` documents
    /// at least; `often` knows all of those.
    pub fn new<'r>(
        symbols: &Symbols,
        runs: impl Iterator<Item = (&'r CharacterRun, u32)>,
        often: FrequentPairs,
        frequent: u32,
    ) -> Self {
        let (mut threes, mut places) = (Vec::new(), FxHashMap::default());
        let symbol = |term: u32| symbols.binary_search_by_key(&term, |one| one.0);
        for (run, number) in runs.filter(|(run, _)| run.docs.count() >= frequent) {
            if let (Ok(first), Ok(second)) = (symbol(run.left), symbol(run.right)) {
                places.insert((first as u32, second as u32), threes.len() as u32 + 1);
                let documents = run.docs.count();
                threes.push(ListedRun { number, last_term: run.right, documents });
            }
        }
        Self {
            threes,
            places,
            often,
            frequent,
            numbers: FxHashMap::default(),
            nodes: Vec::new(),
            gathering: Gathering::new(),
            standing: Vec::new(),
        }
    }

    /// Whether there can be none.
    pub fn is_empty(&self) -> bool {
        self.threes.is_empty()
    }

    /// Takes the next document.
    pub fn add(&mut self, doc: u32, slots: &[Slot]) {
        if self.gathering.is_full() {
            return;
        }
        let mut standing = std::mem::take(&mut self.standing);
        standing.clear();
        standing.extend(slots.windows(2).map(|two| match two[0].run(two[1]) {
            Some(pair) if self.often.has(pair.0, pair.1) => {
                self.places.get(&pair).copied().unwrap_or(0)
            }
            _ => 0,
        }));
        for (&first, start) in standing.iter().zip(1..) {
            let Some(mut node) = first.checked_sub(1) else { continue };
            // A run of n characters consists of n - 2 consecutive runs of three.
            let behind = standing[start..].iter().take(MOST_CHARACTERS - 3);
            for (&next, characters) in behind.zip(4..) {
                let Some(last) = next.checked_sub(1) else { break };
                let Some(longer) = self.node(node, last, characters) else { break };
                node = longer;
                self.gathering.add(node - self.threes.len() as u32, doc);
            }
        }
        self.standing = standing;
    }

    /// The run that is one character longer.
    #[inline]
    fn node(&mut self, parent: u32, last: u32, characters: usize) -> Option<u32> {
        if let Some(&node) = self.numbers.get(&(parent, last)) {
            return Some(node);
        }
        if self.nodes.len() == MOST_LONGER {
            return None;
        }
        let node = (self.threes.len() + self.nodes.len()) as u32;
        self.numbers.insert((parent, last), node);
        self.nodes.push(Node { parent, characters, last });
        self.gathering.begin(self.threes.get(last as usize).map_or(0, |run| run.documents));
        Some(node)
    }

    /// Ends the collection.
    pub fn finish(self) -> Result<LongerRuns> {
        let docs = self.gathering.finish()?.unwrap_or_default();
        let mut known: Vec<Option<ListedRun>> = self.threes.into_iter().map(Some).collect();
        let threes = known.len();
        known.resize_with(threes + docs.len(), || None);
        Ok(LongerRuns { threes, known, nodes: self.nodes, docs, frequent: self.frequent })
    }
}

/// The runs of more than three characters, to be taken length by length.
pub(super) struct LongerRuns {
    threes: usize,
    /// Those that have lists: the runs of three, then the nodes.
    known: Vec<Option<ListedRun>>,
    nodes: Vec<Node>,
    docs: Vec<Option<DocumentGaps>>,
    frequent: u32,
}

impl LongerRuns {
    /// Those of so many characters whose first part is frequent and has a list, that stand in `least`
    /// documents at least: each with its node, ascending as entries are.
    pub fn take(&mut self, characters: usize, least: u32) -> Vec<(usize, CharacterRun)> {
        let mut taken = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let last = self.known.get(node.last as usize).and_then(Option::as_ref);
            let parent = self.known.get(node.parent as usize).and_then(Option::as_ref);
            let (true, Some(parent), Some(last)) = (node.characters == characters, parent, last)
            else {
                continue;
            };
            let is_wanted = |docs: &mut DocumentGaps| {
                parent.documents >= self.frequent && docs.count() >= least
            };
            if let Some(docs) = self.docs.get_mut(at).and_then(|docs| docs.take_if(is_wanted)) {
                let spared = parent.documents.min(last.documents);
                taken.push((
                    at,
                    CharacterRun { left: parent.number, right: last.last_term, spared, docs },
                ));
            }
        }
        taken.sort_unstable_by_key(|(_, run)| (run.left, run.right));
        taken
    }

    /// Notes the entry of a node's run, as a number behind all terms.
    pub fn know(&mut self, node: usize, run: &CharacterRun, number: u32) {
        let known = ListedRun { number, last_term: run.right, documents: run.docs.count() };
        if let Some(place) = self.known.get_mut(self.threes + node) {
            *place = Some(known);
        }
    }
}
