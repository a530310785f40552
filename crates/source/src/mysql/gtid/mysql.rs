//! MySQL's GTIDs and sets: transactions numbered by server and, since 8.3, by tag.

use std::{collections::BTreeMap, fmt, sync::Arc};

/// Transaction numbers of MySQL are below this.
const MAX_NUMBER: u64 = i64::MAX as u64;
/// The longest tag.
const MAX_TAG: usize = 32;

/// The identity of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

/// A tag: lower-case letters, digits and underscores, or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(Option<Arc<str>>);

/// `uuid[:tag]:number`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MySqlGtid {
    /// The server where the transaction was first committed.
    pub uuid: Uuid,
    /// Its tag, usually empty.
    pub tag: Tag,
    /// The transaction number, from 1.
    pub number: u64,
}

/// Transactions by server and tag, as ranges of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MySqlSet {
    entries: BTreeMap<(Uuid, Tag), Ranges>,
}

/// First and last numbers, ascending and not adjacent; never empty in a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ranges(Vec<(u64, u64)>);

impl MySqlSet {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut set = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            set.parse_entry(entry)?;
        }
        Ok(set)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The servers and tags with their ranges of first and last numbers, in order.
    pub fn entries(&self) -> impl Iterator<Item = (Uuid, &Tag, &[(u64, u64)])> {
        self.entries.iter().map(|((uuid, tag), ranges)| (*uuid, tag, ranges.0.as_slice()))
    }

    /// Each server and tag with its ranges, as a separate text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        self.entries.iter().map(|(key, ranges)| {
            let entries = BTreeMap::from([(key.clone(), ranges.clone())]);
            Self { entries }.to_string()
        })
    }

    /// Whether this set contains all of `other`.
    pub fn covers(&self, other: &Self) -> bool {
        other.entries.iter().all(|(key, theirs)| {
            self.entries.get(key).is_some_and(|ours| theirs.count_beyond(ours) == 0)
        })
    }

    /// Whether the set contains the transaction.
    pub fn contains(&self, gtid: &MySqlGtid) -> bool {
        let key = (gtid.uuid, gtid.tag.clone());
        self.entries.get(&key).is_some_and(|ranges| ranges.contains(gtid.number))
    }

    /// Adds a transaction; cheap for the next one of its server.
    pub fn add(&mut self, gtid: &MySqlGtid) {
        self.add_range(gtid.uuid, gtid.tag.clone(), gtid.number, gtid.number);
    }

    pub(crate) fn add_range(&mut self, uuid: Uuid, tag: Tag, first: u64, last: u64) {
        self.entries.entry((uuid, tag)).or_default().add(first, last);
    }

    pub(super) fn unite(&mut self, other: &Self) {
        for (key, ranges) in &other.entries {
            let ours = self.entries.entry(key.clone()).or_default();
            ranges.0.iter().for_each(|(first, last)| ours.add(*first, *last));
        }
    }

    pub(super) fn count_beyond(&self, other: &Self) -> u64 {
        let none = Ranges::default();
        self.entries
            .iter()
            .map(|(key, ours)| ours.count_beyond(other.entries.get(key).unwrap_or(&none)))
            .fold(0, u64::saturating_add)
    }

    fn parse_entry(&mut self, entry: &str) -> Result<(), String> {
        let mut parts = entry.split(':').map(str::trim);
        let uuid = parts.next().and_then(Uuid::parse);
        let uuid = uuid.ok_or_else(|| format!("`{entry}` does not begin with a UUID"))?;
        let mut tag = Tag::default();
        for part in parts {
            if let Some((first, last)) = parse_range(part) {
                self.add_range(uuid, tag.clone(), first, last);
            } else {
                tag = Tag::parse(part)
                    .ok_or_else(|| format!("`{part}` is neither a range of numbers nor a tag"))?;
            }
        }
        Ok(())
    }
}

impl Ranges {
    fn add(&mut self, first: u64, last: u64) {
        if let Some(tail) = self.0.last_mut()
            && tail.1.checked_add(1) == Some(first)
        {
            tail.1 = last;
            return;
        }
        // Merges ranges that overlap or touch the new one.
        let from = self.0.partition_point(|range| range.1.saturating_add(1) < first);
        let to = self.0.partition_point(|range| range.0 <= last.saturating_add(1));
        let touched = self.0.get(from..to).unwrap_or_default();
        let first = touched.first().map_or(first, |range| range.0.min(first));
        let last = touched.last().map_or(last, |range| range.1.max(last));
        self.0.splice(from..to.max(from), [(first, last)]);
    }

    fn contains(&self, number: u64) -> bool {
        let at = self.0.partition_point(|range| range.1 < number);
        self.0.get(at).is_some_and(|range| range.0 <= number)
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|(first, last)| last - first + 1).fold(0, u64::saturating_add)
    }

    fn count_beyond(&self, other: &Self) -> u64 {
        let mut shared = 0_u64;
        let mut theirs = other.0.iter().peekable();
        for (first, last) in &self.0 {
            while let Some((their_first, their_last)) = theirs.peek() {
                let (from, to) = (*first.max(their_first), *last.min(their_last));
                shared = shared.saturating_add((to + 1).saturating_sub(from));
                if their_last > last {
                    break;
                }
                theirs.next();
            }
        }
        self.count().saturating_sub(shared)
    }
}

impl Uuid {
    /// Parses 32 hexadecimal digits, with or without dashes or braces.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let mut digits = text.bytes().filter(|byte| *byte != b'-');
        let mut digit = || digits.next().and_then(|byte| (byte as char).to_digit(16));
        let mut bytes = [0; 16];
        for byte in &mut bytes {
            *byte = u8::try_from(digit()? << 4 | digit()?).ok()?;
        }
        digits.next().is_none().then_some(Self(bytes))
    }
}

impl Tag {
    /// Parses a tag, case-insensitively.
    pub fn parse(text: &str) -> Option<Self> {
        let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let valid = text.len() <= MAX_TAG
            && text.bytes().next().is_some_and(letter)
            && text.bytes().all(|byte| letter(byte) || byte.is_ascii_digit());
        valid.then(|| Self(Some(text.to_ascii_lowercase().into())))
    }

    /// The tag's text, if there is one.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

fn parse_range(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten().filter(|n| (1..MAX_NUMBER).contains(n))
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (number(first.trim())?, number(last.trim())?);
    (first <= last).then_some((first, last))
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Display for MySqlGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tag.as_str() {
            Some(tag) => write!(f, "{}:{tag}:{}", self.uuid, self.number),
            None => write!(f, "{}:{}", self.uuid, self.number),
        }
    }
}

impl fmt::Display for MySqlSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<Uuid> = None;
        for (uuid, tag, ranges) in self.entries() {
            match before {
                Some(before) if before == uuid => {}
                Some(_) => write!(f, ",{uuid}")?,
                None => write!(f, "{uuid}")?,
            }
            before = Some(uuid);
            if let Some(tag) = tag.as_str() {
                write!(f, ":{tag}")?;
            }
            for (first, last) in ranges {
                write!(f, ":{first}")?;
                if last > first {
                    write!(f, "-{last}")?;
                }
            }
        }
        Ok(())
    }
}
