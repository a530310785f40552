//! Words of the texts, drawn by frequency: every occurrence is equally likely.

use crate::{corpus::Document, random::SplitMix64};

/// The longest word that is used, in characters; Sphinx cuts longer ones.
const LONGEST_WORD: usize = 42;
/// After this many draws the texts count as too small.
const MOST_DRAWS: usize = 100_000;

/// The occurrences of words in the texts.
pub struct Words<'d> {
    fields: Vec<&'d str>,
    /// For each field, the number of words up to its end.
    ends: Vec<usize>,
}

impl<'d> Words<'d> {
    /// Counts the words of each title and text.
    pub fn of(documents: &'d [Document]) -> Self {
        let fields: Vec<&str> = documents
            .iter()
            .flat_map(|document| [document.title.as_str(), document.text.as_str()])
            .collect();
        let mut end = 0;
        let ends = fields.iter().map(|field| {
            end += words(field).count();
            end
        });
        Self { ends: ends.collect(), fields }
    }

    /// The number of words in all texts.
    pub fn count(&self) -> usize {
        self.ends.last().copied().unwrap_or_default()
    }

    /// `count` distinct words, drawn independently; `None` if the texts have too few.
    pub fn draw(&self, random: &mut SplitMix64, count: usize) -> Option<Vec<String>> {
        let mut drawn: Vec<String> = Vec::with_capacity(count);
        for _ in 0..MOST_DRAWS {
            if drawn.len() == count {
                return Some(drawn);
            }
            let word = self.place(random).next().and_then(keyword);
            drawn.extend(word.filter(|word| !drawn.contains(word)));
        }
        None
    }

    /// `count` distinct adjacent words of a title or text; `None` if there are hardly any.
    pub fn run(&self, random: &mut SplitMix64, count: usize) -> Option<Vec<String>> {
        (0..MOST_DRAWS).find_map(|_| {
            let run: Vec<String> = self.place(random).take(count).map_while(keyword).collect();
            let is_new = |(at, word): (usize, &String)| !run.iter().take(at).any(|it| it == word);
            (run.len() == count && run.iter().enumerate().all(is_new)).then_some(run)
        })
    }

    /// The words of a field from a random one on.
    fn place(&self, random: &mut SplitMix64) -> impl Iterator<Item = &'d str> + use<'d> {
        let place = random.below(self.count().max(1));
        let field = self.ends.partition_point(|end| *end <= place);
        let before = field.checked_sub(1).and_then(|last| self.ends.get(last)).copied();
        let text = self.fields.get(field).copied().unwrap_or_default();
        words(text).skip(place - before.unwrap_or_default().min(place))
    }
}

/// The words of a text as both servers split it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_letter(c)).filter(|word| !word.is_empty())
}

/// Whether a character is in Sphinx's default `charset_table`: digits, `_`, English and Russian letters.
fn is_letter(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || c == '_'
        || matches!(c, '\u{410}'..='\u{44f}' | '\u{401}' | '\u{451}')
}

/// A word as a query keyword; `None` if Sphinx would truncate it or fold its case differently.
fn keyword(word: &str) -> Option<String> {
    (word.is_ascii() && word.len() <= LONGEST_WORD).then(|| word.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(texts: &[(&str, &str)]) -> Vec<Document> {
        let document = |(title, text): &(&str, &str)| Document {
            title: (*title).to_owned(),
            text: (*text).to_owned(),
            ..Default::default()
        };
        texts.iter().map(document).collect()
    }

    #[test]
    fn frequent_words_are_drawn_by_their_share() {
        // "reef" is 3 of 8 words, and two fields have none.
        let documents =
            documents(&[("Reef", "the REEF, a-reef"), ("", "日本"), ("naïve", "x"), ("", "")]);
        let words = Words::of(&documents);
        // reef | the reef a reef | na ve | x
        assert_eq!(words.count(), 8);
        let mut random = SplitMix64::new(3);
        let draws = 8_000;
        let hits = (0..draws).filter(|_| words.draw(&mut random, 1).unwrap() == ["reef"]).count();
        assert!((2_800..3_200).contains(&hits), "{hits} of {draws}");
    }

    #[test]
    fn words_of_a_query_differ_and_runs_stand_in_the_text() {
        let documents = documents(&[("One", "two three two four Ж five six")]);
        let words = Words::of(&documents);
        let mut random = SplitMix64::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let mut drawn = words.draw(&mut random, 4).unwrap();
            drawn.sort_unstable();
            drawn.dedup();
            assert_eq!(drawn.len(), 4);
            let run = words.run(&mut random, 2).unwrap().join(" ");
            seen.insert(run);
        }
        // Neither across the ends of a field, nor across words that no query may contain.
        assert_eq!(
            seen.into_iter().collect::<Vec<_>>(),
            ["five six", "three two", "two four", "two three"]
        );
        assert_eq!(words.run(&mut random, 4), None);
        assert_eq!(words.draw(&mut random, 8), None);
    }

    #[test]
    fn without_words_nothing_is_drawn() {
        let words = Words::of(&[]);
        assert_eq!(words.draw(&mut SplitMix64::new(1), 1), None);
        assert_eq!(words.run(&mut SplitMix64::new(1), 1), None);
    }
}
