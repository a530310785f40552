//! Sphinx's stemmer for Russian: Snowball's steps with other tables, derived from its output.

/// Reduces the word to its stem. Only lower-case letters are handled; ё is no vowel.
pub(super) fn stem(word: &mut String) {
    let mut stemmer = Russian::new(word);
    stemmer.inflection();
    stemmer.derivation();
}

const GERUNDS: [&str; 8] = ["ившись", "ывшись", "авшись", "явшись", "ивши", "ывши", "авши", "явши"];
const SHORT_GERUNDS: [&str; 4] = ["ив", "ыв", "ав", "яв"];
const REFLEXIVES: [&str; 2] = ["ся", "сь"];
const ADJECTIVES: [&str; 26] = [
    "ими", "ыми", "его", "ого", "ему", "ому", "ее", "ие", "ые", "ое", "ей", "ий", "ый", "ой", "ем",
    "им", "ым", "ом", "их", "ых", "ую", "юю", "ая", "яя", "ою", "ею",
];
const PARTICIPLES: [&str; 3] = ["ивш", "ывш", "ующ"];
/// Participle endings that are removed only after а or я, which stay.
const SHORT_PARTICIPLES: [&str; 3] = ["вш", "ющ", "щ"];
/// Verb endings that look like adjective endings.
const PRESENT: [&str; 3] = ["аем", "яем", "уем"];
/// Longer endings come first.
const VERBS: [&str; 66] = [
    "аешь", "аете", "айте", "яешь", "яете", "яйте", "ейте", "уйте", "уешь", "уете", "ает", "ала",
    "али", "ало", "ана", "ано", "аны", "ать", "ают", "яет", "яла", "яли", "яло", "яна", "яно",
    "яны", "ять", "яют", "ила", "ыла", "ена", "ите", "или", "ыли", "ило", "ыло", "ено", "ует",
    "уют", "ены", "ить", "ыть", "ишь", "еть", "уть", "ай", "ал", "аю", "яй", "ял", "яю", "ей",
    "уй", "ил", "ыл", "им", "ым", "ят", "ит", "ыт", "ую", "уя", "ю", "аем", "яем", "уем",
];
const NOUNS: [&str; 40] = [
    "иями", "ями", "ами", "ией", "иям", "ием", "иях", "ьте", "нок", "чек", "чок", "ев", "ов", "ие",
    "ье", "еи", "ии", "ей", "ой", "ий", "ям", "ем", "ам", "ом", "ах", "ях", "ию", "ью", "ия", "ья",
    "а", "е", "и", "й", "о", "у", "ы", "ь", "ю", "я",
];
/// Endings of nouns that may be diminutives.
const DIMINUTIVE_ENDINGS: [&str; 12] =
    ["а", "е", "и", "о", "у", "ам", "ами", "ах", "ов", "ой", "ою", "ом"];
const DIMINUTIVES: [&str; 2] = ["нк", "чк"];

struct Russian<'w> {
    word: &'w mut String,
    /// The start of the first region: after the first vowel. Nothing before it is removed.
    region: usize,
    /// The start of the second region: after the second consonant that follows a vowel.
    second: usize,
    /// Whether a й was removed; then no other one is.
    has_lost_short_i: bool,
}

fn is_vowel(c: char) -> bool {
    matches!(c, 'а' | 'е' | 'и' | 'о' | 'у' | 'ы' | 'э' | 'ю' | 'я')
}

impl<'w> Russian<'w> {
    fn new(word: &'w mut String) -> Self {
        let behind_vowel = |from: usize| {
            let mut chars = word[from..].char_indices();
            chars.find(|(_, c)| is_vowel(*c)).map(|(at, c)| from + at + c.len_utf8())
        };
        let behind_consonant = |from: usize| {
            let mut chars = word[from..].char_indices();
            chars.find(|(_, c)| !is_vowel(*c)).map(|(at, c)| from + at + c.len_utf8())
        };
        let region = behind_vowel(0).unwrap_or(word.len());
        let first = behind_consonant(region);
        let second = first.and_then(behind_vowel).and_then(behind_consonant);
        let second = second.unwrap_or(word.len());
        Self { word, region, second, has_lost_short_i: false }
    }

    /// Removes the first of these suffixes that the word has within its region; returns it.
    fn cut(&mut self, suffixes: &[&'static str]) -> Option<&'static str> {
        let is_cut = |suffix: &&&str| self.ends(suffix) && self.begins(suffix) >= self.region;
        let suffix = *suffixes.iter().find(is_cut)?;
        self.word.truncate(self.begins(suffix));
        Some(suffix)
    }

    fn ends(&self, suffix: &str) -> bool {
        self.word.ends_with(suffix)
    }

    fn begins(&self, suffix: &str) -> usize {
        self.word.len() - suffix.len()
    }

    fn inflection(&mut self) {
        // The first letter may be before the region.
        let first = 'а'.len_utf8();
        let is_gerund =
            |suffix: &&&str| self.ends(suffix) && self.begins(suffix) + first >= self.region;
        if let Some(gerund) = GERUNDS.iter().find(is_gerund) {
            self.word.truncate(self.begins(gerund));
            return;
        }
        if self.cut(&SHORT_GERUNDS).is_some() {
            return;
        }
        self.cut(&REFLEXIVES);
        let is_present =
            PRESENT.iter().any(|verb| self.ends(verb) && self.begins(verb) >= self.region);
        if !is_present && let Some(ending) = self.cut(&ADJECTIVES) {
            if !self.participle() {
                self.diminutive(ending);
            }
        } else if self.cut(&VERBS).is_some() {
            self.cut(&["ов"]);
        } else if let Some(ending) = self.cut(&NOUNS) {
            self.has_lost_short_i = ending == "й";
            self.diminutive(ending);
        }
    }

    fn participle(&mut self) -> bool {
        if self.cut(&PARTICIPLES).is_some() {
            return true;
        }
        let is_participle = |suffix: &&&str| {
            let body = self.word.strip_suffix(**suffix).unwrap_or("");
            body.ends_with(['а', 'я']) && body.len() - 'а'.len_utf8() >= self.region
        };
        let Some(suffix) = SHORT_PARTICIPLES.iter().find(is_participle) else { return false };
        self.word.truncate(self.begins(suffix));
        true
    }

    fn diminutive(&mut self, ending: &str) {
        if DIMINUTIVE_ENDINGS.contains(&ending) {
            self.cut(&DIMINUTIVES);
        }
    }

    fn derivation(&mut self) {
        self.cut(if self.has_lost_short_i { &["и"] } else { &["и", "й"] });
        let is_noun = |suffix: &&&str| self.ends(suffix) && self.begins(suffix) >= self.second;
        if let Some(suffix) = ["ость", "ост"].iter().find(is_noun) {
            self.word.truncate(self.begins(suffix));
        }
        if self.double_n() {
            return;
        }
        self.cut(&["ейше", "ейш"]);
        if self.cut(&["ь"]).is_none() {
            self.double_n();
        }
    }

    /// Reduces a double н to one.
    fn double_n(&mut self) -> bool {
        let is_double = self.ends("нн") && self.begins("нн") >= self.region;
        if is_double {
            self.word.truncate(self.begins("н"));
        }
        is_double
    }
}
