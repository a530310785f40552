//! MariaDB's GTIDs and sets: a position in each replication domain.

use std::{collections::BTreeMap, fmt};

/// `domain-server-sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MariaDbGtid {
    /// The replication domain.
    pub domain: u32,
    /// The server where the transaction was first committed.
    pub server: u32,
    /// Increases within the domain.
    pub sequence: u64,
}

/// The last transaction of each domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MariaDbSet {
    domains: BTreeMap<u32, (u32, u64)>,
}

impl MariaDbSet {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut set = Self::default();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let gtid = MariaDbGtid::parse(entry)
                .ok_or_else(|| format!("`{entry}` is not domain-server-sequence"))?;
            if set.domains.insert(gtid.domain, (gtid.server, gtid.sequence)).is_some() {
                return Err(format!("domain {} is named twice", gtid.domain));
            }
        }
        Ok(set)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.domains.is_empty()
    }

    /// The last transaction of each domain, by domain.
    pub fn positions(&self) -> impl Iterator<Item = MariaDbGtid> + '_ {
        self.domains.iter().map(|(domain, (server, sequence))| MariaDbGtid {
            domain: *domain,
            server: *server,
            sequence: *sequence,
        })
    }

    /// Whether each domain is at least as far as in `other`.
    pub fn covers(&self, other: &Self) -> bool {
        other.positions().all(|gtid| self.contains(&gtid))
    }

    /// Whether the transaction's domain is at least that far.
    pub fn contains(&self, gtid: &MariaDbGtid) -> bool {
        self.sequence(gtid.domain) >= gtid.sequence
    }

    /// Whether a domain of `before` is missing, or is at an earlier transaction of the same server. Sequence numbers of
    /// two servers in one domain need not be in order.
    pub(super) fn is_behind(&self, before: &Self) -> bool {
        before.positions().any(|gtid| match self.domains.get(&gtid.domain) {
            None => true,
            Some((server, sequence)) => *server == gtid.server && *sequence < gtid.sequence,
        })
    }

    /// Whether the domain is at this transaction or a later one of the same server.
    pub(super) fn is_repeated_by(&self, gtid: &MariaDbGtid) -> bool {
        let position = self.domains.get(&gtid.domain);
        position
            .is_some_and(|(server, sequence)| *server == gtid.server && gtid.sequence <= *sequence)
    }

    /// Advances the domain to this transaction. An earlier one has no effect.
    pub fn add(&mut self, gtid: &MariaDbGtid) {
        let position = self.domains.entry(gtid.domain).or_insert((gtid.server, gtid.sequence));
        if gtid.sequence >= position.1 {
            *position = (gtid.server, gtid.sequence);
        }
    }

    pub(super) fn unite(&mut self, other: &Self) {
        other.positions().for_each(|gtid| self.add(&gtid));
    }

    pub(super) fn count_beyond(&self, other: &Self) -> u64 {
        self.positions()
            .map(|gtid| gtid.sequence.saturating_sub(other.sequence(gtid.domain)))
            .fold(0, u64::saturating_add)
    }

    fn sequence(&self, domain: u32) -> u64 {
        self.domains.get(&domain).map_or(0, |(_, sequence)| *sequence)
    }
}

impl MariaDbGtid {
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let gtid = Self {
            domain: number(parts.next()?)?,
            server: number(parts.next()?)?,
            sequence: number(parts.next()?)?,
        };
        parts.next().is_none().then_some(gtid)
    }
}

/// Digits only: `parse` alone would accept a plus sign.
fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for MariaDbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server, self.sequence)
    }
}

impl fmt::Display for MariaDbSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, gtid) in self.positions().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{gtid}")?;
        }
        Ok(())
    }
}
