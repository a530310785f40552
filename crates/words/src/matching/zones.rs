//! Zones of a document: which of them a place is in.

use super::{Document, step::ZoneTerms};
use crate::{Result, hits::Hit};

/// The zones of each name in a document, in the order of the names.
pub(crate) struct DocumentZones(Vec<Vec<ZoneRange>>);

/// The marks between which a zone is. A zone may go on in the next field.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ZoneRange {
    begin: u32,
    end: u32,
}

impl DocumentZones {
    /// Reads the marks of zones in a document.
    pub fn read(zones: &[ZoneTerms], document: &mut impl Document) -> Result<Self> {
        let mut places = |term| {
            let mut places = Vec::new();
            document.places(term, |place| places.push(place.number()))?;
            Ok(places)
        };
        let ranges = zones.iter().map(|zone| Ok(ranges(&places(zone.begin)?, &places(zone.end)?)));
        Ok(Self(ranges.collect::<Result<_>>()?))
    }

    /// Whether a place is in one of the zones.
    pub fn contain(&self, at: u32) -> bool {
        self.0.iter().any(|ranges| find(ranges, at).is_some())
    }
}

/// The ranges of a zone by its marks, as Sphinx pairs them: beginnings within a zone, and ends after its first, which only
/// move its end, do not count.
fn ranges(begins: &[u32], ends: &[u32]) -> Vec<ZoneRange> {
    let mut ranges = Vec::new();
    let Some(&first) = begins.first() else { return ranges };
    let mut ends = ends.iter().copied().skip_while(|&end| end < first).peekable();
    let mut begins = begins.iter().copied().peekable();
    while let Some(begin) = begins.next() {
        while begins.next_if(|&next| ends.peek().is_some_and(|&end| next < end)).is_some() {}
        let next = begins.peek().copied();
        let mut last = None;
        while let Some(end) = ends.next_if(|&end| next.is_none_or(|next| end <= next)) {
            last = Some(end);
        }
        let Some(end) = last else { break };
        ranges.push(ZoneRange { begin, end });
    }
    ranges
}

/// The number of the range that a place is in.
fn find(ranges: &[ZoneRange], at: u32) -> Option<usize> {
    let number = ranges.partition_point(|range| range.begin <= at).checked_sub(1)?;
    ranges.get(number).filter(|range| at <= range.end).map(|_| number)
}

/// A hit, and for each name of zones the number of the one that it is in.
pub(crate) struct ZoneHit {
    pub hit: Hit,
    numbers: Vec<Option<usize>>,
}

impl ZoneHit {
    pub fn new(hit: Hit, zones: &DocumentZones) -> Self {
        Self { hit, numbers: zones.0.iter().map(|ranges| find(ranges, hit.at)).collect() }
    }

    fn is_in_one_zone_with(&self, other: &Self) -> bool {
        self.numbers.iter().zip(&other.numbers).any(|(one, two)| one.is_some() && one == two)
    }
}

/// The hits of two operands that are in one zone with the next hit of the other. As in Sphinx, the last one of them has no
/// next.
pub(crate) fn together(first: Vec<ZoneHit>, second: Vec<ZoneHit>) -> Vec<ZoneHit> {
    let mut out = Vec::new();
    let (mut first, mut second) = (first.into_iter().peekable(), second.into_iter().peekable());
    while let (Some(a), Some(b)) = (first.peek(), second.peek()) {
        let is_together = a.is_in_one_zone_with(b);
        let is_first = a.hit.at < b.hit.at
            || a.hit.at == b.hit.at && a.hit.query_position <= b.hit.query_position;
        let next = if is_first { first.next() } else { second.next() };
        out.extend(next.filter(|_| is_together));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_make_ranges() {
        let pairs = |begins: &[u32], ends: &[u32]| -> Vec<(u32, u32)> {
            ranges(begins, ends).iter().map(|range| (range.begin, range.end)).collect()
        };
        assert_eq!(pairs(&[1, 10], &[5, 15]), [(1, 5), (10, 15)]);
        // One within another.
        assert_eq!(pairs(&[1, 2, 10], &[4, 5, 15]), [(1, 5), (10, 15)]);
        // An end before all beginnings, and a beginning without an end.
        assert_eq!(pairs(&[3, 10], &[1, 5]), [(3, 5)]);
        assert_eq!(pairs(&[3], &[1]), []);
        assert_eq!(pairs(&[], &[1]), []);
        let of = ranges(&[1, 10], &[5, 15]);
        let at: Vec<Option<usize>> = [0, 3, 7, 12, 20].map(|at| find(&of, at)).into();
        assert_eq!(at, [None, Some(0), None, Some(1), None]);
    }
}
